"""A request is read in one way or refused, in its turn, within bounds of bytes and time; and a refused one reaches no upstream."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from agentsh_proxy.llm import server
from loopback import on_loop, until
from loopback.client import Client, raw, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, chunked, response

HOST = b"Host: localhost"
LENGTH = b"Content-Length: 2"
CHUNKED = b"Transfer-Encoding: chunked"
PATH = "/anthropic/v1/messages"
OTHER = "/anthropic/v1/files"

SMUGGLED = {
    "both lengths": (raw(PATH, HOST, LENGTH, CHUNKED, body=b"0\r\n\r\n"), 400),
    "both lengths, uninspected": (raw(OTHER, HOST, LENGTH, CHUNKED, body=b"0\r\n\r\n"), 400),
    "two lengths": (raw(PATH, HOST, LENGTH, b"Content-Length: 40", body=b"{}"), 400),
    "two codings": (raw(PATH, HOST, CHUNKED, b"Transfer-Encoding: identity", body=b"0\r\n\r\n"), 400),
    "identity coding": (raw(PATH, HOST, b"Transfer-Encoding: identity", body=b"{}"), 400),
    "a coding with a tab": (raw(PATH, HOST, b"Transfer-Encoding\t: chunked", body=b"0\r\n\r\n"), 400),
    "folded": (raw(PATH, HOST, b"X: a\r\n\tTransfer-Encoding: chunked", LENGTH, body=b"{}"), 400),
    "bare LF between fields": (
        b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: localhost\nContent-Length: 2\r\n\r\n{}",
        400,
    ),
    "bare LF everywhere": (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    "NUL": (raw(PATH, HOST, b"X: \x00", LENGTH, body=b"{}"), 400),
    "HTTP/0.9": (b"GET /\r\n", 400),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "TLS": (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", 400),
    "a chunk size with white space": (raw(PATH, HOST, CHUNKED, body=b"2 \r\n{}\r\n0\r\n\r\n"), 400),
    "a hexadecimal prefix": (raw(PATH, HOST, CHUNKED, body=b"0x2\r\n{}\r\n0\r\n\r\n"), 400),
    "a negative chunk size": (raw(PATH, HOST, CHUNKED, body=b"-2\r\n{}\r\n0\r\n\r\n"), 400),
    "a chunk size past 64 bits": (
        raw(PATH, HOST, CHUNKED, body=b"10000000000000002\r\n{}\r\n0\r\n\r\n"),
        400,
    ),
    "an empty chunk size": (raw(PATH, HOST, CHUNKED, body=b"\r\n{}\r\n0\r\n\r\n"), 400),
    "a bare LF after a chunk size": (raw(PATH, HOST, CHUNKED, body=b"2\n{}\r\n0\r\n\r\n"), 400),
    "a chunk longer than its size": (raw(PATH, HOST, CHUNKED, body=b"1\r\n{}\r\n0\r\n\r\n"), 400),
    "chunked in HTTP/1.0": (
        b"POST " + PATH.encode() + b" HTTP/1.0\r\n" + CHUNKED + b"\r\n\r\n0\r\n\r\n",
        400,
    ),
    "a foreign Host": (raw(PATH, b"Host: evil.example", LENGTH, body=b"{}"), 421),
    "a foreign absolute target": (raw("http://evil.example" + PATH, HOST, LENGTH, body=b"{}"), 421),
    "no Host": (raw(PATH, LENGTH, body=b"{}"), 400),
    "two Hosts": (raw(PATH, HOST, HOST, LENGTH, body=b"{}"), 400),
    "an Origin from the web": (raw(PATH, HOST, b"Origin: https://evil.example", LENGTH, body=b"{}"), 403),
    "a null Origin": (raw(PATH, HOST, b"Origin: null", LENGTH, body=b"{}"), 403),
    "CONNECT": (raw("localhost:443", HOST, method="CONNECT"), 405),
    "TRACE": (raw(PATH, HOST, method="TRACE"), 405),
    "a WebSocket": (
        raw("/openai/v1/responses", HOST, b"Connection: Upgrade", b"Upgrade: websocket", method="GET"),
        426,
    ),
    "empty segments": (raw("//v1//messages", HOST, LENGTH, body=b"{}"), 400),
    "empty segments below a provider": (raw("/anthropic//v1//messages", HOST, LENGTH, body=b"{}"), 400),
    "dot segments": (raw("/openai/../anthropic/v1/messages", HOST, LENGTH, body=b"{}"), 400),
    "encoded dot segments": (raw("/anthropic/x/%2e%2e/v1/messages", HOST, LENGTH, body=b"{}"), 400),
    "an unknown expectation": (raw(PATH, HOST, b"Expect: 200-ok", LENGTH, body=b"{}"), 417),
    "an unknown token": (raw("/s/stolen" + PATH, HOST, LENGTH, body=b"{}"), 403),
    "an unknown provider": (raw("/nobody/v1/messages", HOST, LENGTH, body=b"{}"), 404),
    "a body that is too large": (raw(PATH, HOST, b"Content-Length: 99999", body=b"{}"), 413),
    "chunks that grow too large": (raw(PATH, HOST, CHUNKED, body=b"800\r\n" + b"x" * 2048 + b"\r\n"), 413),
    "a head that is too long": (raw(PATH, HOST, b"X: " + b"y" * (64 << 10)), 431),
    "too many fields": (raw(PATH, HOST, *[b"X: y"] * 128), 431),
}


@pytest.mark.parametrize("name", SMUGGLED)
@on_loop
async def test_what_could_be_read_in_two_ways_is_refused_and_reaches_no_upstream(opened, name):
    sent, status = SMUGGLED[name]
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, proxy={"max_request": 1024})))
    client = await opened(Client(proxy.port))
    answer = await client.ask(sent, method="HEAD" if status == 100 else "POST")
    assert answer.status == status
    assert orjson.loads(answer.body)["error"]["message"].startswith("agentsh-net: ")
    # Whatever follows on the connection is not taken for a second request of the smuggler's.
    if sent.endswith(b"\r\n\r\n{}") and status in (403, 404, 421):
        assert await client.closed()
    assert upstream.connections == 0
    (told,) = proxy.events
    assert (told["type"], told["action"], told["status"]) == ("llm_request_refused", "block", status)
    assert told["reason"] and f"agentsh-net: {told['reason']}".encode() in answer.body
    rules = {413: "proxy.max_request", 426: "proxy.websockets"}
    assert told["rule"] == rules.get(status, "protocol")


@pytest.mark.parametrize("cut", [1, 7, 33])
@on_loop
async def test_a_request_in_pieces_is_the_same_request(opened, cut):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    sent = request(PATH, b'{"stream": false}', b"X-Api-Key: k")
    for at in range(0, len(sent), cut):
        await client.send(sent[at : at + cut])
        await asyncio.sleep(0)
    assert (await client.answer()).status == 200
    assert upstream.requests[0].body == b'{"stream": false}'


@pytest.mark.parametrize("pieces", [(b"\r\n",), (b"\r", b"\n")])
@on_loop
async def test_an_empty_line_before_a_request_is_none_of_it_and_two_are_no_request(opened, pieces):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(2):  # behind a body, as old clients send it, too
        await client.send(*pieces, request(PATH, b"{}"))
        assert (await client.answer()).status == 200
    await client.send(b"\r\n\r\n" + request(PATH, b"{}"))
    assert (await client.answer()).status == 400
    assert [r.body for r in upstream.requests] == [b"{}"] * 2


@on_loop
async def test_pipelined_requests_are_answered_one_at_a_time_and_in_order(opened):
    upstream = await opened(Upstream())

    async def echo(conversation, received):
        assert sum(r is received for r in upstream.requests) == 1
        await conversation.send(response(b'{"n": %d}' % len(upstream.requests)))

    upstream.script = echo
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    await client.send(
        request(PATH, b"{}") * 3
        + request("/healthz", method="GET")
        + request("/nobody", method="GET")
        + request(PATH, b"{}")
    )
    assert [orjson.loads((await client.answer()).body)["n"] for _ in range(3)] == [1, 2, 3]
    assert (await client.answer()).status == 200
    assert (await client.answer()).status == 404
    assert orjson.loads((await client.answer()).body)["n"] == 4
    assert upstream.connections == 1


@on_loop
async def test_a_flood_of_pipelined_requests_waits_in_the_kernel(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    held = asyncio.Event()

    async def hold(conversation, _):
        await held.wait()
        await conversation.send(response(b"{}"))

    upstream.script = hold
    client = await opened(Client(proxy.port))
    flood = request(PATH, b"x" * 1000) * 20000
    sending = asyncio.ensure_future(client.send(flood))
    await until(lambda: upstream.requests)
    (connection,) = proxy.service._clients
    await until(lambda: connection._reading_paused)
    assert not sending.done()
    assert len(connection._buffer) <= 1 << 20
    sending.cancel()
    held.set()


@on_loop
async def test_a_chunked_request_is_answered_and_what_follows_it_is_not(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    first = raw(PATH, HOST, CHUNKED, body=b"1\r\n{\r\n1;x=y\r\n}\r\n0\r\nTrailer: x\r\n\r\n")
    assert (await client.ask(first)).status == 200
    assert upstream.requests[0].body == b"{}"
    assert upstream.requests[0].values("transfer-encoding") == []
    answer = await client.ask(first + request(OTHER, b"{}"))
    assert answer.values("connection") == [b"close"]
    assert await client.closed()
    assert len(upstream.requests) == 2


@on_loop
async def test_expectations_are_met_only_for_bodies_that_are_wanted(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, proxy={"max_request": 1024})))
    client = await opened(Client(proxy.port))
    await client.send(raw(PATH, HOST, LENGTH, b"Expect: 100-continue"))
    assert (await client.answer()).status == 100
    await client.send(b"{}")
    assert (await client.answer()).status == 200
    assert upstream.requests[0].values("expect") == []
    assert (await client.ask(raw(PATH, HOST, b"Content-Length: 4096", b"Expect: 100-continue"))).status == 413


@on_loop
async def test_http_1_0_is_answered_without_chunks_and_closed(opened):
    upstream = await opened(Upstream(answering(*chunked(b"data: x\n\n"))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(PATH, b'{"stream":true}', version="HTTP/1.0"))
    assert (answer.status, answer.body) == (200, b"data: x\n\n")
    assert answer.values("transfer-encoding") == []
    assert answer.values("connection") == [b"close"]


@on_loop
async def test_a_refused_client_can_read_why_although_it_still_sends(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, proxy={"max_request": 1024})))
    client = await opened(Client(proxy.port))
    sending = asyncio.ensure_future(client.send(request(PATH, b"x" * (8 << 20))))
    answer = await client.answer()
    assert (answer.status, orjson.loads(answer.body)["error"]["type"]) == (413, "request_too_large")
    assert await client.closed()
    await asyncio.wait([sending])
    (told,) = proxy.events
    assert (told["session_id"], told["dialect"], told["method"], told["path"]) == ("default", "anthropic", "POST", PATH)  # fmt: skip


@on_loop
async def test_a_flood_of_refused_requests_is_counted_and_does_not_fill_the_record(opened, monkeypatch):
    monkeypatch.setattr("agentsh_proxy.refused_requests.REFUSALS", 2)
    monkeypatch.setattr("agentsh_proxy.refused_requests.REFUSALS_A_SECOND", 1e-9)
    proxy = await opened(Proxy(snapshot(1)))
    for _ in range(5):
        client = await opened(Client(proxy.port))
        assert (await client.ask(b"\x16\x03\x01")).status == 400
    assert [event["type"] for event in proxy.events] == ["llm_request_refused"] * 2 + ["events_lost"]
    assert proxy.events[-1]["layer"] == "proxy" and proxy.service.counts.refused == 5
    await proxy.service.drain(0)
    assert [event["lost"] for event in proxy.events[2:]] == [1, 2], "the end tells of the rest"


@pytest.mark.parametrize(
    ("sent", "limit", "status"),
    [
        (b"POST / HT", "HEAD_SECONDS", 408),
        (request("/s/test" + PATH, b"{}")[:-1], "BODY_SECONDS", 408),
        (b"", "IDLE_SECONDS", None),
    ],
)
@on_loop
async def test_what_comes_too_slowly_is_not_waited_for(opened, sent, limit, status):
    proxy = await opened(Proxy(snapshot(1)))
    proxy.service.sessions = {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": "agent"}
    client = await opened(Client(proxy.port))
    await client.send(sent)
    await until(lambda: proxy.service._clients)
    (connection,) = proxy.service._clients
    await until(lambda: not sent or connection._buffer or connection._head)
    connection.tick(connection.seen + getattr(server, limit))
    assert connection._transport is not None
    connection.tick(connection.seen + getattr(server, limit) + 0.1)
    if status is not None:
        assert (await client.answer()).status == status
    assert await client.closed()
    told = [(event["status"], event["session_id"], event["path"]) for event in proxy.events]
    whose = ("agent", "/s/[redacted]" + PATH) if limit == "BODY_SECONDS" else ("default", "")
    assert told == ([(status, *whose)] if status is not None else [])


@on_loop
async def test_health_is_told_without_an_upstream(opened):
    proxy = await opened(Proxy(snapshot(1, generation=7)))
    client = await opened(Client(proxy.port))
    for path in ("/", "/healthz"):
        answer = await client.ask(request(path, method="GET"))
        assert orjson.loads(answer.body) == {"name": "agentsh-net", "status": "ok", "generation": 7}
    assert (await client.ask(request("/", method="HEAD"), method="HEAD")).values("content-length") == [
        b"%d" % len(answer.body)
    ]


@on_loop
async def test_an_error_speaks_the_providers_dialect(opened):
    proxy = await opened(Proxy(snapshot(1)))
    client = await opened(Client(proxy.port))
    sent = (b"Upgrade: websocket", b"Connection: Upgrade")
    answer = await client.ask(raw("/openai/v1/chat/completions", HOST, *sent, method="GET"))
    assert answer.status == 426
    assert answer.values("upgrade") == [b"HTTP/1.1"]
    error = orjson.loads(answer.body)["error"]
    assert error.keys() >= {"message", "type", "code"}


@on_loop
async def test_more_clients_at_work_than_the_bound_are_told_so(opened, monkeypatch):
    monkeypatch.setattr("agentsh_proxy.connection_limit.MAX_CONNECTIONS", 1)
    upstream = await opened(Upstream(lambda conversation, _: conversation.reader.read()))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    first = await opened(Client(proxy.port))
    await first.send(request(PATH, b"{}"))
    await until(lambda: upstream.requests)
    second = await opened(Client(proxy.port))
    assert (await second.answer()).status == 503
    assert await second.closed()
    assert [(event["type"], event["status"]) for event in proxy.events] == [("llm_request_refused", 503)]


@pytest.mark.parametrize("begun", [b"", b"POST / HT", request(PATH, b"{}" * 9)[:-1]])
@on_loop
async def test_a_newcomer_takes_the_place_of_who_keeps_the_proxy_waiting(opened, monkeypatch, begun):
    monkeypatch.setattr("agentsh_proxy.connection_limit.MAX_CONNECTIONS", 2)
    upstream = await opened(Upstream(lambda conversation, _: conversation.reader.read()))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    at_work = await opened(Client(proxy.port))
    await at_work.send(request(PATH, b"{}"))
    await until(lambda: upstream.requests)
    slow = await opened(Client(proxy.port))
    await slow.send(begun)
    await until(lambda: proxy.service.counts.open_connections == 2)
    for _ in range(3):
        newcomer = await opened(Client(proxy.port))
        assert (await newcomer.ask(request("/", method="GET"))).status == 200
    assert await slow.closed()
    assert not at_work.reader.at_eof()


@on_loop
async def test_bodies_that_never_end_cost_no_more_than_the_bound_together(opened, monkeypatch):
    monkeypatch.setattr("agentsh_proxy.load.MAX_LOAD", 1 << 20)
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    slow = await opened(Client(proxy.port))
    await slow.send(request(PATH, b" " * (2 << 20))[: 900 << 10])
    await until(lambda: proxy.service.load.size > 800 << 10)
    other = await opened(Client(proxy.port))
    assert (await other.ask(request(PATH, b" " * (1 << 20)))).status == 503
    slow.writer.close()
    await until(lambda: proxy.service.load.size == 0)
    other = await opened(Client(proxy.port))
    assert (await other.ask(request(PATH, b" " * (500 << 10)))).status == 200


@on_loop
async def test_a_repeated_head_is_answered_by_the_policy_and_sessions_of_its_own_time(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, proxy={"max_request": 1024})))
    known = {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": "agent"}  # sha256("test")
    proxy.service.sessions = known
    client = await opened(Client(proxy.port))
    path = "/s/test" + PATH
    for body in (b"{}", b'{"a": 1}', b"{ }"):
        assert (await client.ask(request(path, body, b"X-Api-Key: k"))).status == 200
    assert [r.body for r in upstream.requests] == [b"{}", b'{"a": 1}', b"{ }"]
    assert [r.values("x-api-key") for r in upstream.requests] == [[b"k"]] * 3
    assert [r.values("content-length") for r in upstream.requests] == [[b"2"], [b"8"], [b"3"]]
    proxy.swap(snapshot(1))  # another upstream, which is not there
    assert (await client.ask(request(path, b"{}", b"X-Api-Key: k"))).status == 502
    proxy.service.sessions = {}
    other = await opened(Client(proxy.port))
    assert (await other.ask(request(path, b"{}", b"X-Api-Key: k"))).status == 403
    assert (await client.ask(request(path, b"{}", b"X-Api-Key: k"))).status == 403


@on_loop
async def test_a_body_that_takes_its_time_leaves_by_the_policy_and_sessions_of_its_end(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    proxy.service.sessions = {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": "agent"}
    body = b'{"messages":[{"role":"user","content":"alice@example.com"}]}'
    sent = request("/s/test" + PATH, body)
    first, second = await opened(Client(proxy.port)), await opened(Client(proxy.port))
    for client in (first, second):
        await client.send(sent[:-9])
    await until(lambda: proxy.service.counts.requests == 2)
    proxy.swap(snapshot(upstream.port, dlp={"mode": "redact"}))
    await first.send(sent[-9:])
    assert (await first.answer()).status == 200
    assert upstream.requests[0].body == body.replace(b"alice@example.com", b"[REDACTED:email]")
    proxy.service.sessions = {}
    await second.send(sent[-9:])
    assert (await second.answer()).status == 403
    assert len(upstream.requests) == 1
    types = ["llm_request_redacted", "llm_request_refused"]
    await until(lambda: [event["type"] for event in proxy.events] == types)


@on_loop
async def test_a_repeated_head_with_a_longer_body_is_still_bounded(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port, proxy={"max_request": 1024})))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(PATH, b"{}"))).status == 200
    assert (await client.ask(request(PATH, b"x" * 2000))).status == 413
    assert len(upstream.requests) == 1
