"""A request reaches the right upstream as it was sent, and its answer the client as it was sent, but for what policy stops.

Failures come as the provider's own errors, and nothing half-sent is left for a client to act on.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib

import brotli
import orjson
import pytest
import zstandard
from agentsh_proxy.llm import exchange
from agentsh_proxy.llm.upstream import UpstreamConnection
from agentsh_proxy.llm.view import unfold
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import on_loop, until
from loopback.client import Client, raw, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, chunked, response

MESSAGES = "/anthropic/v1/messages"
CHAT = "/openai/v1/chat/completions"
FILES = "/anthropic/v1/files"
UPLOAD = b"Content-Type: multipart/form-data; boundary=x"
STREAM = b'{"stream":true}'


def event(kind: str, **data) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **data}))


START = event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "content": []})
TEXT = (
    event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + event("content_block_delta", index=0, delta={"type": "text_delta", "text": "hello \u2028 w\u00f6rld"})
    + event("content_block_stop", index=0)
)


def call(name: str, index: int = 1) -> list[bytes]:
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    return [
        event("content_block_start", index=index, content_block=block),
        event(
            "content_block_delta",
            index=index,
            delta={"type": "input_json_delta", "partial_json": '{"path": "/etc"}'},
        ),
        event("content_block_stop", index=index),
    ]


END = event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}) + event(
    "message_stop"
)
ALLOWED = START + TEXT + b"".join(call("get_weather")) + END
DENIED = START + TEXT + b"".join(call("delete_files")) + END
WHOLE = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use", "x": 1.50}


def answered(totals: dict[str, int]) -> tuple[int, int]:
    """How many heads and how many ends of answers were counted."""
    heads, ends = (
        sum(n for name, n in totals.items() if name.startswith(kind) and name != f"{kind}ms")
        for kind in ("head.", "answer.")
    )
    return heads, ends


def whole(name: str) -> bytes:
    return orjson.dumps(
        WHOLE | {"content": [{"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": "/etc"}}]}
    )


# What leaves.


@on_loop
async def test_an_inspected_request_leaves_as_it_came_but_for_this_hop(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    body = b'{ "model": "m",  "stream":false }'
    fields = (
        b"X-API-Key:   s3cret",
        b"anthropic-BETA: a,b",
        b"Accept-Encoding: gzip, br",
        b"Connection: X-Hop",
        b"X-Hop: 1",
    )
    await client.ask(request(MESSAGES + "?beta=true&x=%2F", body, *fields))
    (received,) = upstream.requests
    assert received.line == b"POST /v1/messages?beta=true&x=%2F HTTP/1.1"
    assert received.body == body
    assert received.values("host") == [b"127.0.0.1:%d" % upstream.port]
    assert received.values("accept-encoding") == [b"identity"]
    assert b"\r\nX-API-Key:   s3cret\r\nanthropic-BETA: a,b\r\n" in received.head + b"\r\n"
    assert received.values("x-hop") == received.values("connection") == []


@pytest.mark.parametrize(
    ("version", "hop", "asked"),
    [
        (b"HTTP/1.1", b"", ()),
        (b"HTTP/1.1", b"\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5", ()),
        (b"HTTP/1.0", b"", ()),
        (b"HTTP/1.1", b"", (b"Connection: close",)),
    ],
)
@on_loop
async def test_a_harmless_answer_arrives_as_it_was_sent_but_for_this_hop(opened, version, hop, asked):
    text = orjson.dumps(WHOLE | {"content": [{"type": "text", "text": "hello"}]})
    length = b"\r\ncontent-LENGTH:  %d " % len(text)
    upstream = await opened(
        Upstream(answering(version + b" 200 Fine  thing\r\nX-B:  1\r\nContent-Type: application/json" + length + hop + b"\r\nx-a: \xe9\r\n\r\n" + text))
    )  # fmt: skip
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, b"{}", *asked))
    end = b"\r\nConnection: close" if asked else b""
    assert answer.head == (
        b"HTTP/1.1 200 Fine  thing\r\nX-B:  1\r\nContent-Type: application/json"
        + length
        + b"\r\nx-a: \xe9"
        + end
    )
    assert answer.body == text
    assert not asked or await client.closed()


@on_loop
async def test_a_connection_that_is_gone_before_it_was_asked_is_a_502(opened, monkeypatch):
    monkeypatch.setattr(UpstreamConnection, "ask", lambda *_, **__: False)
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, b"{}"))
    assert answer.status == 502
    assert b"before it was asked" in answer.body
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/openai/v1/chat/completions", b"/v1/chat/completions"),
        ("/openai/chat/completions", b"/v1/chat/completions"),
        ("/v1/chat/completions", b"/v1/chat/completions"),
        ("/v1/messages", b"/v1/messages"),
        ("/corp/v1/models?a=b", b"/team/v1/models?a=b"),
        ("/anthropic/v1/models/x%3Ay", b"/v1/models/x%3Ay"),
        ("http://localhost:1/anthropic/v1/models", b"/v1/models"),
    ],
)
@on_loop
async def test_base_paths_are_kept(opened, path, asked):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(path, b"{}"))).status == 200
    assert upstream.requests[0].line.split()[1] == asked


@on_loop
async def test_of_equal_requests_on_one_connection_each_answer_is_read_and_a_reload_is_minded(opened):
    text = orjson.dumps(WHOLE | {"content": [{"type": "text", "text": "hello"}]})
    answers = iter([text, whole("delete_files"), text, whole("delete_files")])

    async def serve(conversation, _):
        await conversation.send(response(next(answers), b"ETag: x"))

    upstream = await opened(Upstream(serve))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    got = [await client.ask(request(MESSAGES, b"{}")) for _ in range(3)]
    assert (got[0].body, got[2].body) == (text, text)
    assert b"blocked by policy" in got[1].body
    proxy.service.view = unfold(snapshot(upstream.port, enforce_policy=False))
    assert (await client.ask(request(MESSAGES, b"{}"))).body == whole("delete_files")
    counts = proxy.service.counts
    assert (counts.requests, counts.upstream_opened, counts.upstream_reused) == (4, 1, 3)
    assert answered(counts.totals()) == (4, 4)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[1, 2]", b"application/json"),
        (b'\xef\xbb\xbf{"a": 1}', b"application/json"),
        (b'{"a": 1}', b"text/plain"),
        (b'{"a": "\\u0041"}', b"application/json"),
    ],
)
@on_loop
async def test_an_odd_answer_without_a_call_leaves_as_it_came_too(opened, body, kind):
    upstream = await opened(Upstream(answering(response(body, content_type=kind))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(2):
        assert (await client.ask(request(MESSAGES, b"{}"))).body == body


@on_loop
async def test_a_session_is_named_by_its_token_and_by_nothing_else(opened):
    upstream = await opened(Upstream(answering(response(whole("delete_files")))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    # sha256("test")
    proxy.service.sessions = {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": "agent-7"}
    client = await opened(Client(proxy.port))
    assert (await client.ask(request("/s/test" + MESSAGES, b"{}", b"X-Session: root"))).status == 200
    assert (await client.ask(request(MESSAGES, b"{}"))).status == 200
    await until(lambda: len(proxy.events) == 2)
    assert [e["session_id"] for e in proxy.events] == ["agent-7", "default"]
    assert upstream.requests[0].line == b"POST /v1/messages HTTP/1.1"


@on_loop
async def test_an_uninspected_upload_streams_and_a_slow_upstream_slows_it(opened):
    go = asyncio.Event()
    total = 0

    async def serve(reader, writer):
        nonlocal total
        await reader.readuntil(b"\r\n\r\n")
        await go.wait()
        while total < 32 << 20:
            total += len(await reader.read(1 << 20))
        writer.write(response(b"{}"))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 16)
    port = listening.sockets[0].getsockname()[1]
    proxy = await opened(Proxy(snapshot(port, proxy={"max_request": 1024})))
    client = await opened(Client(proxy.port))
    sending = asyncio.ensure_future(client.send(request(FILES, b"x" * (32 << 20), UPLOAD)))
    await until(lambda: any(connection._upload_paused for connection in proxy.service._clients))
    assert not sending.done()
    go.set()
    assert (await client.answer()).status == 200
    await sending
    assert total == 32 << 20
    listening.close()


CODINGS = [
    (b"gzip", gzip.compress),
    (b"deflate", zlib.compress),
    (b"br", brotli.compress),
    (b"zstd", zstandard.compress),
    (b"gzip, zstd", lambda data: zstandard.compress(gzip.compress(data))),
]


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
@on_loop
async def test_a_compressed_request_is_read_and_leaves_compressed(opened, coding, encode):
    upstream = await opened(Upstream(answering(*chunked(DENIED))))
    proxy = await opened(Proxy(snapshot(upstream.port, fail_closed=True)))
    client = await opened(Client(proxy.port))
    body = encode(STREAM)  # once: gzip writes the time
    answer = await client.ask(request(MESSAGES, body, b"Content-Encoding: " + coding))
    assert b"blocked by policy" in answer.body
    assert upstream.requests[0].body == body
    assert upstream.requests[0].values("content-encoding") == [coding]


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"gzip, zstd", b""])
@on_loop
async def test_a_connector_hides_in_no_compressed_request(opened, coding):
    body = orjson.dumps(
        {"mcp_servers": [{"type": "url", "name": "weather", "url": "http://127.0.0.1:9/mcp"}]}
    )
    # Not labelled at all: some provider may look at the bytes.
    encode = dict(CODINGS).get(coding, gzip.compress)
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, denied_servers=["weather"])))
    client = await opened(Client(proxy.port))
    fields = [b"Content-Encoding: " + coding] if coding else []
    answer = await client.ask(request(MESSAGES, encode(body), *fields))
    assert answer.status == (403 if coding else 415)
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        (b"compress", b"xx", 415),
        (b"br, br, br, br", b"xx", 415),
        (b"br", b"xx", 400),
        (b"zstd", b"xx", 400),
        (b"zstd", zstandard.compress(b" " * (2 << 20)), 413),
        (b"gzip", b"junk", 400),
        (b"gzip", gzip.compress(b" " * (2 << 20)), 413),
        (b"", b"{", 400),
    ],
)
@on_loop
async def test_a_request_that_cannot_be_read_goes_by_fail_closed(opened, coding, body, status):
    upstream = await opened(Upstream())
    for fail_closed in (True, False):
        proxy = await opened(
            Proxy(snapshot(upstream.port, fail_closed=fail_closed, proxy={"max_request": 1 << 20}))
        )
        client = await opened(Client(proxy.port))
        answer = await client.ask(
            request(MESSAGES, body, *([b"Content-Encoding: " + coding] if coding else []))
        )
        assert answer.status == (status if fail_closed else 200)
        await until(lambda proxy=proxy: proxy.events)
        assert proxy.events[0]["type"] == "llm_response_uninspected"
        assert proxy.events[0]["action"] == ("block" if fail_closed else "allow")
    assert len(upstream.requests) == 1
    assert upstream.requests[0].body == body


HIDDEN = {
    "mcp_servers twice": b'{"mcp_servers":[{"name":"evil","url":"https://evil.test"}],"mcp_servers":[]}',
    "in UTF-16": '{"mcp_servers":[{"name":"evil","url":"https://evil.test"}]}'.encode("utf-16"),
    "too deep": b'{"a":'
    + b"[" * 300
    + b"]" * 300
    + b',"mcp_servers":[{"name":"evil","url":"https://evil.test"}]}',
}


@pytest.mark.parametrize("name", HIDDEN)
@on_loop
async def test_a_request_that_may_hide_a_server_passes_only_where_nothing_is_enforced(opened, name):
    upstream = await opened(Upstream(answering(response(b"{}"))))
    for enforce in (True, False):
        proxy = await opened(Proxy(snapshot(upstream.port, enforce_policy=enforce)))
        client = await opened(Client(proxy.port))
        answer = await client.ask(request(MESSAGES, HIDDEN[name]))
        assert answer.status == (400 if enforce else 200)
        assert [r.body for r in upstream.requests] == ([] if enforce else [HIDDEN[name]])
        await until(lambda proxy=proxy: proxy.events)
        (told,) = proxy.events
        assert (told["action"], told.get("would")) == (("block", None) if enforce else ("allow", "block"))


@on_loop
async def test_a_denied_connector_is_refused_before_the_request_leaves(opened):
    upstream = await opened(Upstream())
    policy = snapshot(upstream.port, server_policy="denylist", denied_servers=[{"id": "weather"}])
    proxy = await opened(Proxy(policy))
    client = await opened(Client(proxy.port))
    servers = [{"type": "url", "name": "weather", "url": "http://127.0.0.1:9/mcp"}]
    answer = await client.ask(request(MESSAGES, orjson.dumps({"stream": True, "mcp_servers": servers})))
    assert answer.status == 403
    assert orjson.loads(answer.body)["type"] == "error"
    assert upstream.connections == 0
    await until(lambda: proxy.events)
    (told,) = proxy.events
    assert (told["type"], told["action"], told["server_url"]) == (
        "mcp_connector_request",
        "block",
        "http://127.0.0.1:9/mcp",
    )
    assert (await client.ask(request(MESSAGES, b"{}"))).status == 200


@pytest.mark.parametrize(
    "path", ["/anthropic/v1/agents", "/openai/v1/realtime/client_secrets", "/corp/v1beta/triggers"]
)
@pytest.mark.parametrize(
    ("name", "mcp", "status"),
    [("weather", {"denied_servers": [{"id": "weather"}], "server_policy": "denylist"}, 403), ("weather", {}, 200),
     ("files", {}, 403), ("files", {"enforce_policy": False}, 200)],
)  # fmt: skip
@on_loop
async def test_servers_that_an_unread_request_names_are_judged_all_the_same(opened, path, name, mcp, status):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, **mcp)))
    client = await opened(Client(proxy.port))
    url = {"url": "http://127.0.0.1:9/mcp"} if name == "weather" else {}
    body = orjson.dumps({"tools": [{"type": "mcp_server", "name": name, **url}]})
    assert (await client.ask(request(path, body))).status == status
    assert [r.body for r in upstream.requests] == ([] if status == 403 else [body])
    await until(lambda: len(proxy.events) == 2)
    told = next(e for e in proxy.events if e["type"] == "mcp_connector_request")
    assert (told["server_id"], told["action"]) == (name, "block" if status == 403 else "allow")


@on_loop
async def test_an_mcp_server_beside_a_provider_passes_in_audit_and_it_is_told_what_would_have_been(opened):
    upstream = await opened(Upstream())
    beside = [{"id": "beside", "type": "http", "url": f"http://127.0.0.1:{upstream.port}/v1/mcp"}]
    proxy = await opened(Proxy(snapshot(upstream.port, servers=beside, enforce_policy=False)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request("/openai/v1/mcp", b"{}"))).status == 200
    await until(lambda: proxy.events)
    told = proxy.events[0]
    assert (told["action"], told["would"], told["rule"]) == ("allow", "block", "protocol")
    assert told["detail"] == "/v1/mcp is the MCP server 'beside'"


@on_loop
async def test_an_endpoint_whose_calls_nobody_reads_goes_by_fail_closed(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request("/openai/v1/threads/runs", b"{}"))).status == 200
    await until(lambda: proxy.events)
    assert (proxy.events[0]["cause"], proxy.events[0]["detail"]) == ("unknown_dialect", "/v1/threads/runs")
    proxy.swap(snapshot(upstream.port, fail_closed=True))
    answer = await client.ask(request("/openai/v1/threads/runs", b"{}"))
    assert answer.status == 404
    assert "not available in this version" in orjson.loads(answer.body)["error"]["message"]
    await until(lambda: len(proxy.events) == 2)
    assert [e["action"] for e in proxy.events] == ["allow", "block"]
    assert proxy.events[1]["detail"] == "/v1/threads/runs"
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/anthropic/v1/chat/completions",
        "/corp/v1/messages",
        "/anthropic/V1/Messages",
        "/anthropic/v1%2fmessages",
        "/anthropic/v1/messages/",
    ],
)
@on_loop
async def test_calls_cannot_hide_behind_another_providers_path_or_spelling(opened, path):
    name = "delete_files"
    chat = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}]}}]}  # fmt: skip
    body = orjson.dumps(chat) if "chat" in path else whole(name)
    upstream = await opened(Upstream(answering(response(body))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(path, b"{}"))
    assert b"blocked by policy" in answer.body


# What comes back.


def anthropic_stream(kinds: list[str]) -> bytes:
    frames, index = [START], 0
    for kind in kinds:
        if kind == "text":
            frames += [
                event("content_block_start", index=index, content_block={"type": "text", "text": ""}),
                event(
                    "content_block_delta",
                    index=index,
                    delta={"type": "text_delta", "text": "w\u00f6rld \u2028 \\u00e9"},
                ),
                event("content_block_stop", index=index),
            ]
        elif kind == "call":
            frames += call("get_weather", index)
        else:
            frames.append({"ping": event("ping"), "comment": b": hello\n\n", "blank": b"\n"}[kind])
        index += kind in ("text", "call")
    return b"".join([*frames, END])


def chat_stream(kinds: list[str]) -> bytes:
    frames = []
    for number, kind in enumerate(kinds):
        delta = {"content": f"w\u00f6rld {number}"}
        if kind == "call":
            delta = {
                "tool_calls": [
                    {
                        "index": number,
                        "id": f"c{number}",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": "{}"},
                    }
                ]
            }
        frames.append(
            b"data: %b\n\n"
            % orjson.dumps({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        )
    frames.append(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    return b"".join([*frames, b"data: [DONE]\n\n"])


@given(
    kinds=st.lists(st.sampled_from(["text", "call", "ping", "comment", "blank"]), max_size=6),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    cuts=st.lists(st.integers(1, 90), max_size=40),
    path=st.sampled_from([MESSAGES, CHAT, FILES]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_without_a_block_the_client_gets_the_very_bytes(kinds, newline, cuts, path):
    sent = (chat_stream if path == CHAT else anthropic_stream)(kinds).replace(b"\n", newline)
    pieces, rest = [], sent
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces.append(rest)

    @on_loop
    async def law(opened):
        upstream = await opened(Upstream(answering(*chunked(*pieces))))
        proxy = await opened(Proxy(snapshot(upstream.port)))
        client = await opened(Client(proxy.port))
        answer = await client.ask(request(path, STREAM))
        assert answer.whole
        assert answer.body == sent

    law()


@on_loop
async def test_an_unread_answer_passes_with_its_fields_and_framing(opened):
    body = os.urandom(300_000)
    sent = response(
        body,
        b'ETag: "x"',
        b"X-Request-Id: 7",
        b"Connection: keep-alive, X-Hop",
        b"X-Hop: 1",
        status=b"201 Made",
        content_type=b"image/png",
    )
    upstream = await opened(Upstream(answering(sent)))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(FILES, b"x"))
    assert (
        answer.head
        == b'HTTP/1.1 201 Made\r\nContent-Type: image/png\r\nContent-Length: 300000\r\nETag: "x"\r\nX-Request-Id: 7'
    )
    assert answer.body == body
    assert proxy.events == []


@on_loop
async def test_a_denied_call_is_replaced_in_the_stream_and_told(opened):
    upstream = await opened(Upstream(answering(*chunked(DENIED, fields=(b"Request-Id: req_9",)))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, STREAM))
    assert b'tool_use"' not in answer.body.replace(b'"stop_reason":"tool_use"', b"")
    assert b"[agentsh] Tool 'delete_files' blocked by policy" in answer.body
    assert answer.body.startswith(START + TEXT)
    await until(lambda: proxy.events)
    (told,) = proxy.events
    assert (told["type"], told["action"], told["tool_name"]) == (
        "mcp_tool_call_intercepted",
        "block",
        "delete_files",
    )
    assert (told["request_id"], told["server_id"], told["input"]) == ("req_9", "files", {"path": "/etc"})
    assert proxy.counts.calls_blocked == 1


@pytest.mark.parametrize(("coding", "encode"), [(b"", bytes), *CODINGS])
@on_loop
async def test_a_denied_call_is_replaced_in_a_json_answer(opened, coding, encode):
    sent = response(encode(whole("delete_files")), *([b"Content-Encoding: " + coding] if coding else []))
    upstream = await opened(Upstream(answering(sent)))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, b"{}"))
    message = orjson.loads(answer.body)
    assert [b["type"] for b in message["content"]] == ["text"]
    assert message["x"] == 1.5
    assert answer.values("content-encoding") == []
    assert answer.values("content-length") == [b"%d" % len(answer.body)]


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
@on_loop
async def test_a_compressed_stream_is_read_and_leaves_plain(opened, coding, encode):
    data = encode(DENIED)
    upstream = await opened(
        Upstream(
            answering(
                *chunked(
                    *(data[i : i + 9] for i in range(0, len(data), 9)),
                    fields=(b"Content-Encoding: " + coding,),
                )
            )
        )
    )
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, STREAM))
    assert b"blocked by policy" in answer.body
    assert answer.values("content-encoding") == []


@pytest.mark.parametrize(
    "content_type",
    [b"text/plain", b"TEXT/EVENT-STREAM; charset=Latin1", b"application/json", b"application/octet-stream"],
)
@pytest.mark.parametrize("stream", [STREAM, b"{}"])
@on_loop
async def test_a_stream_under_any_content_type_is_read(opened, content_type, stream):
    upstream = await opened(Upstream(answering(*chunked(DENIED, content_type=content_type))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert b"blocked by policy" in (await client.ask(request(MESSAGES, stream))).body


@pytest.mark.parametrize("content_type", [b"text/plain", b"application/json", b"application/problem+json"])
@on_loop
async def test_json_in_answer_to_a_stream_request_is_read(opened, content_type):
    upstream = await opened(
        Upstream(answering(response(b"\n " + whole("delete_files"), content_type=content_type)))
    )
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert b"blocked by policy" in (await client.ask(request(MESSAGES, STREAM))).body


UNREADABLE = {
    "compress": (response(b"{}", b"Content-Encoding: compress"), "unknown_encoding"),
    "html": (response(b"<html>", content_type=b"text/html"), "unknown_type"),
    "broken json": (response(b'{"content": ['), "malformed_json"),
    "large json": (response(b'{"a": "' + b"x" * 4096 + b'"}'), "body_too_large"),
}


@pytest.mark.parametrize("name", UNREADABLE)
@on_loop
async def test_an_answer_that_cannot_be_read_goes_by_fail_closed_and_is_told(opened, name):
    sent, cause = UNREADABLE[name]
    upstream = await opened(Upstream(answering(sent)))
    for fail_closed in (True, False):
        proxy = await opened(
            Proxy(snapshot(upstream.port, fail_closed=fail_closed, proxy={"max_body": 2048}))
        )
        client = await opened(Client(proxy.port))
        answer = await client.ask(request(MESSAGES, b"{}"))
        if fail_closed:
            assert answer.status == 502
            assert orjson.loads(answer.body)["type"] == "error"
        else:
            assert (answer.status, answer.body) == (200, sent.partition(b"\r\n\r\n")[2])
        await until(lambda proxy=proxy: proxy.events)
        assert [(e["cause"], e["action"]) for e in proxy.events] == [
            (cause, "block" if fail_closed else "allow")
        ]


HALF_READ = {
    "unlabelled gzip": response(gzip.compress(b"{}")),
    "unlabelled gzip of no known type": response(gzip.compress(b"{}"), content_type=b"text/plain"),
    "unlabelled gzip as events": response(gzip.compress(b"data: {}"), content_type=b"text/event-stream"),
    "unlabelled zstd": response(b"\x28\xb5\x2f\xfd\x04\x00"),
    "gzip without its end": response(gzip.compress(b'{"content": []}')[:-4], b"Content-Encoding: gzip"),
    "gzip with more behind it": response(gzip.compress(b"{}") + b"more", b"Content-Encoding: gzip"),
    "events in broken gzip": response(
        gzip.compress(b"data: {}\n\n")[:-4], b"Content-Encoding: gzip", content_type=b"text/event-stream"
    ),
    "UTF-16": response('{"content": ["tool_use"]}'.encode("utf-16")),
    "UTF-7": response(
        b'{"content": [{"+AHQ-ype": "+AHQ-ool_use"}]}', content_type=b"application/json; charset=utf-7"
    ),
    "UTF-7 as events": response(b"data: {}\n\n", content_type=b"text/event-stream; charset=utf-7"),
    "codings without end": response(b"xx", b"Content-Encoding: br, br, br, br"),
    "a coding that is skipped": response(gzip.compress(b"{}"), b"Content-Encoding: bogus, gzip"),
}


@pytest.mark.parametrize("name", HALF_READ)
@pytest.mark.parametrize("body", [b"{}", b'{"stream":true}'], ids=["whole", "stream"])
@on_loop
async def test_what_some_client_may_still_read_passes_only_where_nothing_is_enforced(opened, name, body):
    sent = HALF_READ[name]
    upstream = await opened(Upstream(answering(sent)))
    for enforce, fail_closed in ((True, True), (True, False), (False, True), (False, False)):
        policy = snapshot(upstream.port, fail_closed=fail_closed, enforce_policy=enforce)
        proxy = await opened(Proxy(policy))
        client = await opened(Client(proxy.port))
        answer = await client.ask(request(MESSAGES, body))
        refused = answer.status == 502 or b"event: error" in answer.body
        assert refused is enforce
        if not refused:
            assert (answer.status, answer.body) == (200, sent.partition(b"\r\n\r\n")[2])
        await until(lambda proxy=proxy: proxy.events)
        told = [(e["action"], e.get("would")) for e in proxy.events]
        assert ("block", None) in told if enforce else ("allow", "block") in told


@pytest.mark.parametrize("body", [b"", b'{"moved": true}'])
@pytest.mark.parametrize(
    ("place", "told"),
    [(b"https://k:s@llm.example/v1/x?secret", "it sends the client to https://llm.example"), (b"//llm.example/x", "it sends the client to //llm.example"),
     (b"/v1/messages/", None), (b"messages", None)],
)  # fmt: skip
@on_loop
async def test_an_answer_that_sends_the_client_around_the_proxy_goes_by_fail_closed(
    opened, place, told, body
):
    moved = response(body, b"Location: " + place, status=b"307 Temporary Redirect")
    upstream = await opened(Upstream(answering(moved)))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, STREAM))
    assert (answer.status, answer.values("location"), answer.body) == (307, [place], body)
    if told is not None:
        await until(lambda: proxy.events)
        assert [(e["cause"], e["detail"], e["action"]) for e in proxy.events] == [
            ("redirected", told, "allow")
        ]
    proxy.swap(snapshot(upstream.port, fail_closed=True))
    assert (await client.ask(request(MESSAGES, STREAM))).status == (307 if told is None else 502)


@on_loop
async def test_a_revocation_bites_in_the_middle_of_a_stream(opened):
    go = asyncio.Event()
    pieces = chunked(START + TEXT, b"".join(call("get_weather")) + END)

    async def script(conversation, _):
        await conversation.send(pieces[0] + pieces[1])
        await go.wait()
        await conversation.send(pieces[2] + pieces[3])

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    await client.send(request(MESSAGES, STREAM))
    await client.reader.readuntil(b"content_block_stop")
    proxy.swap(snapshot(upstream.port, generation=2, denied_tools=[{"server": "weather", "tool": "*"}]))
    go.set()
    assert b"blocked by policy" in await client.reader.readuntil(b"0\r\n\r\n")


@on_loop
async def test_the_client_is_kept_patient_while_a_call_is_held(opened):
    go = asyncio.Event()
    start, *rest = call("get_weather")
    pieces = chunked(START + TEXT, start, b"".join(rest) + END)

    async def script(conversation, _):
        await conversation.send(b"".join(pieces[:3]))
        await go.wait()
        await conversation.send(b"".join(pieces[3:]))

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    await client.send(request(MESSAGES, STREAM))
    await client.reader.readuntil(b"content_block_stop")
    (connection,) = proxy.service._clients
    await until(lambda: connection._exchange._answer._machine.holding)
    connection._exchange.tick(connection._exchange._wrote + exchange.PATIENCE)
    assert (await client.reader.readuntil(b": \n\n")).endswith(b"4\r\n: \n\n")
    go.set()
    assert b"get_weather" in await client.reader.readuntil(b"0\r\n\r\n")


# When things fail.

DIALECTS = [
    (MESSAGES, lambda e: e["type"] == "error" and e["error"]["message"]),
    (CHAT, lambda e: e["error"]["message"]),
]


@pytest.mark.parametrize(("path", "shape"), DIALECTS)
@on_loop
async def test_an_upstream_that_refuses_is_a_502_in_the_providers_shape(opened, path, shape):
    upstream = await opened(Upstream())
    upstream._server.close()
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(2):  # the connection survives it
        answer = await client.ask(request(path, STREAM))
        assert answer.status == 502
        assert "cannot connect" in shape(orjson.loads(answer.body))


BROKEN = {
    "cut before the head": b"",
    "cut in the head": b"HTTP/1.1 200 OK\r\nX: ",
    "not HTTP": b"SSH-2.0-OpenSSH_9\r\n",
    "both lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "bad chunks at once": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "endless interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
    "json cut short": b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"content":',
    "an endless head": b"HTTP/1.1 200 OK\r\nX: " + b"y" * (70 << 10),
}


@pytest.mark.parametrize("name", BROKEN)
@on_loop
async def test_an_upstream_that_breaks_the_protocol_is_a_502_and_nothing_of_it_is_sent(opened, name):
    async def script(conversation, _):
        await conversation.send(BROKEN[name])
        conversation.writer.close()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, b"{}"))
    assert answer.status == 502
    assert orjson.loads(answer.body)["type"] == "error"
    upstream.script = answering(response(b'{"ok":1}'))
    assert (await client.ask(request(MESSAGES, b"{}"))).body == b'{"ok":1}'


@pytest.mark.parametrize("how", ["cut", "close", "bad chunk"])
@on_loop
async def test_a_stream_that_breaks_ends_with_an_error_event_and_releases_nothing(opened, how):
    start, delta, _ = call("get_weather")

    async def script(conversation, _):
        await conversation.send(b"".join(chunked(START + TEXT + start + delta)[:2]))
        await until(lambda: client.body.startswith(START + TEXT))
        if how == "bad chunk":
            await conversation.send(b"-1\r\n")
        elif how == "close":
            conversation.writer.close()
        else:
            conversation.cut()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, STREAM))
    assert answer.whole
    assert answer.body.startswith(START + TEXT)
    last = answer.body[len(START + TEXT) :]
    assert last.startswith(b"event: error\ndata: ")
    assert b"tool_use" not in answer.body
    assert await client.closed()


@on_loop
async def test_bytes_nobody_reads_are_cut_without_an_end(opened):
    async def script(conversation, _):
        await conversation.send(b"".join(chunked(b"x" * 5000, content_type=b"image/png")[:2]))
        await until(lambda: client.body)
        conversation.cut()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(FILES, b"x"))
    assert not answer.whole
    assert answer.status == 200


@on_loop
async def test_a_silent_upstream_is_a_504(opened):
    async def script(conversation, _):
        await conversation.gone()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port, proxy={"idle_timeout": "1s"})))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, STREAM))
    assert answer.status == 504
    assert "silent" in orjson.loads(answer.body)["error"]["message"]
    await upstream.closed.wait()


@on_loop
async def test_a_client_that_leaves_cancels_the_upstream(opened):
    async def script(conversation, _):
        await conversation.send(b"".join(chunked(START)[:2]))
        await conversation.gone()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    for path, body in ((MESSAGES, STREAM), (FILES, b"x")):
        upstream.closed.clear()
        async with Client(proxy.port) as client:
            await client.send(request(path, body))
            await client.reader.readuntil(b"\r\n\r\n")
        await upstream.closed.wait()
    await until(lambda: not proxy.service._clients)


@on_loop
async def test_a_client_that_leaves_before_the_upstream_is_reached_cancels_the_connect(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    async with Client(proxy.port) as client:
        await client.send(request(MESSAGES, STREAM))
    await until(lambda: not proxy.service._clients and not proxy.service.pool._connecting)
    assert proxy.counts.upstream_failed == 0


@pytest.mark.parametrize("path", [MESSAGES, FILES])
@on_loop
async def test_a_client_that_does_not_read_bounds_what_is_held_for_it(opened, path):
    sent = 0
    frame = b"data: " + b"x" * 65_000 + b"\n\n"

    async def script(conversation, _):
        nonlocal sent
        await conversation.send(chunked()[0])
        for _ in range(2000):
            await conversation.send(b"%x\r\n%b\r\n" % (len(frame), frame))
            sent += len(frame)

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    client.writer.transport.pause_reading()
    await client.send(request(path, STREAM))
    (connection,) = proxy.service._clients
    await until(lambda: connection._writing_paused)
    before = -1
    while before != sent:
        before = sent
        await asyncio.sleep(0.2)
    assert sent < 64 << 20  # what the kernel's buffers on two connections take, of 130 MB
    assert connection._transport.get_write_buffer_size() < 2 << 20
    client.writer.transport.resume_reading()
    total = 0
    while total < 2000 * len(frame):
        total += len(await client.reader.read(1 << 20))
    assert sent == 2000 * len(frame)


@on_loop
async def test_interim_answers_pass_and_100_does_not(opened):
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nConnection: close\r\nContent-Length: 9\r\n\r\n"
    upstream = await opened(Upstream(answering(b"HTTP/1.1 100 Continue\r\n\r\n", interim, response(b"{}"))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    first = await client.ask(request(MESSAGES, b"{}"))
    assert (first.status, first.values("link"), first.values("connection")) == (103, [b"</x>"], [])
    assert first.values("content-length") == []  # it has no body, and some clients would wait for one
    assert (await client.answer()).body == b"{}"


@on_loop
async def test_a_head_request_has_no_body_whatever_its_length_says(opened):
    upstream = await opened(Upstream(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(2):
        answer = await client.ask(raw(FILES, b"Host: localhost", method="HEAD"), method="HEAD")
        assert (answer.status, answer.values("content-length")) == (200, [b"99"])
    assert upstream.connections == 1


@on_loop
async def test_an_answer_that_ends_with_its_connection_is_whole(opened):
    async def script(conversation, _):
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + ALLOWED)
        conversation.writer.close()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, STREAM))
    assert answer.whole
    assert answer.body == ALLOWED
    assert answer.values("transfer-encoding") == [b"chunked"]


@on_loop
async def test_every_answer_that_passes_unread_is_counted_once_by_its_reason(opened):
    broken = event("message_start", message={}) + b"data: {tool broken\n\n" * 3
    upstream = await opened(Upstream(answering(*chunked(broken))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(MESSAGES, STREAM))).body == broken
    await client.ask(request(FILES, b"{}"))
    await client.ask(request(MESSAGES, STREAM))
    assert proxy.counts.uninspected == {"malformed_json": 2, "other_endpoint": 1}
    await until(lambda: len(proxy.events) == 6)
    assert {(e["type"], e["action"]) for e in proxy.events} == {("llm_response_uninspected", "allow")}


@on_loop
async def test_what_is_cut_or_read_is_not_counted_as_passed(opened):
    upstream = await opened(Upstream(answering(*chunked(b"data: {tool broken\n\n"))))
    proxy = await opened(Proxy(snapshot(upstream.port, fail_closed=True)))
    client = await opened(Client(proxy.port))
    await client.ask(request(MESSAGES, STREAM))
    assert proxy.counts.uninspected == {}
    assert answered(proxy.counts.totals()) == (1, 1)
