"""An answer that nobody reads keeps its bytes, is framed as its client can take it, and is never ended falsely."""

from __future__ import annotations

from agentsh_proxy.relaying import Client, Relay, opening

from agentsh_net.core.http_head import parse_response

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
