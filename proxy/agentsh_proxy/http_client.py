"""An HTTP/1.1 client for MCP servers: one origin, a request at a time on each connection, bodies streamed and bounded.

Every fault of the network or of the peer comes out as ProtocolError (502, or 504 for time). Redirects, credentials and
what the bodies mean are the callers' business; the LLM proxy has its own upstream pool, made for throughput.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Self

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.http_rules import Address, Headers
from agentsh_net.core.trust import certificate
from agentsh_proxy.http_connection import Connection

CONNECT_TIMEOUT = 10.0  # seconds for name, TCP and TLS
# Seconds to wait for the end of an answer whose message we have, so that the connection can be kept.
DRAIN_TIMEOUT = 0.2
DRAIN_SIZE = 64 << 10  # bytes to read for the same end
MAX_IDLE = 2  # connections kept: one for requests, one that a closed stream left over


def tls_context() -> ssl.SSLContext:
    """Return a client context over the system's trust store (SSL_CERT_FILE and SSL_CERT_DIR are honoured). Make one, share it."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Response:
    """An answer whose head is here and whose body is still coming. Release it when done, however it went."""

    def __init__(self, connection: Connection, client: HttpClient, opened: tuple[str, int] | None) -> None:
        self._connection = connection
        self.opened = opened  # address and port, where this request was the first on its connection
        self._client = client
        self.status = connection.status
        self.headers = tuple(connection.headers)

    def header(self, name: str) -> str:
        """Return the value of a header by its lower-case name, empty if there is none. Raises ProtocolError if there are several."""
        found = {value for header, value in self.headers if header == name}
        if len(found) > 1:
            raise ProtocolError(f"the server sends header {name} twice, with two values", status=502)
        return next(iter(found), "")

    async def next(self) -> bytes:
        """Return the next bytes of the body as they come, empty at its end. Raises ProtocolError if it was cut."""
        return await self._connection.chunk()

    def take(self) -> bytes:
        """Return the next bytes of the body that are here, empty where none are."""
        return self._connection.take()

    def watch(self, watcher: Callable[[], bool]) -> None:
        """Have a function called whenever bytes came; where it takes them and says so, whoever waits sleeps on."""
        self._connection.watch(watcher)

    @property
    def ended(self) -> bool:
        """Say whether the body came to its end."""
        return self._connection.complete

    @property
    def lasts(self) -> bool:
        """Say whether more of the body may come: it has not ended and was not cut."""
        return not self._connection.complete and self._connection.error is None

    async def news(self) -> None:
        """Wait until something came that no watcher took. Raises ProtocolError where the body was cut."""
        await self._connection.news()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it comes."""
        while data := await self._connection.chunk():
            yield data

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises ProtocolError past `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        async for data in self.chunks():
            size += len(data)
            if size > limit:
                raise ProtocolError(f"the server's answer is longer than {limit} bytes", status=502)
            parts.append(data)
        return b"".join(parts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.release()
        else:
            self.close()

    async def release(self) -> None:
        """Keep the connection if the body ends here and now; close it otherwise."""
        try:
            if self._connection.complete:
                self._connection.drop(DRAIN_SIZE)  # what nobody asked for is here already
            else:
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    await self.read(DRAIN_SIZE)
        except (ProtocolError, TimeoutError):
            pass  # the message we wanted is read; the connection is closed below
        self._client.give_back(self._connection)

    def close(self) -> None:
        """Close the connection: the body is endless, or of no interest."""
        self._client.forget(self._connection)


class HttpClient:
    """A client of one origin. `pin` (`sha256:<hex>`) must match the certificate or its public key, on top of its validity."""

    def __init__(
        self, origin: Address, *, tls: ssl.SSLContext | None = None, pin: str = "", max_idle: int = MAX_IDLE
    ) -> None:
        self.origin = origin
        # The certificate seen last, whether it was taken or not.
        self.seen: certificate.Fingerprints | None = None
        self._tls = tls
        self._pin = pin
        self._max_idle = max_idle
        # The last head, which often comes again.
        self._written: tuple[tuple[str, str, Headers], bytes] | None = None
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()

    async def request(self, method: str, target: str, headers: Headers, body: bytes = b"") -> Response:
        """Send a request to the origin and return its answer's head. An idle connection that turns out dead is replaced."""
        head = self._head(method, target, headers, body)
        while True:
            connection = self._kept() or await self._connect()
            reused, connection.fresh = not connection.fresh, False
            opened = None if reused else connection.peer()
            connection.send(head, body)
            try:
                await connection.head()
            except ProtocolError:
                self.forget(connection)
                if reused and connection.unseen:
                    continue
                raise
            except BaseException:
                self.forget(connection)
                raise
            return Response(connection, self, opened)

    def post(self, target: str, headers: Headers, body: bytes, ended: Callable[[Connection], None]) -> bool:
        """Send a request whose answer's body is of no interest, if that can be done at once, and say so; `ended` gets its connection.

        `ended` is called when the answer is whole or longer than anybody wants (`status`), or there will be none (`error`).
        """
        connection = self._kept()
        if connection is None:
            return False

        def watch() -> bool:
            if connection.complete or connection.error is not None or connection.waiting > DRAIN_SIZE:
                connection.watch(None)
                connection.drop(DRAIN_SIZE)
                self.give_back(connection)
                ended(connection)
            return True

        connection.watch(watch)
        connection.send(self._head("POST", target, headers, body), body)
        return True

    def _kept(self) -> Connection | None:
        """Return an idle connection, if there is one that lives."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            self.forget(connection)
        return None

    @property
    def connections(self) -> int:
        """How many are open, idle or not."""
        return len(self._open)

    def give_back(self, connection: Connection) -> None:
        """Take a connection whose exchange is over."""
        if connection.usable and len(self._idle) < self._max_idle:
            self._idle.append(connection)
        else:
            self.forget(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in tuple(self._open):
            self.forget(connection)
        self._idle.clear()

    def forget(self, connection: Connection) -> None:
        """Close a connection for good."""
        self._open.discard(connection)
        connection.close()

    def _head(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        asked = method, target, headers
        if self._written is None or self._written[0] != asked:
            self._written = asked, self._beginning(*asked)
        beginning = self._written[1]
        return (
            b"%bContent-Length: %d\r\n\r\n" % (beginning, len(body))
            if method != "GET"
            else beginning + b"\r\n"
        )

    def _beginning(self, method: str, target: str, headers: Headers) -> bytes:
        """Return a head but for its length. Raises ProtocolError."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.origin.authority}", "Accept-Encoding: identity"]
        lines += [f"{name}: {value}" for name, value in headers]
        if any(c in part for part in lines for c in "\r\n\0"):
            raise ProtocolError("a request header has a line break")
        try:
            return "".join(f"{line}\r\n" for line in lines).encode("latin-1")
        except UnicodeEncodeError as fault:
            raise ProtocolError("a request header has characters that no header may have") from fault

    async def _connect(self) -> Connection:
        where = f"{self.origin.scheme}://{self.origin.authority}"
        secure = self.origin.scheme == "https"
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, connection = await loop.create_connection(
                    Connection,
                    self.origin.host,
                    self.origin.port,
                    ssl=(self._tls or tls_context()) if secure else None,
                    server_hostname=self.origin.host if secure else None,
                )
        except TimeoutError as fault:
            raise ProtocolError(
                f"{where} does not answer within {CONNECT_TIMEOUT:g} s", status=504
            ) from fault
        except ssl.SSLCertVerificationError as fault:
            raise ProtocolError(
                f"{where}: TLS certificate is not trusted: {fault.verify_message}", status=502
            ) from fault
        except (OSError, UnicodeError) as fault:
            raise ProtocolError(f"{where} cannot be reached: {_reason(fault)}", status=502) from fault
        try:
            self._check(connection, where)
        except ProtocolError:
            connection.close()
            raise
        self._open.add(connection)
        return connection

    def _check(self, connection: Connection, where: str) -> None:
        """Set keepalive, and hold the certificate against the pin before a byte is sent."""
        transport = connection.transport
        if transport is None:
            raise ProtocolError(f"{where} closed the connection at once", status=502)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            if self._pin:
                raise ProtocolError(f"{where} is not TLS, but tls_fingerprint is declared", status=502)
            return
        found = certificate.fingerprints(tls.getpeercert(binary_form=True) or b"")
        self.seen = found
        if self._pin and not certificate.matches(self._pin, found):
            raise ProtocolError(
                f"{where} shows another TLS certificate than tls_fingerprint names: {found.certificate} "
                f"(public key {found.public_key})",
                status=502,
            )


def _reason(fault: OSError | UnicodeError) -> str:
    if isinstance(fault, PermissionError):
        return "a rule of this machine refuses it (EPERM)"
    return str(getattr(fault, "strerror", None) or fault)
