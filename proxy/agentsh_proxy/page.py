"""The process behind `metrics`: it answers HTTP with what the supervisor told it last, and knows nothing else.

Confined like a worker. Requests are read strictly, one a connection; there is nothing to send it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
from typing import Any, Final, cast

import orjson

from agentsh_net.core.audit.exposition import CONTENT_TYPE
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links import link
from agentsh_net.core.web.http_access import host_allowed, origin_allowed
from agentsh_net.core.web.http_head import RequestHead, find_head, parse_request
from agentsh_proxy import dashboard, launching

MAX_CONNECTIONS: Final = 64  # scrapers and people
PATIENCE: Final = 10.0  # seconds a client has for its request and for reading the answer
STALE: Final = 15.0  # seconds without a word of the supervisor: it hangs, or is stopped
MAX_TOLD: Final = 4 << 20  # bytes of one telling; a few dozen families are some tens of KiB

_PHRASES: Final = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 421: "Misdirected Request", 503: "Service Unavailable"}  # fmt: skip
_COMMON: Final = (
    b"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n"
    b"Content-Security-Policy: " + dashboard.POLICY.encode() + b"\r\n"
)


def main(arguments: list[str]) -> int:
    """Serve until the supervisor is gone. Returns the exit status."""
    parser = launching.arguments("agentsh_proxy page")
    parser.add_argument("--listen-fd", type=int, required=True, help="a bound socket")
    parser.add_argument("--listen", default="127.0.0.1", help="the address that clients name")
    options = parser.parse_args(arguments)
    if launching.confined(options, "metrics") is None:
        return launching.EXIT_UNCONFINED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the supervisor decides
    asyncio.run(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    board = Board(options.listen, loop)
    await loop.create_unix_connection(lambda: board, sock=socket.socket(fileno=options.link_fd))
    server = await loop.create_server(
        lambda: Visit(board), sock=socket.socket(fileno=options.listen_fd), backlog=MAX_CONNECTIONS
    )
    await board.ended
    server.close()


class Board(asyncio.Protocol):
    """What the supervisor told last."""

    def __init__(self, listen: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._framer = link.Framer(MAX_TOLD)
        self._told: dict[str, Any] = {}
        self._at = float("-inf")
        self.listen = listen
        self.visits = 0
        self.ended: asyncio.Future[None] = loop.create_future()

    def data_received(self, data: bytes) -> None:
        """Take what is told."""
        for payload in self._framer.feed(data):
            self._told = orjson.loads(payload)
            self._at = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """End with the supervisor."""
        if not self.ended.done():
            self.ended.set_result(None)

    def answer(self, path: bytes) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        fresh = self._loop.time() - self._at < STALE
        problems = [str(p) for p in self._told.get("problems", ["starting"])]
        text = "text/plain; charset=utf-8"
        match path:
            case b"/":
                return 200, "text/html; charset=utf-8", dashboard.PAGE
            case b"/healthz":
                return (200, text, b"ok\n") if fresh else (503, text, b"the supervisor tells nothing\n")
            case b"/readyz" if fresh and not problems:
                return 200, text, b"ready\n"
            case b"/readyz":
                return (
                    503,
                    text,
                    "\n".join(problems if fresh else ["the supervisor tells nothing"]).encode() + b"\n",
                )
            case b"/metrics" if fresh:
                return 200, CONTENT_TYPE, str(self._told.get("text", "")).encode()
            case b"/state.json" if fresh:
                return 200, "application/json", orjson.dumps(self._told.get("state", {}))
            case b"/metrics" | b"/state.json":
                return 503, text, b"the supervisor tells nothing\n"
            case _:
                return 404, text, b"there is /metrics, /healthz, /readyz and /\n"


class Visit(asyncio.Protocol):
    """One connection: one request, one answer."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection up, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._board.visits += 1
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._transport.abort)
        if self._board.visits > MAX_CONNECTIONS:
            self._reply(503, "text/plain", b"too many connections\n")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """Count it out."""
        self._board.visits -= 1
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Read the head; what follows it is of no interest."""
        if self._transport is None or self._transport.is_closing():
            return
        self._buffer += data
        try:
            length = find_head(self._buffer)
            if length:
                head = parse_request(self._buffer[:length])
                status, kind, body = self._answer(head)
                self._reply(status, kind, body, bodiless=head.method == "HEAD")
        except ProtocolError as error:
            self._reply(400, "text/plain; charset=utf-8", f"{error}\n".encode())

    def _answer(self, head: RequestHead) -> tuple[int, str, bytes]:
        text = "text/plain; charset=utf-8"
        if not host_allowed(head.host, self._board.listen):
            return (
                421,
                text,
                b"the Host of the request is not this page's: reach it as localhost or by its IP address\n",
            )
        if head.origin is not None and not origin_allowed(head.origin):
            return 403, text, b"requests from web pages of other origins are not answered\n"
        if head.method not in {"GET", "HEAD"}:
            return 405, text, b"there is nothing to send here\n"
        return self._board.answer(head.target.partition(b"?")[0])

    def _reply(self, status: int, kind: str, body: bytes, *, bodiless: bool = False) -> None:
        assert self._transport is not None  # noqa: S101 - it was made
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        )
        self._transport.write(head.encode() + _COMMON + b"\r\n" + (b"" if bodiless else body))
        self._transport.close()
