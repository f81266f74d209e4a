"""The nouns are values: equal when they say the same, and they never print a secret."""

from __future__ import annotations

from agentsh_net.core.model import Action, Candidate, Server, ToolCall, Transport, Verdict, call_id_of


def test_a_verdict_blocks_only_when_its_action_does() -> None:
    assert Verdict(Action.BLOCK, "r").blocked
    assert not Verdict(Action.ALLOW, "audit", would=Action.BLOCK).blocked


def test_a_verdict_tells_what_policy_decided_even_where_it_is_not_enforced() -> None:
    assert Verdict(Action.BLOCK, "r").denied
    assert Verdict(Action.ALLOW, "audit", would=Action.BLOCK).denied
    assert not Verdict(Action.ALLOW, "r").denied


def test_calls_of_one_answer_have_keys_of_their_own_whatever_their_ids() -> None:
    calls = [ToolCall("t", call_id, ordinal=at) for at, call_id in enumerate(["a", "a", "", ""], 1)]
    assert len({call.key for call in calls}) == 4
    assert ToolCall("t", "a").key == "a"
    assert ToolCall("t").key == ""


def test_a_key_tells_the_id_that_the_model_wrote() -> None:
    for call_id in ("a", "", "toolu:1", "x:y:z"):
        assert call_id_of(ToolCall("t", call_id, ordinal=7).key) == call_id
        assert call_id_of(ToolCall("t", call_id).key) == call_id


def test_equal_things_are_equal() -> None:
    assert ToolCall("t", input={"a": 1}) == ToolCall("t", input={"a": 1})
    assert Candidate("s", "t") != Candidate("s", "u")


def test_a_server_prints_no_header_and_no_environment() -> None:
    server = Server("s", Transport.HTTP, env={"K": "hush"}, headers={"Authorization": "hush"})
    assert "hush" not in repr(server)
