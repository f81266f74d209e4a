"""A call on the wire finds the model's call that it carries out: same server, tool and arguments, each once, in time."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.audit import joining
from agentsh_net.core.audit.joining import Intents, mark


def event(number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": f"e{number}", "type": "mcp_tool_call_intercepted", "action": "allow", "session_id": "s1", "tool_call_id": f"t{number}",
        "input": {"a": 1}, "candidates": [{"server_id": "fs", "tool_name": "read", "tool_hash": ""}], **more,
    }  # fmt: skip


def claim(intents: Intents, server: str = "fs", tool: str = "read", arguments: Any = None, session: str = "default", now: float = 1) -> str:  # fmt: skip
    wanted = {"a": 1} if arguments is None else arguments
    found = intents.claim(server, tool, lambda: mark(wanted), session, now)
    return found.event_id if found else ""


def noted(*events: dict[str, Any]) -> Intents:
    intents = Intents()
    for each in events:
        intents.note(each, 0)
    return intents


def test_a_call_is_claimed_once() -> None:
    intents = noted(event())
    assert claim(intents, "FS") == "e1"
    assert claim(intents) == ""


def test_equal_calls_are_claimed_in_their_order() -> None:
    intents = noted(event(1), event(2))
    assert [claim(intents), claim(intents), claim(intents)] == ["e1", "e2", ""]


@pytest.mark.parametrize(
    "other",
    [
        {"server": "web"},
        {"tool": "Read"},
        {"arguments": {"a": "1"}},
        {"arguments": {"a": 1, "b": 2}},
        {"session": "s2"},
    ],
)
def test_another_call_claims_nothing(other: dict[str, Any]) -> None:
    assert claim(noted(event()), **other) == ""


def test_arguments_are_equal_as_data_and_not_as_text() -> None:
    assert claim(noted(event(input={"b": 1.0, "a": [1]})), arguments={"a": [1], "b": 1}) == "e1"
    assert claim(noted(event(input=None)), arguments={}) == "e1"


def test_a_call_of_no_known_session_may_be_of_any_without_a_place_and_one_of_a_session_is_of_that() -> None:
    assert claim(noted(event()), session="default") == "e1"
    assert claim(noted(event()), session="s1") == "e1"
    for session, placed, found in (
        ("default", ["s1"], None),
        ("default", ["s2"], "e1"),
        ("s1", ["s1"], "e1"),
    ):
        intents = noted(event(), event(2, session_id="s3"))
        intent = intents.claim("fs", "read", lambda: mark({"a": 1}), session, 1, lambda p=placed: p)
        assert intent is not None
        assert intent.event_id == (found or "e2")  # what the other one wrote stays to be carried out


@pytest.mark.parametrize("change", [{"action": "block"}, {"type": "mcp_tool_called"}, {"candidates": []}])
def test_what_was_not_let_through_or_is_no_call_is_not_remembered(change: dict[str, Any]) -> None:
    assert claim(noted(event(**change))) == ""


def test_every_candidate_of_an_ambiguous_name_may_be_the_one() -> None:
    pairs = [{"server_id": "a", "tool_name": "read"}, {"server_id": "b", "tool_name": "read"}]
    intents = noted(event(candidates=pairs))
    assert claim(intents, "b") == "e1"
    assert claim(intents, "a") == ""


def test_after_its_time_a_call_is_forgotten() -> None:
    intents = noted(event(1))
    assert claim(intents, now=joining.PATIENCE + 1) == ""
    intents.note(event(2), joining.PATIENCE + 1)
    assert len(intents._waiting) == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MAX_REMEMBERED", 3)
    intents = noted(*(event(n, input={"n": n}) for n in range(10)))
    assert len(intents._waiting) == 3
    assert claim(intents, arguments={"n": 6}) == ""
    assert claim(intents, arguments={"n": 7}) == "e7"
    assert len(intents._by_pair[("fs", "read")]) == 2


def test_arguments_that_no_hash_takes_are_compared_all_the_same() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    assert claim(noted(event(input={"deep": deep})), arguments={"deep": deep}) == "e1"
