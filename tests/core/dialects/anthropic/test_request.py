"""A Messages request tells every MCP server that it asks the provider to call, or says why it cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.anthropic.dialect import DIALECT
from agentsh_net.core.dialects.base import Connector, RequestFacts

SERVER = {
    "type": "url",
    "url": "https://mcp.example.com/mcp",
    "name": "example",
    "authorization_token": "secret",
}


def facts(**fields: Any) -> RequestFacts:
    return DIALECT.request(json.dumps({"model": "m", "messages": []} | fields).encode())


def test_a_request_without_connectors_tells_only_whether_it_streams() -> None:
    assert facts() == RequestFacts()
    assert facts(stream=True, tools=[{"name": "x", "input_schema": {}}]) == RequestFacts(stream=True)
    assert facts(stream=False) == RequestFacts()
    assert facts(messages=[{"role": "user", "content": "mcp_servers \u0007"}]) == RequestFacts()


def test_declared_servers_are_connectors() -> None:
    other = SERVER | {"name": "other", "url": "https://other.example/sse"}
    assert facts(stream=True, mcp_servers=[SERVER, other]) == RequestFacts(
        stream=True,
        connectors=(
            Connector("example", "https://mcp.example.com/mcp"),
            Connector("other", "https://other.example/sse"),
        ),
    )


def test_a_toolset_names_a_server_that_need_not_be_declared_here() -> None:
    tools = [{"type": "mcp_toolset", "mcp_server_name": name} for name in ("example", "stored")]
    assert facts(mcp_servers=[SERVER], tools=tools).connectors == (
        Connector("example", "https://mcp.example.com/mcp"),
        Connector("stored", ""),
    )


def test_keys_in_another_case_and_escapes_hide_no_connector() -> None:
    assert facts(MCP_Servers=[{"Name": "a", "URL": "u"}]).connectors == (Connector("a", "u"),)
    body = json.dumps({"mcp_servers": [SERVER]}).replace("mcp_servers", "mc\\u0070_servers").encode()
    assert DIALECT.request(body).connectors == (Connector("example", "https://mcp.example.com/mcp"),)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"mcp"', b"\x28\xb5\x2f\xfd", b"[" * 100_000],
    ids=["empty", "open", "list", "null", "string", "zstd", "deep"],
)
def test_an_unreadable_request_is_a_fault(body: bytes) -> None:
    fault = DIALECT.request(body).fault
    assert fault is not None
    assert fault.cause == ("unreadable_json" if len(body) > 99 else "malformed_json")
    assert not fault.cut


@pytest.mark.parametrize(
    "body",
    [
        '{"stream":true,"stream":false}',
        '{"stream":true,"\\u0073tream":false}',
        '{"mcp_servers":[{"name":"a","url":"u"}],"mcp_servers":[]}',
        '{"mcp_servers":[{"name":"a","url":"u"}],"MCP_servers":[]}',
        '{"tools":[{"type":"mcp_toolset","mcp_server_name":"a"}],"tools":[]}',
        '{"mcp_servers":[{"name":"a","url":"u","url":"v"}]}',
    ],
)
def test_a_key_twice_that_decides_what_is_asked_for_is_a_fault(body: str) -> None:
    fault = DIALECT.request(body.encode()).fault
    assert fault is not None
    assert fault.cause == "duplicate_keys"


@pytest.mark.parametrize(
    "servers",
    [
        ["u"],
        [{"name": "a"}],
        [{"url": "u"}],
        [{"name": ["a"], "url": "u"}],
        [{"name": "a", "url": "u"}, {"name": "a", "url": "v"}],
        [{"name": "a", "url": "u", "URL": "v"}],
        True,
    ],
    ids=str,
)
def test_a_connector_without_a_name_and_url_of_its_own_is_a_fault(servers: Any) -> None:
    fault = facts(mcp_servers=servers).fault
    assert fault is not None
    assert fault.cause == "malformed_connector"


def test_one_server_outside_of_a_list_is_a_connector() -> None:
    assert facts(mcp_servers={"name": "a", "url": "u"}).connectors == (Connector("a", "u"),)


def test_a_toolset_without_a_server_is_a_fault() -> None:
    fault = facts(tools=[{"type": "mcp_toolset"}]).fault
    assert fault is not None
    assert fault.cause == "malformed_connector"


def test_more_connectors_than_the_api_serves_are_a_fault() -> None:
    fault = facts(mcp_servers=[SERVER | {"name": str(at)} for at in range(65)]).fault
    assert fault is not None
    assert fault.cause == "too_many_connectors"


def test_null_is_no_connector() -> None:
    assert facts(mcp_servers=None, tools=None) == RequestFacts()


def test_what_strict_parsers_refuse_is_read_all_the_same() -> None:
    assert DIALECT.request(b'{"stream":true,"temperature":NaN,"x":"\\ud800"}') == RequestFacts(stream=True)


def test_a_server_named_deep_in_the_tools_or_beside_them_is_read_strictly() -> None:
    deep = {"mcp_server_name": "a"}
    for _ in range(300):  # orjson reads that deep, and writes no deeper than 254
        deep = {"x": deep}
    read = facts(tools=[deep])
    assert read.fault is not None
    assert (read.fault.cause, read.fault.cut) == ("unreadable_json", True)
    assert facts(Tools=[{"type": "MCP_Toolset", "mcp_server_name": "a"}]).connectors == (Connector("a", ""),)
    assert facts(messages=[{"content": "mcp_toolset"}], tools=[{"name": "x"}]).fault is None


def test_a_server_is_judged_beside_keys_twice_that_stop_nothing() -> None:
    body = json.dumps({"stream": True, "mcp_servers": [SERVER]}).replace("{", '{"stream": false, ', 1)
    read = DIALECT.request(body.encode())
    assert read.fault is not None
    assert not read.fault.cut
    assert read.connectors == (Connector("example", "https://mcp.example.com/mcp"),)


def test_what_reads_as_a_key_to_go_names_a_server() -> None:
    for name in ("mcp_\u017ferver_name", "MCP_server_name"):
        assert facts(tools=[{"type": "x", name: "a"}]).connectors == (Connector("a", ""),)
        body = json.dumps({"tools": [{name: "a"}]}, ensure_ascii=False).encode()
        assert DIALECT.request(body).connectors == (Connector("a", ""),)


# What a body holds that is longer than one whose tools alone are searched.
LONG = [{"role": "user", "content": "x" * (64 << 10)}]
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "a"}


@pytest.mark.parametrize("messages", [[], LONG], ids=["short", "long"])
@pytest.mark.parametrize("key", ["Tools", "toolset", "my_tools_x", "TOOL\u017f"])
def test_a_key_that_only_looks_like_tools_breaks_nothing_and_hides_no_server(
    key: str, messages: list[Any]
) -> None:
    honest = [{"name": "x", "input_schema": {}}]
    assert facts(messages=messages, **{key: honest}).fault is None
    assert facts(messages=messages, tools=honest, **{key: honest}).fault is None
    if key.casefold() == "tools":
        assert facts(messages=messages, **{key: [TOOLSET]}).connectors == (Connector("a", ""),)
        assert facts(messages=messages, tools=honest, **{key: [TOOLSET]}).fault is not None


KEYS = st.sampled_from(
    ["tools", "Tools", "toolset", "xtools", "mcp_servers", "MCP_servers", "stream", "messages", "type", "name", "url", "x"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([TOOLSET, SERVER]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES), st.sampled_from([[], LONG]))
def test_no_request_is_an_error_of_ours_and_a_server_is_found_beside_anything(
    fields: dict[str, Any], messages: list[Any]
) -> None:
    facts(**{"messages": messages} | fields)
    found = facts(**{"messages": messages} | fields | {"tools": [TOOLSET]})
    assert Connector("a", "") in found.connectors or found.fault is not None
