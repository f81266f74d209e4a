"""A body ends where its framing says, whatever the pieces, and what follows it is not its own."""

from __future__ import annotations

import pytest
from agentsh_proxy import load as loads
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.request_body import RequestBody
from agentsh_proxy.load import Load

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import parse_request

PLAIN = parse_request(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
CHUNKED = parse_request(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_body_of_a_length_ends_there(size: int):
    body, rest = RequestBody(PLAIN, 5, Load()), b""
    held = b""
    sent = b"helloPOST"
    for at in range(0, len(sent), size):
        data, left = body.take(sent[at : at + size])
        held, rest = held + data, rest + left
        if body.whole:
            rest += sent[at + size :]
            break
    assert (held, rest, body.size, body.whole, body.overrun) == (b"hello", b"POST", 5, True, False)


def test_chunks_and_their_trailers_end_with_the_empty_one():
    body = RequestBody(CHUNKED, 0, Load())
    assert body.take(b"3\r\nhel\r\n2;x=y\r\nlo") == (b"hello", b"")
    assert not body.whole
    assert body.take(b"\r\n0\r\nX-Sum: 3\r\n\r\n") == (b"", b"")
    assert (body.whole, body.overrun, body.size) == (True, False, 5)
    after = RequestBody(CHUNKED, 0, Load())
    after.take(b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    assert (after.whole, after.overrun) == (True, True)
    with pytest.raises(ProtocolError):
        RequestBody(CHUNKED, 0, Load()).take(b"zz\r\n")


def test_what_is_held_comes_back_whole_and_weighs_until_then():
    load = Load()
    body = RequestBody(PLAIN, 5, load)
    assert body.joined(b"all") == b"all"
    body.hold(b"he")
    body.hold(b"ll")
    assert load.size == 4
    assert body.joined(b"o") == b"hello"
    assert load.size == 0


def test_too_much_of_all_bodies_together_is_refused_until_some_is_dropped(monkeypatch):
    monkeypatch.setattr(loads, "MAX_LOAD", 5)
    load = Load()
    first, second = RequestBody(PLAIN, 5, load), RequestBody(PLAIN, 5, load)
    first.hold(b"hell")
    with pytest.raises(RefusalError) as refused:
        second.hold(b"he")
    assert refused.value.status == 503
    second.drop()
    first.drop()
    assert load.size == 0
    second.hold(b"hell")
