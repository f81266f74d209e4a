"""A TLS server for many names at one address, and ClientHellos: OpenSSL's own, and ones made by hand as a test wants them."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from netns.scene import outcome

_SNI, _GROUPS, _VERSIONS, _KEY_SHARE, _ALPN, _ECH = 0, 10, 43, 51, 16, 0xFE0D
_X25519, _X25519_MLKEM768 = 29, 4588


def authority(folder: Path, *names: str) -> Path:
    """Make a certificate for these names, which is its own authority; return the file that holds it and its key."""
    file = folder / "names.pem"
    subject = "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(file)]
    command = ["openssl", "req", "-x509", *key, "-days", "2", "-subj", "/CN=names", "-addext", subject]
    made = subprocess.run(command, check=True, capture_output=True).stdout
    with file.open("ab") as out:
        out.write(made)
    return file


class TlsServer:
    """Answers each client with the name that it heard, over and over. `heard` has the names of all whole ClientHellos."""

    def __init__(self, listening: Sequence[socket.socket], certificate: Path) -> None:
        self.heard: list[str | None] = []
        self._listening: dict[tuple[str, int], socket.socket] = {}
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._context.sni_callback = self._hear
        # The name that this thread's client said: others, the daemon among them, come meanwhile.
        self._own = threading.local()
        for each in listening:
            self.listen(each)

    def listen(self, listening: socket.socket) -> None:
        """Serve at one more socket."""
        self._listening[listening.getsockname()[:2]] = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def close(self, address: str) -> None:
        """Serve at an address no more, as far as port 443 goes."""
        self._listening[address, 443].shutdown(socket.SHUT_RDWR)
        self._listening[address, 443].close()

    def _hear(self, _socket: object, name: str | None, _context: ssl.SSLContext) -> None:
        self._own.name = name
        self.heard.append(name)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, self._context.wrap_socket(client, server_side=True) as tls:
            while said := tls.recv(1 << 16):
                tls.sendall(f"{len(said)} bytes for {self._own.name}\n".encode())


def context(certificate: Path, *, alpn: Sequence[str] = ()) -> ssl.SSLContext:
    """Return what a client needs to believe a certificate."""
    made = ssl.create_default_context(cafile=str(certificate))
    if alpn:
        made.set_alpn_protocols(list(alpn))
    return made


def visit(
    trust: ssl.SSLContext, name: str | None, address: str, port: int = 443, *, words: bytes = b"x"
) -> str:
    """Say something to a server by TLS; return its answer, or the name of the error."""
    trust.check_hostname = name is not None
    answer: list[bytes] = []

    def talk() -> None:
        with (
            socket.create_connection((address, port), 3) as plain,
            trust.wrap_socket(plain, server_hostname=name) as tls,
        ):
            tls.sendall(words)
            answer.append(tls.recv(100))

    said = outcome(talk)
    return answer[0].decode().strip() if answer else said


def own_hello(name: str) -> bytes:
    """Return the first flight of this machine's OpenSSL."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def extension(kind: int, body: bytes) -> bytes:
    """Return an extension (RFC 8446, 4.2)."""
    return struct.pack(">HH", kind, len(body)) + body


def server_name(*names: bytes, kind: int = 0) -> bytes:
    """Return a server_name extension (RFC 6066, 3) with these names."""
    entries = b"".join(struct.pack(">BH", kind, len(name)) + name for name in names)
    return extension(_SNI, struct.pack(">H", len(entries)) + entries)


def encrypted_hello() -> bytes:
    """Return an encrypted_client_hello extension as GREASE has it: an outer one, random inside."""
    return extension(
        _ECH,
        b"\0"
        + struct.pack(">HHB", 1, 1, 7)
        + struct.pack(">H", 32)
        + bytes(32)
        + struct.pack(">H", 144)
        + bytes(144),
    )


def key_shares(*, quantum: bool = False, none: bool = False) -> bytes:
    """Return the extensions without which there is no TLS 1.3; with a share of 1,216 bytes where wanted, or with none."""
    groups = [(_X25519, bytes(range(32)))]
    if quantum:
        groups.insert(0, (_X25519_MLKEM768, bytes(1216)))
    shares = b"".join(struct.pack(">HH", group, len(key)) + key for group, key in groups if not none)
    supported = b"".join(struct.pack(">H", group) for group, _ in groups)
    return (
        extension(_VERSIONS, b"\x02\x03\x04")
        + extension(_GROUPS, struct.pack(">H", len(supported)) + supported)
        + extension(13, b"\x00\x06\x04\x03\x08\x04\x08\x07")
        + extension(_KEY_SHARE, struct.pack(">H", len(shares)) + shares)
    )


def grease(count: int = 2) -> bytes:
    """Return extensions that mean nothing (RFC 8701)."""
    return b"".join(extension(0x0A0A + 0x1010 * i, bytes(i)) for i in range(count))


def message(*extensions: bytes, session: int = 32) -> bytes:
    """Return a ClientHello as a handshake message."""
    body = b"\x03\x03" + bytes(range(32)) + bytes([session]) + bytes(session)
    body += b"\x00\x08\x0a\x0a\x13\x01\x13\x02\x13\x03" + b"\x01\x00"
    tail = b"".join(extensions)
    body += struct.pack(">H", len(tail)) + tail if tail else b""
    return b"\x01" + len(body).to_bytes(3, "big") + body


def records(content: bytes, size: int = 16384, kind: int = 22) -> bytes:
    """Return content in TLS records of a size."""
    return b"".join(
        struct.pack(">BHH", kind, 0x0301, len(part)) + part
        for part in (content[i : i + size] for i in range(0, len(content), size))
    )


def hello(name: bytes, *others: bytes, before: bytes = b"", quantum: bool = False) -> bytes:
    """Return a ClientHello in one record, its name behind `before` and in front of `others`."""
    return records(
        message(grease(1), before, server_name(name), *others, key_shares(quantum=quantum), grease(2))
    )


def pieces(data: bytes, *cuts: int) -> list[bytes]:
    """Return the data cut at these places."""
    edges = [0, *cuts, len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def utter(parts: Sequence[bytes], address: str, port: int = 443, *, within: float = 2.0) -> str:
    """Send parts, each in a segment of its own; return `answered`, or the name of the error."""

    def talk() -> None:
        with socket.create_connection((address, port), within) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                client.sendall(part)
            client.settimeout(within)
            if not client.recv(1):
                raise ConnectionResetError(104, "closed")

    said = outcome(talk)
    return "answered" if said == "connected" else said


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Yield the data in two parts, cut at every place."""
    for at in range(1, len(data)):
        yield pieces(data, at)
