"""What a peer says reaches logs and terminals bounded and visible, and its requests get the answer MCP owes them."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.mcp.exchange import (
    Listing,
    changes_tools,
    failure,
    quoted,
    refusal,
    reply,
)
from agentsh_net.core.mcp.glance import LIST_CHANGED
from agentsh_net.core.mcp.jsonrpc import ErrorResponse, Notification, Request


def test_a_ping_is_answered_and_everything_else_is_not_found() -> None:
    assert json.loads(reply(Request("p", "ping"))) == {"jsonrpc": "2.0", "id": "p", "result": {}}
    for method in ("sampling/createMessage", "roots/list", "elicitation/create", "anything"):
        answer = json.loads(reply(Request(7, method)))
        assert (answer["id"], answer["error"]["code"]) == (7, -32601)


def test_only_the_tools_notification_says_that_tools_changed() -> None:
    assert changes_tools(Notification(LIST_CHANGED))
    assert not changes_tools(Notification("notifications/resources/list_changed"))
    assert not changes_tools(Request(1, LIST_CHANGED))


@pytest.mark.parametrize("hidden", ["\n", "\x1b", "\u202e", "\u200b", "\U000e0041", "\x00"])
def test_a_quote_has_nothing_invisible(hidden: str) -> None:
    assert quoted(f"a{hidden}b") == '"a\N{REPLACEMENT CHARACTER}b"'


def test_a_quote_is_bounded() -> None:
    assert len(quoted("x" * 10_000)) < 320
    assert quoted("x" * 301).endswith("(cut)")


def test_an_error_says_what_was_asked_and_what_came() -> None:
    assert str(failure("tools/list", ErrorResponse(1, -32000, "no\nway"))) == (
        'tools/list failed: the server says "no\N{REPLACEMENT CHARACTER}way" (-32000)'
    )
    assert failure("tools/list", ErrorResponse(1, -32000, "no")).status == 502


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, ": declare the credential in `headers`, or in gateway.servers"),
        (403, ": the credential in `headers` is not accepted, or the origin is not"),
        (404, ": check the path of `url`"),
        (405, ": check the path of `url` and the declared type (http or sse)"),
        (418, ""),
    ],
)
def test_a_refusal_says_what_may_mend_it(status: int, remedy: str) -> None:
    refused = refusal("initialize", status)
    assert (str(refused), refused.status) == (f"initialize was refused with HTTP {status}{remedy}", 502)


def test_the_era_follows_the_revision() -> None:
    assert Listing((), "", {}, "2026-07-28").era == "modern"
    assert Listing((), "", {}, "2025-11-25").era == "legacy"
