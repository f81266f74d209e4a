"""An era is told by what a request names, else by what it has in it; a batch and an answer are of none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agentsh_proxy.gateway.eras import asks_modern, begins, is_modern
from agentsh_proxy.gateway.requests import HttpRequest, Requests
from agentsh_proxy.load import Load

from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.exchange import LEGACY, MODERN
from agentsh_net.core.mcp.gateway_http import VERSION_KEY

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": {VERSION_KEY: MODERN}}}


@pytest.mark.parametrize(
    ("message", "beginning", "modern"),
    [
        (INITIALIZE, True, False),
        (CALL, False, True),
        ([INITIALIZE], False, False),
        ([CALL], False, False),
        (CALL | {"params": {"_meta": []}}, False, False),
        (CALL | {"params": [1]}, False, False),
        ({"jsonrpc": "2.0", "method": "initialize"}, False, False),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, False, False),
    ],
)
def test_a_message_says_its_era(message: Any, beginning: bool, modern: bool) -> None:
    body = jsonrpc.parse(json.dumps(message).encode())
    assert (begins(body), is_modern(body)) == (beginning, modern)


def test_what_could_not_be_read_is_of_none() -> None:
    assert not begins(None) and not is_modern(None)


def asked(message: dict[str, Any], **fields: str) -> HttpRequest:
    body = json.dumps(message).encode()
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    requests = Requests(lambda: 1000, Load())
    requests.add(f"POST / HTTP/1.1\r\nHost: h\r\n{named}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    found = requests.next()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("message", "fields", "modern"),
    [
        (CALL, {}, True),
        (CALL, {"MCP_Protocol_Version": MODERN}, True),
        (CALL, {"MCP_Protocol_Version": LEGACY[0]}, False),
        (INITIALIZE, {}, False),
        (INITIALIZE, {"Mcp_Method": "initialize"}, False),
        (INITIALIZE, {"Mcp_Method": "tools/list"}, True),
        (INITIALIZE, {"MCP_Protocol_Version": MODERN}, True),
        (INITIALIZE, {"MCP_Protocol_Version": "1999-01-01"}, False),
    ],
)
def test_the_revision_that_a_head_names_counts_first(
    message: dict[str, Any], fields: dict[str, str], modern: bool
) -> None:
    assert asks_modern(asked(message, **fields)) == modern
