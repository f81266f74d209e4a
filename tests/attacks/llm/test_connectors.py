"""Row 35: a provider runs no denied tool, be its server in the list, or its call approved by id alone, or hidden in a stored prompt."""

from __future__ import annotations

import orjson
import pytest
from loopback import on_loop
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, response

RESPONSES, MESSAGES = "/openai/v1/responses", "/anthropic/v1/messages"
URL = "http://127.0.0.1:9/mcp"
CONNECTOR = {"type": "mcp", "server_label": "weather", "server_url": URL, "require_approval": "never"}
DENY_ONE = {
    "denied_tools": [{"server": "weather", "tool": "get_weather", "args": {"city": {"equals": "Bern"}}}]
}


def proposal(arguments: str) -> bytes:
    item = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "weather",
        "name": "get_weather",
        "arguments": arguments,
    }
    return orjson.dumps({"id": "resp_1", "object": "response", "output": [item]})


def approving(**more) -> bytes:
    answer = {"type": "mcp_approval_response", "approve": True, "approval_request_id": "mcpr_1"}
    return orjson.dumps({"model": "m", "input": [answer], "previous_response_id": "resp_1", **more})


async def opened_with(opened, *answers: bytes, **mcp):
    upstream = await opened(Upstream(answering(response(answers[0] if answers else b"{}"))))
    proxy = await opened(Proxy(snapshot(upstream.port, **mcp)))
    return upstream, proxy, await opened(Client(proxy.port))


@on_loop
async def test_a_tool_that_arguments_decide_about_waits_for_an_approval(opened):
    upstream, _, client = await opened_with(opened, **DENY_ONE)
    body = orjson.dumps({"model": "m", "input": "x", "tools": [CONNECTOR]})
    assert (await client.ask(request(RESPONSES, body))).status == 200
    (tool,) = orjson.loads(upstream.requests[0].body)["tools"]
    assert tool == {**CONNECTOR, "require_approval": "always", "allowed_tools": ["get_weather"]}


@on_loop
async def test_a_connector_without_denied_tools_leaves_to_the_byte(opened):
    upstream, _, client = await opened_with(opened)
    body = b'{ "model":"m","input":"x", "tools":[' + orjson.dumps(CONNECTOR) + b"]}"
    assert (await client.ask(request(RESPONSES, body))).status == 200
    assert upstream.requests[0].body == body


@pytest.mark.parametrize("fail_closed", [True, False])
@on_loop
async def test_an_approval_by_id_alone_is_judged_as_the_call_it_approves(opened, fail_closed):
    upstream, proxy, client = await opened_with(
        opened, proposal('{"city": "Rome"}'), fail_closed=fail_closed, **DENY_ONE
    )
    asked = orjson.dumps({"model": "m", "input": "x"})
    assert b"mcp_approval_request" in (await client.ask(request(RESPONSES, asked))).body
    assert (await client.ask(request(RESPONSES, approving()))).status == 200
    proxy.swap(
        snapshot(upstream.port, fail_closed=fail_closed, denied_tools=[{"server": "weather", "tool": "*"}])
    )
    client = await opened(Client(proxy.port))
    refused = await client.ask(request(RESPONSES, approving()))
    assert refused.status == 403
    assert b"approval of tool 'get_weather'" in refused.body
    assert len(upstream.requests) == 2


@on_loop
async def test_an_approval_of_a_call_that_nobody_saw_goes_by_fail_closed_and_is_told_of(opened):
    for fail_closed in (True, False):
        upstream, proxy, client = await opened_with(opened, fail_closed=fail_closed)
        answer = await client.ask(request(RESPONSES, approving()))
        assert answer.status == (403 if fail_closed else 200)
        assert len(upstream.requests) == (0 if fail_closed else 1)
        proxy.service.reporter.flush()
        expected = (
            ("mcp_tool_call_intercepted", "block") if fail_closed else ("llm_response_uninspected", "allow")
        )
        assert expected in {(e["type"], e["action"]) for e in proxy.events}


@on_loop
async def test_a_stored_prompt_goes_by_fail_closed_and_is_told_of(opened):
    body = orjson.dumps({"model": "m", "prompt": {"id": "pmpt_1", "version": "2"}})
    for fail_closed in (True, False):
        upstream, proxy, client = await opened_with(opened, fail_closed=fail_closed)
        answer = await client.ask(request(RESPONSES, body))
        assert answer.status == (400 if fail_closed else 200)
        assert len(upstream.requests) == (0 if fail_closed else 1)
        proxy.service.reporter.flush()
        assert [(e["cause"], e["action"]) for e in proxy.events] == [
            ("stored_prompt", "block" if fail_closed else "allow")
        ]


@on_loop
async def test_anthropic_is_asked_for_the_allowed_tools_alone(opened):
    rule = {"denied_tools": [{"server": "weather", "tool": "set_*"}]}
    upstream, _, client = await opened_with(opened, **rule)
    server = {"type": "url", "name": "weather", "url": URL}
    assert (await client.ask(request(MESSAGES, orjson.dumps({"mcp_servers": [server]})))).status == 200
    (sent,) = orjson.loads(upstream.requests[0].body)["mcp_servers"]
    assert sent == {**server, "tool_configuration": {"allowed_tools": ["get_weather"]}}
    client = await opened(Client((await opened(Proxy(snapshot(upstream.port, **DENY_ONE)))).port))
    refused = await client.ask(request(MESSAGES, orjson.dumps({"mcp_servers": [server]})))
    assert (refused.status, orjson.loads(refused.body)["error"]["type"]) == (403, "permission_error")


@pytest.mark.parametrize("enforce", [True, False])
@on_loop
async def test_a_server_whose_denied_tools_cannot_be_kept_back_is_told_of_as_refused(opened, enforce):
    upstream, proxy, client = await opened_with(
        opened, enforce_policy=enforce, denied_tools=[{"server": "*", "tool": "drop_*"}]
    )
    servers = [
        {"type": "url", "name": name, "url": f"https://{name}.example/mcp"} for name in ("evil", "two")
    ]
    body = orjson.dumps({"model": "m", "messages": [], "mcp_servers": servers})
    answer = await client.ask(request(MESSAGES, body))
    assert answer.status == (403 if enforce else 200)
    assert [r.body for r in upstream.requests] == ([] if enforce else [body])
    proxy.service.reporter.flush()
    told = [(e["server_id"], e["action"], e.get("would")) for e in proxy.events]
    assert told[0] == (("evil", "block", None) if enforce else ("evil", "allow", "block"))
    assert told[1][0] == "two"


GEMINI = {
    "contents": [],
    "tools": [{"mcpServers": [{"name": "weather", "streamableHttpTransport": {"url": URL}}]}],
}
BESIDE = {"messages": [], "additionalModelRequestFields": {"mcp_servers": [{"type": "url", "name": "weather", "url": URL}]}}  # fmt: skip


@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/gemini/v1beta/models/m:generateContent", GEMINI),
        ("/gemini/v1beta/models/m:streamGenerateContent", GEMINI),
        ("/gemini/v1beta/cachedContents", GEMINI),
        ("/gemini/v1beta/interactions", {"tools": [{"type": "mcp_server", "name": "weather", "url": URL}]}),
        ("/bedrock/model/m/converse", BESIDE),
    ],
)
@on_loop
async def test_a_server_that_an_api_cannot_confine_is_refused_where_policy_denies_some_of_its_tools(
    opened, path, body, enforce
):
    upstream = await opened(Upstream(answering(response(b"{}"))))
    at = f"http://127.0.0.1:{upstream.port}"
    providers = {name: {"base_url": at, "dialect": name} for name in ("gemini", "bedrock")}
    for denied in ("set_*", "unrelated"):
        rule = {"denied_tools": [{"server": "weather" if denied == "set_*" else "files", "tool": denied}]}
        policy = snapshot(proxy={"providers": providers}, enforce_policy=enforce, **rule)
        proxy = await opened(Proxy(policy))
        client = await opened(Client(proxy.port))
        answer = await client.ask(request(path, orjson.dumps(body), b"Authorization: Bearer k"))
        refused = denied == "set_*"
        assert answer.status == (403 if refused and enforce else 200), answer.body
        proxy.service.reporter.flush()
        told = [(e["server_id"], e["action"], e.get("would")) for e in proxy.events]
        blocked = ("weather", "block", None) if enforce else ("weather", "allow", "block")
        assert told == [blocked if refused else ("weather", "allow", None)]


@pytest.mark.parametrize("path", ["/openai/v1/conversations", "/openai/v1/conversations/conv_1/items"])
@on_loop
async def test_an_approval_that_is_put_into_a_conversation_is_judged(opened, path):
    upstream, proxy, client = await opened_with(
        opened,
        proposal('{"city": "Bern"}'),
        fail_closed=True,
        denied_tools=[{"server": "weather", "tool": "get_weather"}],
    )
    asked = {
        "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "weather", "name": "get_weather", "arguments": "{}",
    }  # fmt: skip
    answer = {"type": "mcp_approval_response", "approve": True, "approval_request_id": "mcpr_1"}
    refused = await client.ask(request(path, orjson.dumps({"items": [asked, answer]})))
    assert refused.status == 403
    assert b"approval of tool 'get_weather'" in refused.body
    assert not upstream.requests
    proxy.service.reporter.flush()
    assert [(e["type"], e["action"], e["tool_name"]) for e in proxy.events] == [
        ("mcp_tool_call_intercepted", "block", "get_weather")
    ]
    client = await opened(Client(proxy.port))
    no = {**answer, "approve": False}
    assert (await client.ask(request(path, orjson.dumps({"items": [asked, no]})))).status == 200


@pytest.mark.parametrize("fail_closed", [True, False])
@pytest.mark.parametrize("enforced", [True, False])
@on_loop
async def test_a_server_at_the_providers_own_address_is_not_called_through_the_proxy(
    opened, *, fail_closed, enforced
):
    upstream = await opened(Upstream(answering(response(b"{}"))))
    servers = [{"id": "beside", "type": "http", "url": f"http://127.0.0.1:{upstream.port}/v1/mcp/"}]
    policy = snapshot(
        upstream.port,
        servers=servers,
        denied_servers=[{"id": "beside"}],
        denied_tools=[],
        fail_closed=fail_closed,
        enforce_policy=enforced,
    )
    proxy = await opened(Proxy(policy))
    client = await opened(Client(proxy.port))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm", "arguments": {}}}
    answer = await client.ask(request("/openai/v1/mcp", orjson.dumps(call)))
    assert (answer.status, len(upstream.requests)) == ((403, 0) if enforced else (200, 1))
    (told,) = proxy.events
    if enforced:
        assert (told["type"], told["action"], told["status"]) == ("llm_request_refused", "block", 403)
        assert "is the MCP server 'beside'" in told["reason"]
    else:
        assert (told["type"], told["action"]) == ("llm_response_uninspected", "allow")
