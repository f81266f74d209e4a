"""Connections to upstreams are used again whenever that is sound, and never when it is not."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from agentsh_proxy.chunks import LAST_CHUNK, chunk
from agentsh_proxy.llm.answers import StreamInspection
from agentsh_proxy.llm.choosing import choose
from agentsh_proxy.llm.upstream import UpstreamConnection
from agentsh_proxy.llm.view import Origin
from agentsh_proxy.llm.write_coalescing import WriteCoalescer
from hypothesis import given, settings
from hypothesis import strategies as st
from inspected import BOTH, inspection
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, chunked, response

from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.web.familiar_heads import AnswerHeads

MESSAGES = "/anthropic/v1/messages"
FILES = "/anthropic/v1/files"
STREAM = b'{"stream":true}'
SSE = chunked(b"event: ping\ndata: {}\n\n")


@pytest.mark.parametrize(
    "answer", [[response(b"{}")], SSE, [b"".join(SSE)], [b"HTTP/1.1 204 No Content\r\n\r\n"]]
)
@pytest.mark.parametrize("path", [MESSAGES, FILES])
@on_loop
async def test_one_connection_serves_request_after_request(opened, answer, path):
    upstream = await opened(Upstream(answering(*answer)))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(20):
        assert (await client.ask(request(path, STREAM))).whole
    assert (upstream.connections, len(upstream.requests)) == (1, 20)
    assert (proxy.counts.upstream_opened, proxy.counts.upstream_reused) == (1, 19)


class _Taker:
    """Who asked: feeds a stream's inspection as an exchange does, with or without what may leave as it came."""

    method = "POST"
    uploaded = True

    def __init__(self, *, short: bool) -> None:
        self._short = short
        self._stream: StreamInspection | None = None
        self.notes: list = []
        self.out = b""
        self.relayed = 0
        self.ended = False

    def on_head(self, head):
        blocking = inspection(self.notes)._replace(
            judge=lambda call: Verdict(Action.BLOCK if call.name == "bad" else Action.ALLOW, "no")
        )
        self._stream = choose(head, BOTH, blocking)

    def relays(self, data, whole):
        if not (self._short and self._stream.passes(data)):
            return False
        self.relayed += 1
        self.out += whole
        return True

    def on_data(self, data, *, last):
        self.out += self._stream.feed(data, last=last)
        self.ended = self.ended or self._stream.done

    def on_lost(self, error, *, answered):
        self.ended = True
        self.notes.append((str(error), answered))


def taken(reads, *, short):
    pool = SimpleNamespace(writes=None, heads=defaultdict(AnswerHeads), idle=defaultdict(list), now=0.0)
    pool.writes = WriteCoalescer(lambda _: None)
    connection, taker = UpstreamConnection(pool, Origin("a", 1, tls=False)), _Taker(short=short)
    connection.connection_made(Mock(is_closing=lambda: False))
    connection.ask(taker, b"")
    for read in reads:
        if taker.ended:
            break
        connection.data_received(read)
    return taker


def _text(said: bytes, behind: bytes = b"}}\n\n") -> bytes:
    return (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'
        + said
        + b'"'
        + behind
    )


_EVENTS = st.one_of(
    st.sampled_from([b"Hi", b"a tool_use", b"\\n", b"\\u0074ool", b'","x":"', "\u2019".encode(), b"\xff", b"x" * 1100]).map(_text),
    st.just(_text(b"a", b"}   }\n\n")),
    st.just(b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'),
    st.just(b'event: ping\ndata: {"type": "ping"}\n\n'),
    st.just(b'event: content_block_stop\ndata: {"type":"content_block_stop","index":1}\n\n'),
    st.sampled_from(["bad", "good"]).map(
        lambda name: b'event: content_block_start\ndata: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"%b","input":{}}}\n\n' % name.encode()
    ),
)  # fmt: skip
_CHUNKED = st.sampled_from(
    [b"%x\r\n%b\r\n"] * 6 + [b"%X\r\n%b\r\n", b"0%x\r\n%b\r\n", b"%x;a\r\n%b\r\n", b"%x\r\n%b\n\n"]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(_EVENTS, _CHUNKED), max_size=14),
    st.lists(st.tuples(st.integers(0, 13), st.integers(1, 300)), max_size=4),
    st.booleans(),
)
def test_a_stream_leaves_the_same_where_whole_chunks_leave_as_they_came(events, cuts, ended):
    reads = [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        *(spelling % (len(event), event) for event, spelling in events),
        *([LAST_CHUNK] if ended else []),
    ]
    for at, place in cuts:  # a read ends within a chunk, with what is left before the next
        if at + 1 < len(reads):
            whole = reads[at] + reads[at + 1]
            reads[at], reads[at + 1] = whole[:place], whole[place:]
    reads = [read for read in reads if read]
    short, long = taken(reads, short=True), taken(reads, short=False)
    assert (short.out, short.notes, short.ended) == (long.out, long.notes, long.ended)


def test_most_of_a_stream_of_text_leaves_as_the_very_chunks_that_came():
    begin = b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    stream = taken([head, chunk(begin), *(chunk(_text(b"Hi")) for _ in range(9)), LAST_CHUNK], short=True)
    assert (stream.relayed, stream.notes, stream.ended) == (8, [], True)


NOT_REUSABLE = {
    "it says close": [response(b"{}", b"Connection: close")],
    "HTTP/1.0": [b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"],
    "more than its length": [response(b"{}") + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"],
    "more after the last chunk": [
        b"".join(chunked(b"{}", content_type=b"application/json")) + b"HTTP/1.1 200 OK\r\n\r\n"
    ],
}


@pytest.mark.parametrize("name", NOT_REUSABLE)
@on_loop
async def test_a_connection_that_may_be_out_of_step_is_not_used_again(opened, name):
    upstream = await opened(Upstream(answering(*NOT_REUSABLE[name])))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(3):
        assert (await client.ask(request(MESSAGES, b"{}"))).body == b"{}"
    assert upstream.connections == 3


@on_loop
async def test_bytes_that_nobody_asked_for_end_an_idle_connection(opened):
    async def script(conversation, _):
        await conversation.send(response(b"{}"))
        await asyncio.sleep(0.02)
        await conversation.send(response(b"poison"))

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    await client.ask(request(MESSAGES, b"{}"))
    await until(lambda: not any(proxy.service.pool.idle.values()))
    assert (await client.ask(request(MESSAGES, b"{}"))).body == b"{}"


@on_loop
async def test_a_stale_connection_is_noticed_and_the_request_sent_again_once(opened):
    async def once(conversation, _):
        if len(upstream.requests) == 2:
            conversation.cut()  # as an upstream that closed while the request was under way
        else:
            await conversation.send(response(b'{"n":%d}' % len(upstream.requests)))

    upstream = await opened(Upstream(once))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(MESSAGES, b'{"a":1}'))).body == b'{"n":1}'
    assert (await client.ask(request(MESSAGES, b'{"a":2}'))).body == b'{"n":3}'
    assert [r.body for r in upstream.requests] == [b'{"a":1}', b'{"a":2}', b'{"a":2}']


@on_loop
async def test_a_request_is_not_sent_again_on_a_new_connection_or_after_a_byte_of_an_answer(opened):
    async def cut(conversation, _):
        if len(upstream.requests) > 1:
            await conversation.send(b"HTTP/1.1 2")
        else:
            await conversation.send(response(b"{}"))
            return
        conversation.writer.close()

    upstream = await opened(Upstream(cut))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(MESSAGES, b"{}"))).status == 200
    assert (await client.ask(request(MESSAGES, b"{}"))).status == 502
    assert len(upstream.requests) == 2
    assert (await client.ask(request(MESSAGES, b"{}"))).status == 502
    assert len(upstream.requests) == 3


@on_loop
async def test_a_streamed_upload_is_never_sent_again(opened):
    async def script(conversation, _):
        if len(upstream.requests) == 2:
            conversation.cut()
        else:
            await conversation.send(response(b"{}"))

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(FILES, b"x", b"Content-Type: image/png"))).status == 200
    assert (await client.ask(request(FILES, b"x", b"Content-Type: image/png"))).status == 502
    assert len(upstream.requests) == 2
