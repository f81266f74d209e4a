"""Every MCP server that a request asks Gemini to call is told, wherever it stands; what the client offers is nobody's server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.base import Connector, RequestFacts
from agentsh_net.core.dialects.gemini.request import MAX_CONNECTORS, read

SERVER = {
    "name": "weather",
    "streamableHttpTransport": {"url": "https://w.example/mcp", "headers": {"url": "x"}},
}
WEATHER = Connector("weather", "https://w.example/mcp")
ASK = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def facts(value: Any) -> RequestFacts:
    return read((value if isinstance(value, str) else json.dumps(value)).encode(), stream=True)


def test_a_request_without_servers_names_none_and_the_path_says_whether_it_streams() -> None:
    offered = ASK | {
        "tools": [{"functionDeclarations": [{"name": "mcp_weather_get"}]}, {"codeExecution": {}}]
    }
    assert facts(offered) == RequestFacts(stream=True)
    assert read(b"{}", stream=False) == RequestFacts(stream=False)
    assert read(b"", stream=False) == RequestFacts()


@pytest.mark.parametrize(
    "value",
    [
        ASK | {"tools": [{"mcpServers": [SERVER]}]},
        ASK | {"tools": [{"mcp_servers": [SERVER]}]},
        ASK | {"tools": {"McpServers": SERVER}},
        ASK | {"mcpServers": [SERVER]},
        {"model": "m", "request": ASK | {"tools": [{"mcpServers": [SERVER]}]}},
    ],
)
def test_a_server_is_found_wherever_it_stands(value: Any) -> None:
    assert facts(value).connectors == (WEATHER,)


def test_what_the_client_says_and_declares_is_not_searched() -> None:
    schema = {"type": "object", "properties": {"mcpServers": {"type": "array"}}}
    said = {"contents": [{"parts": [{"functionResponse": {"response": {"mcpServers": [SERVER]}}}]}]}
    value = said | {"tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}
    assert facts(value) == RequestFacts(stream=True)


def test_a_server_with_two_addresses_is_judged_by_both_and_one_without_any_by_its_name() -> None:
    two = {"name": "w", "url": "https://a.example", "streamableHttpTransport": {"url": "https://b.example"}}
    assert facts({"tools": [{"mcpServers": [two]}]}).connectors == (
        Connector("w", "https://a.example"), Connector("w", "https://b.example"),
    )  # fmt: skip
    assert facts({"tools": [{"mcpServers": ["x", {"name": "w"}]}]}).connectors == (
        Connector("", ""), Connector("w", ""),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '{"tools":[{"mcpServers":[]}],"tools":[]}',
        '{"tools":[{"mcpServers":[{"name":"a","name":"b"}]}]}',
        '{"tools":[{"mcpServers":[{"name":"a","Name":"b"}]}]}',
        '{"tools":[{"mcpServers":[{"streamableHttpTransport":{"url":"a","url":"b"}}]}]}',
    ],
)
def test_what_leaves_open_which_server_is_meant_must_not_pass(text: str) -> None:
    fault = facts(text).fault
    assert fault is not None
    assert (fault.cause, fault.cut) == ("duplicate_keys", True)


def test_a_server_under_a_key_that_go_reads_is_found() -> None:
    body = {"tools": [{"mcp_\u017ferver\u017f": [{"name": "a"}]}]}
    for escaped in (True, False):
        text = json.dumps(body, ensure_ascii=escaped).encode()
        assert read(text, stream=True).connectors == (Connector("a", ""),)


def test_a_server_in_disguise_is_found() -> None:
    assert facts('{"tools":[{"\\u006dcpServers":[{"name":"w"}]}]}').connectors == (Connector("w", ""),)
    fault = read('{"tools":[{"mcpServers":[]}]}'.encode("utf-16-le"), stream=True).fault
    assert fault is not None


@pytest.mark.parametrize(("body", "cause"), [("[]", "malformed_json"), ("{", "malformed_json")])
def test_a_body_that_is_no_object_is_told_and_harmless(body: str, cause: str) -> None:
    fault = facts(body).fault
    assert fault is not None
    assert (fault.cause, fault.cut) == (cause, False)


def test_more_servers_than_any_request_has_must_not_pass() -> None:
    many = facts({"tools": [{"mcpServers": [SERVER] * (MAX_CONNECTORS + 1)}]})
    assert len(many.connectors) == MAX_CONNECTORS
    assert many.fault is not None
    assert many.fault.cut
