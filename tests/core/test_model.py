"""The nouns are values: equal when they say the same, and they never print a secret."""

from __future__ import annotations

from agentsh_net.core.model import Action, Candidate, Server, ToolCall, Transport, Verdict


def test_a_verdict_blocks_only_when_its_action_does() -> None:
    assert Verdict(Action.BLOCK, "r").blocked
    assert not Verdict(Action.ALLOW, "audit", would=Action.BLOCK).blocked


def test_equal_things_are_equal() -> None:
    assert ToolCall("t", input={"a": 1}) == ToolCall("t", input={"a": 1})
    assert Candidate("s", "t") != Candidate("s", "u")


def test_a_server_prints_no_header_and_no_environment() -> None:
    server = Server("s", Transport.HTTP, env={"K": "hush"}, headers={"Authorization": "hush"})
    assert "hush" not in repr(server)
