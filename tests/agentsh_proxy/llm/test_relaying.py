"""An answer that nobody reads keeps its bytes, is framed as its client can take it, and is never ended falsely."""

from __future__ import annotations

import pytest
from agentsh_proxy.llm.relaying import Client, Relay, Tapped, opening

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import parse_response

BOTH = Client(chunks=True, keep_alive=True)
OLD = Client(chunks=False, keep_alive=False)
SSE = parse_response(
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
JSON = parse_response(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n")


def test_a_status_line_keeps_its_reason_and_gets_this_hops_version():
    old = parse_response(b"HTTP/1.0 418 I'm a teapot\r\n\r\n")
    assert (
        opening(old, b"\r\nA: b", closing=True)
        == b"HTTP/1.1 418 I'm a teapot\r\nA: b\r\nConnection: close\r\n\r\n"
    )


def test_a_relay_frames_as_the_client_can_take_it():
    length = Relay(JSON, BOTH)
    assert length.feed(b"{}", last=True).endswith(b"Content-Length: 2\r\n\r\n{}")
    chunks = Relay(SSE, BOTH)
    assert chunks.feed(b"ab", last=False).endswith(b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
    assert chunks.feed(b"", last=True) == b"0\r\n\r\n"
    plain = Relay(SSE, OLD)
    assert plain.feed(b"ab", last=True).endswith(b"Connection: close\r\n\r\nab")
    assert plain.closing


def test_a_relay_that_breaks_is_cut_without_an_end():
    relay = Relay(SSE, BOTH)
    relay.feed(b"ab", last=False)
    assert relay.fail("gone") == b""
    assert relay.closing
    assert not relay.done


class Reader:
    def __init__(self) -> None:
        self.read_so_far: list[tuple[bytes, bool]] = []

    def read(self, data: bytes, *, last: bool) -> None:
        self.read_so_far.append((data, last))
        if data == b"bad":
            raise ProtocolError("stop")


def test_who_taps_a_relay_reads_what_passes_before_it_does_and_can_stop_it():
    reader = Reader()
    tapped, relay = Tapped(SSE, BOTH, reader), Relay(SSE, BOTH)
    assert tapped.feed(b"ab", last=False) == relay.feed(b"ab", last=False)
    with pytest.raises(ProtocolError):
        tapped.feed(b"bad", last=False)
    assert tapped.feed(b"", last=True) == relay.feed(b"", last=True)
    assert reader.read_so_far == [(b"ab", False), (b"bad", False), (b"", True)]
    assert (tapped.started, tapped.done, tapped.closing) == (True, True, False)
