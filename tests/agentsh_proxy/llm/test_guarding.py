"""DLP through the proxy: what leaves for the provider, what comes back to the client, and what the audit tells of it."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from typing import Any

import pytest
from agentsh_proxy.llm.guarding import without_description
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, response

from agentsh_net.core.dlp.tokens import TOKEN

MESSAGES = "/anthropic/v1/messages"
EMAIL = "alice@example.com"


def asking(text: str = f"mail {EMAIL}", **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **more}).encode()


def policy(port: int, mode: str, **mcp: Any) -> Any:
    return snapshot(port, dlp={"mode": mode}, **mcp)


def told(proxy: Proxy, kind: str) -> list[dict[str, Any]]:
    return [event for event in proxy.events if event["type"] == kind]


@on_loop
async def test_a_request_leaves_redacted_and_the_audit_counts_without_values(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(policy(upstream.port, "redact")))
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(MESSAGES, asking()))).status == 200
    assert upstream.requests[0].body == asking("mail [REDACTED:email]")
    await until(lambda: told(proxy, "llm_request_redacted"))
    (event,) = told(proxy, "llm_request_redacted")
    assert (event["mode"], event["counts"], event["dialect"]) == ("redact", {"email": 1}, "anthropic")
    assert EMAIL not in json.dumps(proxy.events)


@on_loop
async def test_off_or_with_nothing_to_find_the_very_bytes_leave(opened):
    upstream = await opened(Upstream())
    clean = b'{ "model":"m",  "n": 1.50, "messages":[]}'
    for mode, body in (("disabled", asking()), ("redact", clean), ("tokenize", clean)):
        proxy = await opened(Proxy(policy(upstream.port, mode)))
        client = await opened(Client(proxy.port))
        await client.ask(request(MESSAGES, body))
        assert upstream.requests[-1].body == body
        assert proxy.events == []


@on_loop
async def test_a_packed_request_is_searched_and_leaves_unpacked(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(policy(upstream.port, "redact")))
    client = await opened(Client(proxy.port))
    fields = (b"Content-Encoding: gzip", b"X-Kept: 1", b"Content-MD5: x")
    await client.ask(request(MESSAGES, gzip.compress(asking()), *fields))
    (got,) = upstream.requests
    assert got.body == asking("mail [REDACTED:email]")
    assert (got.values("content-encoding"), got.values("content-md5"), got.values("x-kept")) == (
        [],
        [],
        [b"1"],
    )


@pytest.mark.parametrize("fail_closed", [False, True])
@on_loop
async def test_what_cannot_be_read_follows_fail_closed(opened, fail_closed):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(policy(upstream.port, "redact", fail_closed=fail_closed)))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, b'{"messages": "' + EMAIL.encode()))
    assert (answer.status, len(upstream.requests)) == ((400, 0) if fail_closed else (200, 1))
    await until(lambda: told(proxy, "llm_response_uninspected"))
    assert {event["action"] for event in proxy.events} == {"block" if fail_closed else "allow"}


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


class Echo:
    """A model that writes what it was asked, in pieces, and calls tools with it."""

    def __init__(self, tool: str, *, stream: bool = True) -> None:
        self.tool = tool
        self.stream = stream
        self.token = ""

    async def __call__(self, conversation: Any, received: Any) -> None:
        match = TOKEN.search(received.body.decode())
        self.token = match[0] if match else self.token
        arguments = json.dumps({"path": self.token})
        block = {"type": "tool_use", "id": "toolu_1", "name": self.tool, "input": {}}
        message = {"id": "msg_1", "type": "message", "role": "assistant"}
        if not self.stream:
            blocks = [{"type": "text", "text": self.token}, {**block, "input": {"path": self.token}}]
            await conversation.send(
                response(json.dumps({**message, "content": blocks, "stop_reason": "tool_use"}).encode())
            )
            return
        frames = [
            event("message_start", message={**message, "content": []}),
            event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            *(
                event("content_block_delta", index=0, delta={"type": "text_delta", "text": c})
                for c in self.token
            ),
            event("content_block_stop", index=0),
            event("content_block_start", index=1, content_block=block),
            *(
                event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": c})
                for c in arguments
            ),
            event("content_block_stop", index=1),
            event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}),
            event("message_stop"),
        ]
        await conversation.send(response(b"".join(frames), content_type=b"text/event-stream"))


def content(body: bytes) -> tuple[str, str]:
    text = arguments = ""
    for frame in body.split(b"\n\n"):
        data = json.loads(frame.partition(b"data: ")[2] or b"{}")
        text += data.get("delta", {}).get("text", "")
        arguments += data.get("delta", {}).get("partial_json", "")
    return text, arguments


@on_loop
async def test_tokens_come_back_in_text_and_arguments_as_they_stream(opened):
    model = Echo("get_weather")
    upstream = await opened(Upstream(model))
    proxy = await opened(Proxy(policy(upstream.port, "tokenize")))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, asking(stream=True)))
    assert EMAIL.encode() not in upstream.requests[0].body
    text, arguments = content(answer.body)
    assert (text, json.loads(arguments)) == (EMAIL, {"path": EMAIL})
    await until(lambda: told(proxy, "mcp_tool_call_intercepted"))
    (call,) = told(proxy, "mcp_tool_call_intercepted")
    assert (call["action"], call["input"]) == ("allow", {"path": "[REDACTED:email]"})
    assert EMAIL not in json.dumps(proxy.events)


@on_loop
async def test_tokens_come_back_in_a_whole_answer(opened):
    upstream = await opened(Upstream(Echo("get_weather", stream=False)))
    proxy = await opened(Proxy(policy(upstream.port, "tokenize")))
    client = await opened(Client(proxy.port))
    answer = json.loads((await client.ask(request(MESSAGES, asking()))).body)
    assert [block.get("text") or block["input"] for block in answer["content"]] == [EMAIL, {"path": EMAIL}]


@on_loop
async def test_rules_over_arguments_see_what_the_tool_would_get(opened):
    upstream = await opened(Upstream(Echo("read_file")))
    rule = {"server": "files", "tool": "read_file", "args": {"path": {"equals": EMAIL}}}
    proxy = await opened(Proxy(policy(upstream.port, "tokenize", denied_tools=[rule])))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, asking(stream=True)))
    assert b"blocked by policy" in answer.body
    await until(lambda: told(proxy, "mcp_tool_call_intercepted"))
    assert told(proxy, "mcp_tool_call_intercepted")[0]["action"] == "block"


@on_loop
async def test_another_session_gets_nothing_for_a_token(opened):
    model = Echo("get_weather")
    upstream = await opened(Upstream(model))
    proxy = await opened(Proxy(policy(upstream.port, "tokenize")))
    proxy.service.sessions = {sha256(b"abc").hexdigest(): "other"}
    client = await opened(Client(proxy.port))
    await client.ask(request(MESSAGES, asking(stream=True)))
    answer = await client.ask(request("/s/abc" + MESSAGES, asking("hello", stream=True)))
    assert content(answer.body)[0] == model.token != ""


def test_fields_of_the_body_go_with_the_body() -> None:
    opening = b"POST / HTTP/1.1\r\nHost: x\r\ncontent-ENCODING: gzip\r\nDigest: y\r\nX: Content-Encoding"
    assert without_description(opening) == b"POST / HTTP/1.1\r\nHost: x\r\nX: Content-Encoding"


@pytest.mark.parametrize(
    "path", ["/anthropic/v1/messages/count_tokens", "/openai/v1/embeddings", "/anthropic/v1/future"]
)
@on_loop
async def test_paths_that_no_dialect_reads_are_searched_too(opened, path):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(policy(upstream.port, "redact")))
    client = await opened(Client(proxy.port))
    await client.ask(request(path, asking(), b"Content-Type: application/json; charset=utf-8"))
    await client.ask(request(path, asking()))
    await client.ask(request(path, gzip.compress(asking()), b"Content-Encoding: gzip"))
    assert [got.body for got in upstream.requests] == [asking("mail [REDACTED:email]")] * 3
    assert upstream.requests[2].values("content-encoding") == []


@on_loop
async def test_an_upload_of_a_file_streams_as_it_is(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(policy(upstream.port, "redact")))
    client = await opened(Client(proxy.port))
    form = b"--x\r\n\r\n" + EMAIL.encode()
    await client.ask(request("/anthropic/v1/files", form, b"Content-Type: multipart/form-data; boundary=x"))
    assert upstream.requests[0].body == form


@on_loop
async def test_json_is_searched_whatever_it_is_called_and_a_form_passes_as_one(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(policy(upstream.port, "redact", fail_closed=True)))
    client = await opened(Client(proxy.port))
    for named in (b"text/plain", b"application/x-www-form-urlencoded"):  # as `curl -d` calls what it is given
        await client.ask(request("/openai/v1/embeddings", asking(), b"Content-Type: " + named))
    form = b"to=" + EMAIL.encode()
    kind = b"Content-Type: application/x-www-form-urlencoded"
    answer = await client.ask(request("/openai/v1/embeddings", form, kind))
    assert answer.status == 200
    assert [got.body for got in upstream.requests] == [*[asking("mail [REDACTED:email]")] * 2, form]
    await until(lambda: len(told(proxy, "llm_request_redacted")) == 2)
