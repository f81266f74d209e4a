"""A request for an interaction says whether it streams, which servers the provider is to call, and what cannot be seen of it."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.dialects.base import Connector
from agentsh_net.core.dialects.interactions.request import read

SERVER = {
    "type": "mcp_server",
    "name": "w",
    "url": "https://w.example/mcp",
    "headers": {"Authorization": "k", "url": "https://x.test"},
}
FUNCTION = {"type": "function", "name": "get", "parameters": {}}


def test_servers_functions_and_the_wish_for_a_stream_are_read() -> None:
    facts = read(
        json.dumps({"model": "m", "input": "hi", "stream": True, "tools": [FUNCTION, SERVER]}).encode()
    )
    assert (facts.stream, facts.connectors, facts.fault) == (
        True,
        (Connector("w", "https://w.example/mcp"),),
        None,
    )
    assert facts.parsed is not None
    assert read(b"").quiet


@pytest.mark.parametrize(
    ("body", "cause", "cut"),
    [
        ('{"agent": "deep-research"}', "stored_agent", False),
        ('{"tools": [{"type": "mcp_server", "url": "https://a"}], "tools": []}', "duplicate_keys", True),
        ('{"tools": [{"type": "mcp_server", "url": "https://a"}], "Tools": []}', "duplicate_keys", True),
        ("[]", "malformed_json", False),
        ("{", "malformed_json", False),
        ('{"tools": [{"type": "mcp_server"}]} x', "unreadable_json", True),
    ],
)
def test_what_cannot_be_seen_is_told(body: str, cause: str, cut: bool) -> None:
    fault = read(body.encode()).fault
    assert fault is not None
    assert (fault.cause, fault.cut) == (cause, cut)
