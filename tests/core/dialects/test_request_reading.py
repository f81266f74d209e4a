"""What cannot be read of a request must not pass where it may hide a server to judge; elsewhere it goes by fail_closed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts import openai_responses

from agentsh_net.core.dialects.base import Fault
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.dialects.request_reading import (
    ambiguous,
    may_name_server,
    read_object,
    too_many,
    unreadable,
)
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values.strict_json import DivergentError

URL = "https://evil.test/mcp"
TOOL = {"type": "mcp", "server_label": "evil", "server_url": URL}
SERVERS = [{"type": "url", "name": "evil", "url": URL}]
DIALECTS = {
    "anthropic": (BY_NAME["anthropic"], {"mcp_servers": SERVERS}),
    "openai": (BY_NAME["openai"], {"tools": [TOOL]}),
    "openai_responses": (openai_responses.DIALECT, {"tools": [TOOL]}),
}


@pytest.mark.parametrize(
    "body", [b'{"MCP_servers":1}', b'"\\u006dcp"', b"m\0c\0p\0", b'{"server_url":1}', b"tunnel_id"]
)
def test_no_spelling_of_a_server_is_overlooked(body: bytes) -> None:
    assert may_name_server(body)


def test_most_requests_cannot_name_one() -> None:
    assert not may_name_server(b'{"messages":[{"role":"user","content":"h\\u00e9llo"}]}')


@pytest.mark.parametrize(
    ("body", "error", "fault"),
    [
        (b"{mcp", ProtocolError("x"), Fault("malformed_json", "x", cut=False)),
        (b"{mcp", DivergentError("x"), Fault("unreadable_json", "x", cut=True)),
        (b"{", DivergentError("x"), Fault("unreadable_json", "x", cut=False)),
    ],
)
def test_what_only_others_read_is_told_from_what_is_broken(
    body: bytes, error: ProtocolError, fault: Fault
) -> None:
    assert unreadable(body, error) == fault


@pytest.mark.parametrize("body", [b'["mcp"]', b"{mcp"])
def test_a_body_is_an_object_or_a_fault(body: bytes) -> None:
    found = read_object(body)
    assert isinstance(found, Fault)
    assert (found.cause, found.cut) == ("malformed_json", False)
    whole = read_object(b'{"mcp": 1}')
    assert not isinstance(whole, Fault)
    assert whole.value == {"mcp": 1}


def test_more_servers_than_a_request_can_name_must_not_pass() -> None:
    assert too_many(2, 2) is None
    assert too_many(3, 2) == Fault("too_many_connectors", "more than 2 MCP servers", cut=True)


def test_keys_that_stand_twice_are_told_and_hide_nothing_where_they_cannot() -> None:
    assert ambiguous(b"mcp", set()) is None
    for body, keys, cut in (
        (b"mcp", {"stream"}, False),
        (b"mcp", {"stream", "tools"}, True),
        (b"x", {"tools"}, False),
    ):
        fault = ambiguous(body, keys)
        assert fault is not None
        assert (fault.cause, fault.cut) == ("duplicate_keys", cut)


def hidings(fields: dict[str, Any]) -> dict[str, bytes]:
    text = json.dumps({"model": "m", **fields})
    key = next(iter(fields))
    return {
        "UTF-16": text.encode("utf-16"),
        "UTF-32": text.encode("utf-32-be"),
        "deep": text.replace("{", '{"deep":' + "[" * 300 + "]" * 300 + ",", 1).encode(),
        "twice": text.replace(f'"{key}":', f'"{key}": null, "{key}":', 1).encode(),
        "twice, the last empty": (text[:-1] + f', "{key}": []}}').encode(),
        "twice but for case": text.replace(f'"{key}":', f'"{key.title()}": [], "{key}":', 1).encode(),
        "type twice": text.replace('"type":', '"type": "function", "type":', 1).encode(),
        "type twice, the last harmless": text.replace('"type": "mcp"', '"type": "mcp", "type": "function"').encode(),
        "too many": json.dumps(
            {k: [entry | {"name": f"{at}", "server_label": f"{at}"} for at in range(300) for entry in v] for k, v in fields.items()}
        ).encode(),
    }  # fmt: skip


@pytest.mark.parametrize("hiding", hidings({"k": []}))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_server_is_judged_or_the_request_says_that_it_hides_one(dialect: str, hiding: str) -> None:
    reader, fields = DIALECTS[dialect]
    body = hidings(fields)[hiding]
    facts = reader.request(body)
    plain = body == json.dumps({"model": "m", **fields}).encode()  # a hiding that changed nothing here
    assert (facts.fault is not None and facts.fault.cut) or plain
    assert reader.request(json.dumps(fields).encode()).connectors[0].url == URL
