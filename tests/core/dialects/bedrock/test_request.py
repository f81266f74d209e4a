"""A request says whether it streams by its path, which servers the provider is to call by its fields, and what it offers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.base import Connector, RequestFacts
from agentsh_net.core.dialects.bedrock.request import converse, invoke

SERVERS = [{"type": "url", "name": "w", "url": "https://w.example/mcp"}]
WEATHER = Connector("w", "https://w.example/mcp")
OFFERS = {"toolConfig": {"tools": [{"toolSpec": {"name": "mcp__w__get", "inputSchema": {"json": {}}}}]}}


def facts(value: Any) -> RequestFacts:
    return converse((value if isinstance(value, str) else json.dumps(value)).encode(), stream=True)


def test_a_converse_request_has_no_connectors_of_its_own() -> None:
    told = facts({"messages": [{"content": [{"text": "mcp_servers"}]}], **OFFERS})
    assert (told.stream, told.connectors, told.fault) == (True, (), None)
    assert told.parsed is not None
    assert not converse(b"{}", stream=False).stream


def test_the_models_own_fields_are_searched_for_servers() -> None:
    assert facts({"additionalModelRequestFields": {"mcp_servers": SERVERS}}).connectors == (WEATHER,)
    assert facts({"AdditionalModelRequestFields": {"mcp_servers": SERVERS}}).connectors == (WEATHER,)
    assert facts({"additionalModelRequestFields": "mcp"}).fault is None


def test_an_invoked_models_servers_are_anthropics() -> None:
    body = json.dumps(
        {"anthropic_version": "bedrock-2023-05-31", "mcp_servers": SERVERS, "messages": []}
    ).encode()
    for stream in (True, False):
        told = invoke(body, stream=stream)
        assert (told.stream, told.connectors) == (stream, (WEATHER,))


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("[]", False), ("{", False), ('{"additionalModelRequestFields":{"mcp_servers":[]},"additionalModelRequestFields":{}}', True),
        ('{"additionalModelRequestFields":{"mcp_servers":[{"name":1}]}}', True),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_and_must_not_pass_where_it_may_hide_a_server(
    text: str, cut: bool
) -> None:
    fault = facts(text).fault
    assert fault is not None
    assert fault.cut is cut
