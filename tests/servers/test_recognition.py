"""Of what is reported about a server itself only news is told, with what it does to calls."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration.settings import VersionPinning
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.trust.pins import Pins
from agentsh_net.servers import recognition
from agentsh_net.servers.recognition import Recognised

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
HTTP = Server("web", Transport.HTTP, url="https://h/mcp", host="h", port=443)
STDIO = Server("fs", Transport.STDIO, command="fs", pin_binary=True)
NOW = "2026-01-01T00:00:00Z"


def take(report: dict[str, Any], before: Recognised | None = None, server: Server = HTTP, **pinning: Any) -> Recognised:  # fmt: skip
    seen = recognition.offered(report, server)
    board = before.pins if before else Pins()
    return recognition.recognise(seen, server, board, VersionPinning(**pinning), NOW)


def tls(digest: str) -> dict[str, Any]:
    return {"tls_fingerprint": digest, "tls_public_key": digest}


def test_a_first_certificate_is_trusted_told_and_stored_once() -> None:
    first = take(tls(A))
    (event,) = first.events
    told = event.to_json()
    assert (told["type"], told["aspect"], told["digest"]) == ("mcp_server_seen", "tls", A)
    assert "auto_trust_first" in told["reason"]
    assert [i.aspect for i in first.saved] == ["tls"]
    assert take(tls(A), first) == Recognised(first.pins)


@pytest.mark.parametrize(("on_change", "does"), [("block", "blocked"), ("alert", "pass"), ("allow", "pass")])
def test_a_change_is_told_field_by_field_with_what_it_does_to_calls(on_change: str, does: str) -> None:
    (event,) = take(tls(B), take(tls(A)), on_change=on_change).events
    told = event.to_json()
    assert (told["type"], told["previous_digest"], told["digest"]) == ("mcp_server_changed", A, B)
    assert {change["path"] for change in told["changes"]} == {"$.certificate", "$.public_key"}
    assert does in told["reason"]


def test_what_comes_back_is_told_too() -> None:
    back = take(tls(A), take(tls(B), take(tls(A))))
    assert "again what was trusted" in back.events[0].reason
    assert back.saved[0].state == "trusted"


def test_silence_is_pinned_without_a_word_and_words_after_it_are_news() -> None:
    silent = take({"era": "legacy", "instructions": ""})
    assert silent.events == ()
    assert silent.saved[0].state == "trusted"
    (event,) = take({"era": "legacy", "instructions": "obey me"}, silent).events
    assert event.type == "mcp_server_changed"


@pytest.mark.parametrize(
    ("report", "server"),
    [
        ({"era": "", "instructions": ""}, HTTP),  # no handshake was seen
        ({"ok": False, "tls_fingerprint": ""}, HTTP),
        (tls(A), Server("web", Transport.HTTP, url="https://h/", pin_tls=False)),
        ({"binary": {"sha256": A}}, Server("fs", Transport.STDIO, command="fs")),
    ],
)
def test_what_was_not_seen_or_is_not_to_be_pinned_is_no_identity(
    report: dict[str, Any], server: Server
) -> None:
    assert recognition.offered(report, server) == {}


def test_a_binary_is_pinned_where_the_policy_asks_for_it() -> None:
    first = take({"binary": {"executable": "/x", "sha256": A, "scripts": []}}, server=STDIO)
    changed = take({"binary": {"executable": "/x", "sha256": B, "scripts": []}}, first, STDIO)
    assert [e.type for e in (*first.events, *changed.events)] == ["mcp_server_seen", "mcp_server_changed"]


def test_a_declared_fingerprint_that_does_not_match_is_told_to_block_whatever_on_change_says() -> None:
    server = Server("web", Transport.HTTP, url="https://h/", tls_fingerprint=A)
    (event,) = take({"ok": False, **tls(B)}, server=server, on_change="allow").events
    assert (event.type, event.rule) == ("mcp_server_changed", "sandbox.mcp.servers")
    assert event.action == "block"
    assert "calls are blocked" in event.reason
