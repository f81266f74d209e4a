"""No provider is asked to call a server, or a tool of one, that policy denies; each server it is asked for is told of once."""

from __future__ import annotations

import contextlib

import orjson
import pytest
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.connectors import Connectors
from agentsh_proxy.llm.reporting import Subject
from loopback import on_loop
from loopback.proxy import Proxy, snapshot

from agentsh_net.core.dialects.base import Connector
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT

ASKED = Connector("weather", "http://127.0.0.1:9/mcp")
TOOL = {"type": "mcp", "server_label": ASKED.server_id, "server_url": ASKED.url}
REQUEST = {"model": "m", "input": "x", "tools": [TOOL]}
NO_WEATHER = {"denied_tools": [{"server": "weather", "tool": "get_*"}]}
WATCHED = {**NO_WEATHER, "enforce_policy": False}
WITHHELD = "sandbox.mcp.denied_tools"


def connectors(proxy):
    return Connectors(proxy.service, proxy.service.view, Subject("s", "r", DIALECT.name), DIALECT)


def told(proxy):
    proxy.service.reporter.flush()
    return [(e["type"], e["action"], e.get("would"), e["rule"]) for e in proxy.events]


@on_loop
async def test_a_denied_server_is_refused_by_its_name_and_told_of(opened):
    proxy = await opened(Proxy(snapshot(1, denied_servers=["weather"])))
    with pytest.raises(RefusalError, match="MCP server 'weather' blocked by policy") as refused:
        connectors(proxy).judged([ASKED])
    assert (refused.value.status, refused.value.dialect) == (403, DIALECT)
    ((kind, action, _, rule),) = told(proxy)
    assert (kind, action) == ("mcp_connector_request", "block")
    assert rule.startswith("sandbox.mcp.denied_servers")


@pytest.mark.parametrize("denied", [["weather"], []])
@on_loop
async def test_a_declared_server_is_told_of_by_its_id_whatever_the_request_calls_it(opened, denied):
    proxy = await opened(Proxy(snapshot(1, denied_servers=denied)))
    here = connectors(proxy)
    with pytest.raises(RefusalError, match="MCP server 'x'") if denied else contextlib.nullcontext():
        here.refuse_confined(here.judged([Connector("x", ASKED.url)]))
    proxy.service.reporter.flush()
    assert [event["server_id"] for event in proxy.events] == ["weather"]


@pytest.mark.parametrize("understood", [True, False])
@on_loop
async def test_a_server_whose_denied_tools_cannot_be_kept_back_is_refused(opened, understood):
    proxy = await opened(Proxy(snapshot(1, **NO_WEATHER)))
    here = connectors(proxy)
    passed = here.judged([ASKED])
    with pytest.raises(RefusalError, match="MCP server 'weather': policy denies"):
        here.confined(b"{}", REQUEST, passed) if understood else here.refuse_confined(passed)
    assert told(proxy) == [("mcp_connector_request", "block", None, WITHHELD)]


@pytest.mark.parametrize("understood", [True, False])
@on_loop
async def test_in_audit_mode_it_passes_and_the_event_says_what_would_be(opened, understood):
    proxy = await opened(Proxy(snapshot(1, **WATCHED)))
    here, body = connectors(proxy), orjson.dumps(REQUEST)
    passed = here.judged([ASKED])
    if understood:
        assert here.confined(body, REQUEST, passed) is body
    else:
        here.refuse_confined(passed)
    assert told(proxy) == [("mcp_connector_request", "allow", "block", WITHHELD)]


@pytest.mark.parametrize("enforced", [True, False])
@on_loop
async def test_a_server_is_asked_for_with_the_tools_that_policy_allows(opened, enforced):
    policy = {"denied_tools": [{"server": "weather", "tool": "wipe_*"}], "enforce_policy": enforced}
    proxy = await opened(Proxy(snapshot(1, **policy)))
    here = connectors(proxy)
    left = orjson.loads(here.confined(orjson.dumps(REQUEST), REQUEST, here.judged([ASKED])))
    assert left["tools"][0].get("allowed_tools") == (["get_weather"] if enforced else None)
    assert [event[:2] for event in told(proxy)] == [("mcp_connector_request", "allow")]


@on_loop
async def test_a_server_that_the_request_cannot_confine_is_refused_if_policy_confines_it(opened):
    proxy = await opened(Proxy(snapshot(1, **NO_WEATHER)))
    here = connectors(proxy)
    with pytest.raises(RefusalError, match="cannot be kept back here"):
        here.confined(b"{}", {"contents": []}, here.judged([ASKED]))
    assert told(proxy) == [("mcp_connector_request", "block", None, WITHHELD)]
