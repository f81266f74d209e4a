"""A call whose arguments stand in one place of a Responses answer and are missing in another is judged by what each client would run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from situations import situation, unlimited
from transcripts.openai_responses import Event, Item, added, arguments, begin, done, end, numbered, response
from transcripts.openai_responses.clients import by_sdks, models

from agentsh_net.core.configuration.settings import ArgumentMatch
from agentsh_net.core.dialects.base import Judged, Limits
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.snapshot import Snapshot

OFFERS = {"fs": ["write", "shell", "apply_patch", "tool_search"]}
EVIL = tuple({"tool": tool, "args": (ArgumentMatch("path", "glob", "/etc/*"),)} for tool in OFFERS["fs"])
DENYING = situation(["fs"], OFFERS, denied_tools=EVIL)  # what is filled in
ALLOWING = situation(["fs"], OFFERS, tool_policy="allowlist", allowed_tools=EVIL)  # what is empty

PATH = {"path": "/etc/x"}
TEXT = json.dumps(PATH)
# A kind of call, where its arguments are, what they are there, and how they are none.
KINDS: dict[str, tuple[str, Any, list[Any]]] = {
    "function_call": ("arguments", TEXT, ["", None, ..., "{}"]),
    "mcp_call": ("arguments", TEXT, ["", None, ..., "{}"]),
    "mcp_approval_request": ("arguments", TEXT, ["", None, ..., "{}"]),
    "custom_tool_call": ("input", TEXT, ["", None, ...]),
    "shell_call": ("action", PATH, [{"path": ""}, {}, None, ...]),
    "apply_patch_call": ("operation", PATH, [{"path": ""}, {}, None, ...]),
    "tool_search_call": ("arguments", PATH, [{"path": ""}, {}, None, ...]),
}
CASES = [(kind, nothing) for kind, (_, _, empty) in KINDS.items() for nothing in empty]
# Those in which clients find no arguments at all: an allowed rule over them cannot hold.
UNFILLED = [
    (kind, nothing) for kind in ("function_call", "mcp_call") for nothing in KINDS[kind][2] if nothing != "{}"
]


def made(kind: str, nothing: Any) -> tuple[Item, Item]:
    key, filled, _ = KINDS[kind]
    item: Item = {"type": kind, "id": "i_0", "call_id": "c_0", "name": "mcp__fs__write"}
    return item if nothing is ... else item | {key: nothing}, item | {key: filled}


def left(events: list[Event], policy: Snapshot) -> tuple[bytes, list[Judged]]:
    stream = DIALECT.stream(
        lambda call: policy.judge(call, session_id="default", charge=unlimited),
        limits=Limits(),
        fail_closed=False,
    )
    steps = [stream.feed(numbered([*begin(), *events])), stream.finish()]
    return b"".join(step.out for step in steps), [one for step in steps for one in step.judged]


def ran(out: bytes) -> list[Any]:
    return [value for runs in (models(out) | by_sdks(out)).values() for _, _, value in runs]


@pytest.mark.parametrize(("kind", "nothing"), CASES)
def test_denied_arguments_reach_no_client_wherever_they_are_filled_in(kind: str, nothing: Any) -> None:
    empty, filled = made(kind, nothing)
    for events in (
        [added(0, empty), done(0, empty), *end(filled)],
        [done(0, empty), done(0, filled), *end(filled)],
        [added(0, empty), *end(filled)],
        [added(0, filled), done(0, empty), *end(empty)],
        [added(0, empty), done(0, filled), *end(empty)],
        [done(0, empty), *end(empty), *end(filled)],
    ):
        out, judged = left(events, DENYING)
        assert b"/etc/x" not in out
        assert not any("/etc/x" in json.dumps(value) for value in ran(out))
        assert [j.verdict.action.value for j in judged][-1] == "block"


@pytest.mark.parametrize(("kind", "nothing"), UNFILLED)
def test_a_call_that_is_allowed_for_its_arguments_reaches_no_client_without_them(
    kind: str, nothing: Any
) -> None:
    empty, filled = made(kind, nothing)
    grown = arguments(0, "i_0", TEXT, f"{kind}_arguments")
    for events in (
        [added(0, filled | {"arguments": ""}), grown, done(0, empty), *end(empty)],
        [added(0, filled), done(0, empty), *end(filled)],
        [added(0, filled), *end(empty)],
        [done(0, filled), *end(empty)],
        [done(0, filled), done(0, empty), *end(filled)],
    ):
        out, judged = left(events, ALLOWING)
        assert all(value == PATH for value in ran(out)), out
        assert [j.verdict.action.value for j in judged][-1] == "block"
        assert "arguments" in judged[-1].verdict.reason or "not in allowed_tools" in judged[-1].verdict.reason


@pytest.mark.parametrize("kind", ["function_call", "mcp_call"])
def test_a_call_that_begins_without_arguments_as_apis_have_it_is_allowed_for_those_it_gets(kind: str) -> None:
    empty, filled = made(kind, "")
    grown = arguments(0, "i_0", TEXT, f"{kind}_arguments")
    events = [added(0, empty), grown, done(0, filled), *end(filled)]
    out, judged = left(events, ALLOWING)
    assert out == numbered([*begin(), *events])
    assert [(j.verdict.action.value, j.call.input) for j in judged] == [("allow", PATH)]


@pytest.mark.parametrize(("kind", "nothing"), CASES)
def test_a_whole_answer_that_lists_a_call_with_and_without_arguments_is_judged_by_both(
    kind: str, nothing: Any
) -> None:
    empty, filled = made(kind, nothing)
    for items in ((empty, filled), (filled, empty)):
        body = json.dumps(response(*items, status="completed")).encode()
        step = DIALECT.body(
            body,
            lambda call: DENYING.judge(call, session_id="default", charge=unlimited),
            fail_closed=False,
        )
        assert b"/etc/x" not in step.out
        assert "block" in [j.verdict.action.value for j in step.judged]
