"""A provider is asked for a WebSocket without extensions, and its frames are heard only after it agreed to just that."""

from __future__ import annotations

from typing import Any

import pytest
from agentsh_proxy.llm.websocket_upstream import WebSocketUpstream

from agentsh_net.core.web.http_head import MAX_HEAD

AGREED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-A: b\r\n\r\n"


class Transport:
    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data


class Listener:
    """Keeps what it is told, bytes of frames joined."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.frames = b""

    def agreed(self, head: bytes) -> None:
        self.told.append(head)

    def refused(self, status: int, why: str) -> None:
        self.told.append((status, why))

    def received(self, data: bytes) -> None:
        self.frames += data

    def writable(self, *, writable: bool) -> None:
        self.told.append(writable)

    def lost(self) -> None:
        self.told.append("lost")


def connected() -> tuple[WebSocketUpstream, Listener, Transport]:
    listener, transport = Listener(), Transport()
    upstream = WebSocketUpstream(listener)
    upstream.connection_made(transport)
    return upstream, listener, transport


def test_the_request_asks_for_no_extensions() -> None:
    upstream, _, transport = connected()
    upstream.ask(
        b"GET /v1/responses HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Extensions: permessage-deflate\r\nX: y"
    )
    assert transport.sent == (
        b"GET /v1/responses HTTP/1.1\r\nHost: h\r\nX: y\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_follow_the_head_however_the_bytes_are_cut(size: int) -> None:
    upstream, listener, _ = connected()
    sent = AGREED + b"\x81\x01a\r\n\r\n"
    for at in range(0, len(sent), size):
        upstream.data_received(sent[at : at + size])
    (head,) = listener.told
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"X-A: b\r\n" in head
    assert listener.frames == b"\x81\x01a\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 502),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", 401),
        (AGREED.replace(b"X-A: b", b"Sec-WebSocket-Extensions: permessage-deflate"), 502),
        (b"nonsense\r\n\r\n", 502),
        (b"HTTP/1.1 101 S\r\nX: " + b"x" * MAX_HEAD, 502),
    ],
    ids=["an answer", "an error", "an extension", "no HTTP", "a head without end"],
)
def test_whatever_is_no_agreement_is_refused(answer: bytes, status: int) -> None:
    upstream, listener, _ = connected()
    upstream.data_received(answer + b"\x81\x01a")
    ((told, why),) = listener.told
    assert told == status
    assert why
    assert listener.frames == b""


def test_its_pace_and_its_end_are_told() -> None:
    upstream, listener, transport = connected()
    upstream.pause_writing()
    upstream.resume_writing()
    upstream.connection_lost(None)
    upstream.write(b"too late")
    assert (listener.told, transport.sent) == ([False, True, "lost"], b"")
