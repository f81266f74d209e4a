"""A request is remembered by what its answer has to be read as."""

from __future__ import annotations

from typing import Any

import pytest
from agentsh_proxy.gateway.pending import (
    ANSWERED,
    MAX_NAMED,
    NOBODYS,
    SEVERAL,
    PendingRequest,
    pending_request,
)

from agentsh_net.core.mcp.jsonrpc import Request


@pytest.mark.parametrize(
    ("method", "params", "asked"),
    [
        ("tools/call", {"name": "add", "arguments": {}}, PendingRequest("tools/call", False, "add")),
        ("resources/read", {"uri": "file:///a"}, PendingRequest("resources/read", False, "file:///a")),
        ("tools/list", {"cursor": ""}, PendingRequest("tools/list", True, "")),
        ("tools/list", {"cursor": None}, PendingRequest("tools/list", False, "")),
        ("tools/call", {"name": 1}, PendingRequest("tools/call", False, "")),
        ("ping", None, PendingRequest("ping", False, "")),
        ("ping", ["name"], PendingRequest("ping", False, "")),
        (
            "resources/read",
            {"uri": "u" * (1 << 20)},
            PendingRequest("resources/read", False, "u" * MAX_NAMED),
        ),
        ("m" * (1 << 20), None, PendingRequest("m" * MAX_NAMED, False, "")),
    ],
)
def test_a_request_says_what_it_names_and_whether_it_goes_on(
    method: str, params: Any, asked: PendingRequest
) -> None:
    assert pending_request(Request(1, method, params)) == asked


def test_marks_are_told_apart_by_identity() -> None:
    assert len({id(mark) for mark in (NOBODYS, SEVERAL, ANSWERED)}) == 3
