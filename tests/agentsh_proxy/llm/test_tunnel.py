"""A WebSocket is relayed to the byte, but for what policy stops in either direction, and refused unless it is to be inspected."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import Mock

import orjson
import pytest
from agentsh_proxy.llm.receiving import Reception
from loopback import on_loop, until
from loopback.client import Client, raw
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, response

from agentsh_net.core.dialects.message_stream import MessageStream
from agentsh_net.core.web.websocket import Opcode, Reader, frame
from agentsh_net.workers.arbiter import Arbiter

PATH = "/openai/v1/responses"
KEY = b"\x01\x02\x03\x04"
FIELDS = (
    b"Host: localhost", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    b"Authorization: Bearer k",
)  # fmt: skip
AGREED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
)
PING = frame(Opcode.PING, b"p")
CREATE = {"type": "response.create", "model": "m", "input": "x"}


def text(value) -> bytes:
    return frame(Opcode.TEXT, value if isinstance(value, bytes) else json.dumps(value).encode())


def answer(name: str) -> list[bytes]:
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": "{}"}
    return [
        text({"type": "response.created", "response": {"id": "r", "output": []}}),
        text({"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}),
        text({"type": "response.output_item.done", "output_index": 0, "item": item}),
        text({"type": "response.completed", "response": {"id": "r", "output": [item]}}),
    ]


class Provider:
    """Speaks WebSocket: answers every message of the client's with what it was given, and keeps them."""

    def __init__(self, *answers: bytes, agreed: bytes = AGREED + b"\r\n") -> None:
        self.answers = answers
        self.agreed = agreed
        self.messages: list[bytes] = []
        self.raws: list[bytes] = []
        self.closed = False

    async def __call__(self, conversation, _) -> None:
        await conversation.send(self.agreed)
        reader = Reader(masked=True, max_message=1 << 20)
        while data := await conversation.reader.read(65536):
            for message in reader.feed(data):
                self.raws.append(message.raw)
                if not message.control:
                    self.messages.append(message.payload)
                    await conversation.send(*self.answers)
        self.closed = True


class Socket:
    """The client's side."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.reader = Reader(masked=False, max_message=1 << 20)
        self.waiting: list = []
        self.received = b""

    async def begin(self) -> bytes:
        await self.client.send(raw(PATH, *FIELDS, method="GET"))
        return await self.client.reader.readuntil(b"\r\n\r\n")

    async def send(self, value, *, key: bytes = KEY, opcode: Opcode = Opcode.TEXT) -> bytes:
        payload = value if isinstance(value, bytes) else json.dumps(value).encode()
        sent = frame(opcode, payload, key)
        await self.client.send(sent)
        return sent

    async def next(self):
        async with asyncio.timeout(60):
            while not self.waiting:
                data = await self.client.reader.read(65536)
                if not data:
                    return None
                self.received += data
                self.waiting += self.reader.feed(data)
        return self.waiting.pop(0)

    async def events(self, last: str) -> list[dict]:
        found = []
        while not found or found[-1].get("type") != last:
            found.append(orjson.loads((await self.next()).payload))
        return found


async def connected(opened, provider: Provider, arbiter: Arbiter | None = None, **mcp):
    upstream = await opened(Upstream(provider))
    settings = {"websockets": "inspect", **mcp.pop("proxy", {})}
    proxy = await opened(Proxy(snapshot(upstream.port, proxy=settings, **mcp), arbiter=arbiter))
    socket = Socket(await opened(Client(proxy.port)))
    return upstream, proxy, socket


@on_loop
async def test_no_extension_is_agreed_on_and_the_rest_of_the_handshake_passes(opened):
    upstream, _, socket = await connected(opened, Provider())
    head = await socket.begin()
    assert head.startswith(b"HTTP/1.1 101 ") and b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    (asked,) = upstream.requests
    assert asked.line == b"GET /v1/responses HTTP/1.1"
    assert asked.values("sec-websocket-extensions") == []
    assert asked.values("sec-websocket-key") == [b"dGhlIHNhbXBsZSBub25jZQ=="]
    assert (asked.values("upgrade"), asked.values("authorization")) == ([b"websocket"], [b"Bearer k"])


@on_loop
async def test_what_nobody_objects_to_passes_to_the_byte_in_both_directions(opened):
    sent = [*answer("read_file"), frame(Opcode.PING, b"p")]
    provider = Provider(*sent)
    _, _, socket = await connected(opened, provider)
    await socket.begin()
    mine = await socket.send(CREATE)
    await socket.events("response.completed")
    assert (await socket.next()).opcode is Opcode.PING
    assert socket.received == b"".join(sent)
    assert provider.raws == [mine]


@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.BINARY])
@on_loop
async def test_a_denied_call_is_replaced_and_told_of(opened, arbiter, opcode):
    provider = Provider(
        *(sent[:1].replace(b"\x81", bytes([0x80 | opcode])) + sent[1:] for sent in answer("delete_files"))
    )
    _, proxy, socket = await connected(opened, provider, arbiter)
    await socket.begin()
    await socket.send(CREATE)
    events = await socket.events("response.completed")
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["message"]
    assert "blocked by policy" in json.dumps(events)
    assert not any(e.get("item", {}).get("type") == "function_call" for e in events)
    await until(lambda: proxy.events)
    assert [(e["type"], e["action"], e["dialect"]) for e in proxy.events] == [
        ("mcp_tool_call_intercepted", "block", "openai_responses")
    ]
    await socket.send({**CREATE, "previous_response_id": "r", "input": []})
    await socket.events("response.completed")
    (result,) = orjson.loads(provider.messages[-1])["input"]
    assert (result["type"], result["call_id"]) == ("function_call_output", "c"), (
        "which the provider waits for"
    )


@pytest.mark.parametrize("name", ["read_file", "delete_files"])
@on_loop
async def test_a_message_above_the_bound_behind_a_held_call_passes_and_releases_nothing_that_is_denied(
    opened, name
):
    sent = answer(name)
    big = text({"type": "response.output_text.delta", "delta": "x" * 5000})
    provider = Provider(*sent[:2], big, *sent[2:])
    _, proxy, socket = await connected(opened, provider, proxy={"max_frame": "4KiB"})
    await socket.begin()
    await socket.send(CREATE)
    events = await socket.events("response.completed")
    assert big in socket.received
    calls = [e for e in events if e.get("item", {}).get("type") == "function_call"]
    assert len(calls) == (2 if name == "read_file" else 0)
    await until(lambda: len(proxy.events) >= 2)
    told = {(e.get("tool_name") or e.get("cause"), e["action"]) for e in proxy.events}
    assert told == {(name, "allow" if name == "read_file" else "block"), ("frame_too_long", "allow")}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
@on_loop
async def test_a_call_in_bytes_that_only_some_clients_read_never_leaves_and_is_told_of(opened, encoding):
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "delete_files", "arguments": "{}"}
    done = json.dumps({"type": "response.output_item.done", "output_index": 0, "item": item}).encode(encoding)
    _, proxy, socket = await connected(opened, Provider(frame(Opcode.BINARY, done) + PING), fail_closed=False)
    await socket.begin()
    await socket.send(CREATE)
    while (message := await socket.next()) is not None and not message.control:
        assert b"function_call" not in message.payload.replace(b"\0", b"")
    proxy.service.reporter.flush()
    told = [(e["type"], e["action"]) for e in proxy.events]
    judged = encoding == "utf-8-sig"
    assert told == [("mcp_tool_call_intercepted" if judged else "llm_response_uninspected", "block")]


@on_loop
async def test_a_request_within_the_socket_is_judged_as_a_request(opened):
    provider = Provider(*answer("read_file"))
    _, proxy, socket = await connected(opened, provider, denied_servers=["weather"])
    await socket.begin()
    connector = {"type": "mcp", "server_label": "weather", "server_url": "http://127.0.0.1:9/mcp"}
    for body in (
        {**CREATE, "tools": [connector]},
        {"type": "response.create", "response": {"tools": [connector]}},
        {"type": "response.create", "response": {"tools": [connector], "x": "\ud800"}},
        {"type": "response.create", "Response": {"tools": [connector]}},
    ):
        await socket.send(body)
        refused = orjson.loads((await socket.next()).payload)
        assert (refused["type"], refused["status"]) == ("error", 403)
        assert "blocked by policy" in refused["error"]["message"]
    await socket.send(CREATE)  # the connection lives on
    await socket.events("response.completed")
    assert len(provider.messages) == 1
    assert {e["type"] for e in proxy.events} >= {"mcp_connector_request"}


@on_loop
async def test_a_request_that_stands_inside_another_twice_is_refused_and_a_deep_one_read(opened):
    provider = Provider(*answer("read_file"))
    _, proxy, socket = await connected(opened, provider)
    await socket.begin()
    await socket.send(b'{"type":"response.create","response":{"tools":[]},"response":{}}')
    assert orjson.loads((await socket.next()).payload)["status"] == 403
    assert [(event["cause"], event["action"]) for event in proxy.events] == [("nested_request", "block")]
    deep = b'{"type":"response.create","response":{"x":' + b"[" * 300 + b"]" * 300 + b"}}"
    await socket.send(deep)
    await socket.events("response.completed")
    assert provider.messages == [deep]


@on_loop
async def test_what_dlp_takes_out_of_a_request_inside_another_lets_the_rest_leave(opened):
    provider = Provider(*answer("read_file"))
    _, _, socket = await connected(opened, provider, dlp={"mode": "redact"})
    await socket.begin()
    await socket.send({"type": "response.create", "response": {"input": "alice@example.com"}})
    await socket.events("response.completed")
    assert [json.loads(message)["response"] for message in provider.messages] == [
        {"input": "[REDACTED:email]"}
    ]


@on_loop
async def test_each_message_leaves_by_the_policy_of_its_own_time(opened):
    provider = Provider(*answer("read_file"))
    upstream, proxy, socket = await connected(opened, provider)
    await socket.begin()
    await socket.send({**CREATE, "input": "alice@example.com"})
    await socket.events("response.completed")
    proxy.swap(snapshot(upstream.port, proxy={"websockets": "inspect"}, dlp={"mode": "redact"}))
    await socket.send({**CREATE, "input": "alice@example.com"})
    await socket.events("response.completed")
    assert [json.loads(message)["input"] for message in provider.messages] == [
        "alice@example.com",
        "[REDACTED:email]",
    ]
    await until(lambda: "llm_request_redacted" in {event["type"] for event in proxy.events})


@pytest.mark.parametrize("proxy_of_now", [{}, {"websockets": "inspect", "providers": "elsewhere"}])
@on_loop
async def test_a_socket_that_policy_would_not_let_be_opened_any_more_ends_with_the_next_message(
    opened, proxy_of_now
):
    provider = Provider(*answer("read_file"))
    upstream, proxy, socket = await connected(opened, provider)
    await socket.begin()
    port = 1 if proxy_of_now.pop("providers", None) else upstream.port
    proxy.swap(snapshot(port, proxy=proxy_of_now))
    await socket.send(CREATE)
    closed = await socket.next()
    assert (closed.opcode, closed.payload[:2]) == (Opcode.CLOSE, (1008).to_bytes(2))
    await until(lambda: provider.closed)
    assert [message for message in provider.messages if message.startswith(b"{")] == []
    told = [(e["action"], e["path"]) for e in proxy.events if e["type"] == "llm_request_refused"]
    assert told == [("block", PATH)]


@on_loop
async def test_tools_are_hidden_and_learned_from(opened):
    provider = Provider(*answer("z91"))
    _, _, socket = await connected(opened, provider, hide_denied=True)
    await socket.begin()
    tools = [
        {"type": "function", "name": "z91", "description": "Deletes files."},
        {"type": "function", "name": "b"},
    ]
    await socket.send({**CREATE, "tools": tools})
    events = await socket.events("response.completed")
    assert "blocked by policy" in json.dumps(events)
    assert [t["name"] for t in orjson.loads(provider.messages[0])["tools"]] == ["b"]


@pytest.mark.parametrize("fail_closed", [True, False])
@pytest.mark.parametrize(
    ("sent", "opcode"), [(b"\x00", Opcode.BINARY), (b'{"type":"session.update"}', Opcode.TEXT)]
)
@on_loop
async def test_what_cannot_be_inspected_goes_by_fail_closed(opened, sent, opcode, fail_closed):
    provider = Provider(frame(Opcode.BINARY, b"back"))
    _, proxy, socket = await connected(opened, provider, fail_closed=fail_closed)
    await socket.begin()
    await socket.send(sent, opcode=opcode)
    got = await socket.next()
    if fail_closed:
        assert provider.messages == []
        assert got.opcode is Opcode.CLOSE or orjson.loads(got.payload)["type"] == "error"
    else:
        assert (got.opcode, got.payload) == (Opcode.BINARY, b"back")
    await until(lambda: any(e["type"] == "llm_response_uninspected" for e in proxy.events))
    assert {e["action"] for e in proxy.events} == {"block" if fail_closed else "allow"}


LONG = frame(Opcode.TEXT, b"x" * 2000, KEY)


@pytest.mark.parametrize(
    ("bad", "code", "status"),
    [
        (frame(Opcode.TEXT, b"{}"), 1002, 400),
        (b"\xc1\x80" + KEY, 1002, 400),
        (b"\x83\x80" + KEY, 1002, 400),
        (LONG, 1009, 413),
    ],
)
@on_loop
async def test_a_violation_of_the_protocol_closes_both_sides_and_is_on_record(opened, bad, code, status):
    provider = Provider()
    _, proxy, socket = await connected(opened, provider, proxy={"max_request": 1024})
    await socket.begin()
    await socket.client.send(bad)
    closing = await socket.next()
    assert (closing.opcode, closing.payload[:2]) == (Opcode.CLOSE, code.to_bytes(2, "big"))
    told = [(e["action"], e["status"], e["path"]) for e in proxy.events if e["type"] == "llm_request_refused"]
    assert told == [("block", status, PATH)]
    await until(lambda: provider.closed)
    assert provider.messages == []


class Dying(Provider):
    async def __call__(self, conversation, received) -> None:
        await conversation.send(self.agreed, *answer("read_file")[:2])
        conversation.writer.close()


@on_loop
async def test_an_upstream_that_dies_within_a_call_releases_nothing_of_it(opened):
    _, _, socket = await connected(opened, Dying())
    await socket.begin()
    payloads = []
    while (message := await socket.next()) is not None:
        payloads.append(message.payload)
    assert orjson.loads(payloads[0])["type"] == "response.created"
    assert not any(b"function_call" in payload for payload in payloads)


@pytest.mark.parametrize(
    ("agreed", "status"),
    [(response(b"{}", status=b"404 Not Found"), 404), (response(b"{}"), 502),
     (AGREED + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", 502)],
)  # fmt: skip
@on_loop
async def test_an_upstream_that_does_not_agree_is_an_error_in_the_dialect(opened, agreed, status):
    _, _, socket = await connected(opened, Provider(agreed=agreed))
    await socket.client.send(raw(PATH, *FIELDS, method="GET"))
    answer = await socket.client.answer("GET")
    assert answer.status == status
    assert "error" in orjson.loads(answer.body)


@pytest.mark.parametrize("path", [PATH, "/openai/v1/realtime", "/anthropic/v1/messages"])
@on_loop
async def test_sockets_are_refused_unless_they_are_to_be_inspected_and_can_be(opened, path):
    upstream = await opened(Upstream(Provider()))
    mode = {} if path == PATH else {"websockets": "inspect"}
    proxy = await opened(Proxy(snapshot(upstream.port, proxy=mode)))
    client = await opened(Client(proxy.port))
    await client.send(raw(path, *FIELDS, method="GET"))
    assert (await client.answer("GET")).status == 426
    assert upstream.requests == []
    (event,) = proxy.events
    assert (event["type"], event["action"], event["rule"]) == (
        "llm_request_refused",
        "block",
        "proxy.websockets",
    )
    assert (event["method"], event["path"], event["status"]) == ("GET", path, 426)
    assert "WebSocket" in event["reason"]


@pytest.mark.parametrize(
    "owner", [Reception, MessageStream], ids=["a message of the client's", "one of the upstream's"]
)
@on_loop
async def test_a_message_that_breaks_us_closes_the_socket_and_is_told_of(opened, monkeypatch, owner):
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    _, proxy, socket = await connected(opened, Provider(b"\x81\x02{}"))
    await socket.begin()
    monkeypatch.setattr(owner, "take" if owner is Reception else "feed", Mock(side_effect=KeyError))
    await socket.send(CREATE)
    message = await socket.next()
    assert message.payload[:2] == (1011).to_bytes(2, "big")
    (event,) = proxy.events
    assert (event["type"], event["action"], event["cause"]) == (
        "llm_response_uninspected",
        "block",
        "internal_error",
    )
    assert list(map(type, told)) == [KeyError]


@on_loop
async def test_an_end_that_breaks_us_closes_the_socket_and_is_told_of(opened, monkeypatch):
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    _, proxy, socket = await connected(opened, Dying())
    await socket.begin()
    monkeypatch.setattr(MessageStream, "finish", Mock(side_effect=KeyError))
    while (message := await socket.next()).opcode is not Opcode.CLOSE:
        pass
    assert message.payload[:2] == (1011).to_bytes(2, "big")
    assert proxy.events[-1]["cause"] == "internal_error"
    assert list(map(type, told)) == [KeyError]
