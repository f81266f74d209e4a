"""Every MCP server that a request names and every call it approves is found, however it is written; the rest is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.base import Connector, RequestFacts
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.dialects.openai_responses.request import MAX_CONNECTORS

URL = "https://mcp.example.com/mcp"
MCP = {"type": "mcp", "server_label": "fs", "server_url": URL, "require_approval": "never"}


def facts(**fields: Any) -> RequestFacts:
    body = {"model": "m", "input": "x"} | fields
    return DIALECT.request(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("value", "read"), [(True, True), (False, False), (None, False), (1, True), ("true", True), ("no", False)]
)
def test_flags_are_read_as_lenient_servers_read_them(value: Any, *, read: bool) -> None:
    assert facts(stream=value).stream is read
    assert facts(stream=value, tools=[MCP]).stream is read
    assert facts().stream is False


@pytest.mark.parametrize("body", [b"", b"  \n", b"{}", b'{"input":"mcp"}'])
def test_a_request_without_anything_says_nothing(body: bytes) -> None:
    assert DIALECT.request(body) == RequestFacts()


@pytest.mark.parametrize("kind", ["connector", "Connector "])
def test_a_connector_of_mistrals_is_named_by_its_id(kind: str) -> None:
    found = facts(inputs="x", tools=[{"type": kind, "connector_id": "gh"}, {"type": "web_search"}])
    assert found.connectors == (Connector("gh", "gh"),)
    assert found.parsed is not None


@pytest.mark.parametrize(
    ("tool", "url"),
    [
        (MCP, URL),
        ({"type": "mcp", "server_label": "fs", "connector_id": "connector_gmail"}, "connector_gmail"),
        ({"type": "mcp", "server_label": "fs", "tunnel_id": "tunnel_1"}, "tunnel_1"),
        ({"type": "mcp", "server_label": "fs"}, ""),
        ({"type": " MCP", "server_label": "fs", "server_url": URL}, URL),
        ({"Type": "mcp", "Server_Label": "fs", "SERVER_URL": URL}, URL),
        ({"server_label": "fs", "server_url": URL}, URL),
        ({"type": ["mcp"], "server_label": "fs", "server_url": URL}, URL),
        ({"type": "mcp", "server_label": "fs", "server_url": [URL]}, ""),
    ],
)
def test_a_connector_is_found(tool: dict[str, Any], url: str) -> None:
    for place in (
        {"tools": [{"type": "function", "name": "f"}, tool]},
        {"tools": [{"type": "namespace", "name": "n", "tools": [tool]}]},
        {"tools": [{"type": "namespace", "tools": [{"type": "namespace", "tools": [tool]}]}]},
        {"input": [{"type": "additional_tools", "role": "developer", "tools": [tool]}]},
        {"input": [{"type": "tool_search_output", "tools": [tool]}]},
    ):
        assert facts(**place).connectors == (Connector("fs", url),)


@pytest.mark.parametrize(
    "entry",
    [{"type": "connector"}, {"type": "\u00a0MCP\u2003"}, {"\u017ferver_url": URL}, {"type": "mcp\n"}],
    ids=ascii,
)
@pytest.mark.parametrize("escaped", [True, False])
def test_a_connector_in_odd_letters_is_found(entry: dict[str, Any], *, escaped: bool) -> None:
    body = json.dumps({"tools": [entry]}, ensure_ascii=escaped).encode()
    assert len(DIALECT.request(body).connectors) == 1


def test_a_connector_with_two_addresses_is_two() -> None:
    both = facts(tools=[MCP | {"connector_id": "connector_gmail"}]).connectors
    assert both == (Connector("fs", URL), Connector("fs", "connector_gmail"))


def test_a_connector_named_twice_is_judged_once() -> None:
    assert facts(tools=[MCP, MCP | {"allowed_tools": ["a"]}]).connectors == (Connector("fs", URL),)


def test_an_escape_hides_no_connector() -> None:
    body = json.dumps({"tools": [MCP]}).replace("mcp", "m\\u0063p").replace("type", "t\\u0079pe").encode()
    assert DIALECT.request(body).connectors == (Connector("fs", "https://mcp.example.com/mcp"),)


PROPOSED = {
    "type": "mcp_approval_request",
    "id": "r1",
    "server_label": "fs",
    "name": "rm",
    "arguments": '{"a":1}',
}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": True}


def test_an_approval_tells_of_the_call_it_approves() -> None:
    (call,) = facts(input=[PROPOSED, APPROVED]).approvals
    assert (call.name, call.server_name, call.call_id, call.input) == ("rm", "fs", "r1", {"a": 1})


def test_an_approval_among_the_items_that_a_conversation_gets_is_told_too() -> None:
    (call,) = facts(items=[PROPOSED, APPROVED]).approvals
    assert call == facts(input=[PROPOSED, APPROVED]).approvals[0]
    assert [c.url for c in facts(items=[{"tools": [MCP]}]).connectors] == [URL]


@pytest.mark.parametrize("approve", [True, 1, "true"])
def test_an_approval_of_what_the_request_does_not_show_has_no_name(approve: Any) -> None:
    (call,) = facts(input=[APPROVED | {"approve": approve}], previous_response_id="resp_1").approvals
    assert (call.name, call.server_name, call.call_id) == ("", "", "r1")


@pytest.mark.parametrize("approve", [False, None, 0, "false"])
def test_a_refusal_approves_nothing(approve: Any) -> None:
    assert facts(input=[PROPOSED, APPROVED | {"approve": approve}]).approvals == ()


TWICE = [
    '{"tools":[],"tools":[%s]}',
    '{"tools":[%s],"Tools":[]}',
    '{"tools":[{"type":"function","type":"mcp","x":%s}]}',
    '{"tools":[{"type":"mcp","server_url":"https://good","server_url":"https://bad","x":%s}]}',
    '{"tools":[{"type":"mcp","server_url":"https://good","Server_URL":"https://bad","x":%s}]}',
    '{"input":"x","input":[{"tools":[%s]}]}',
    '{"stream":true,"stream":false,"x":%s}',
    '{"stream":true,"STREAM":false,"x":%s}',
]


@pytest.mark.parametrize("body", TWICE)
def test_a_request_with_two_readings_is_a_fault(body: str) -> None:
    found = DIALECT.request((body % json.dumps(MCP)).encode())
    assert found.fault is not None
    assert found.fault.cause == "duplicate_keys"


def test_keys_twice_elsewhere_are_no_fault() -> None:
    body = b'{"tools":[{"type":"function","name":"a","name":"b"}],"x":1,"x":2}'
    assert DIALECT.request(body).fault is None


@pytest.mark.parametrize("body", [b"{", b"[]", b'"mcp"', b"\xff", b"1", b'{"type":"mcp"'])
def test_what_is_no_json_object_is_a_fault(body: bytes) -> None:
    found = DIALECT.request(body)
    assert found.fault is not None
    assert found.fault.cause == "malformed_json"


def test_more_connectors_than_tools_can_be_are_a_fault() -> None:
    found = facts(tools=[MCP | {"server_label": str(at)} for at in range(MAX_CONNECTORS + 1)])
    assert found.fault is not None
    assert found.fault.cause == "too_many_connectors"
    assert len(found.connectors) == MAX_CONNECTORS


def test_depth_breaks_nothing() -> None:
    tool: dict[str, Any] = MCP
    for _ in range(90):
        tool = {"type": "namespace", "tools": [tool]}
    assert facts(tools=[tool]).connectors == (Connector("fs", URL),)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.just(MCP)
    | st.just(PROPOSED)
    | st.just(APPROVED),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tools", "input", "type", "approve", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, VALUES, VALUES)
def test_no_request_is_an_error_of_ours_and_a_server_is_found_beside_anything(
    tools: Any, items: Any, stream: Any
) -> None:
    facts(tools=tools, input=items, stream=stream)
    found = facts(tools=[tools, MCP], input=items, stream=stream)
    assert Connector("fs", URL) in found.connectors or found.fault is not None
    assert facts(tools=[MCP, tools]).connectors[:1] == (Connector("fs", URL),)
