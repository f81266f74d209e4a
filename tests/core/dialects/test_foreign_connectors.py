"""A server is found in whatever words a request names it, and what leaves open which it is is told as such."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.foreign_connectors import read

URL = "https://mcp.example/mcp"
NAMED: dict[str, Any] = {
    "a managed agent": {"name": "a", "model": "m", "mcp_servers": [{"type": "url", "name": "fs", "url": URL}]},
    "a Realtime session": {"session": {"type": "realtime", "tools": [{"type": "mcp", "server_label": "fs", "server_url": URL}]}},
    "an interaction": {"input": "x", "tools": [{"type": "mcp_server", "name": "fs", "url": URL, "headers": {"url": "x"}}]},
    "a batch of Gemini's": {"batch": {"input_config": {"requests": [{"tools": [{"mcpServers": [{"name": "fs", "streamableHttpTransport": {"url": URL}}]}]}]}}},
    "LM Studio, for once": {"model": "m", "input": "x", "integrations": [{"type": "ephemeral_mcp", "server_label": "fs", "server_url": URL}]},
    "other spellings": {"TOOLS": [{"Type": " MCP-Server ", "Name": "fs", "URI": URL}]},
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_server_is_found(name: str) -> None:
    facts = read(json.dumps(NAMED[name]).encode())
    assert [(c.server_id, c.url) for c in facts.connectors] == [("fs", URL)]
    assert facts.fault is None


def test_a_server_without_an_address_is_known_by_its_name() -> None:
    body = {
        "tools": [
            {"type": "mcp_toolset", "mcp_server_name": "fs"},
            {"type": "mcp", "server_label": "m", "connector_id": "c"},
            {"type": "connector", "connector_id": "gh"},
        ]
    }
    assert [(c.server_id, c.url) for c in read(json.dumps(body).encode()).connectors] == [
        ("fs", ""),
        ("m", "c"),
        ("gh", "gh"),
    ]


@pytest.mark.parametrize("named", ["mcp/fs", {"type": "plugin", "id": "mcp/fs"}, " MCP/fs"])
def test_a_server_that_lm_studio_knows_by_itself_is_one(named: Any) -> None:
    body = {"input": "mcp/x", "integrations": [named, "rag", {"type": "plugin", "id": "rag"}, 1]}
    assert [(c.server_id, c.url) for c in read(json.dumps(body).encode()).connectors] == [("fs", "")]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"no JSON mcp", b'{"tools": [{"type": "function", "name": "mcp", "url": "x"}]}', b'["mcp"]'],
)
def test_what_names_none_has_none(body: bytes) -> None:
    facts = read(body)
    assert facts.connectors == ()
    assert not (facts.fault is not None and facts.fault.cut)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b'{"mcp_servers": [{"name": "a", "url": "u", "url": "v"}]}', "duplicate_keys"),
        (b'{"mcp_servers": []} {}', "unreadable_json"),
        (
            json.dumps({"mcp_servers": [{"name": str(n), "url": URL} for n in range(99)]}).encode(),
            "too_many_connectors",
        ),
    ],
)
def test_what_leaves_open_which_servers_are_meant_is_told(body: bytes, cause: str) -> None:
    fault = read(body).fault
    assert fault is not None
    assert (fault.cause, fault.cut) == (cause, True)
