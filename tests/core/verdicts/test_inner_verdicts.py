"""A wrapper is refused if any call within it is, and costs what its calls cost; a program is refused for what it names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from situations import situation, unlimited, verdict

from agentsh_net.core.configuration.settings import ArgumentMatch, RateLimits
from agentsh_net.core.model import Action, Candidate, Shown, ToolCall
from agentsh_net.core.trust.offers import Lessons

PARALLEL = "multi_tool_use.parallel"
OFFERS = {"fs": ["read", "rm", "batch"], "db": ["query"]}
DENY = {"denied_tools": [("fs", "rm")]}


def uses(*names: str, **parameters: Any) -> dict[str, Any]:
    return {
        "tool_uses": [{"recipient_name": f"functions.{name}", "parameters": parameters} for name in names]
    }


def wrapping(*names: str, **parameters: Any) -> ToolCall:
    return ToolCall(PARALLEL, "c", uses(*names, **parameters), ordinal=1)


@pytest.mark.parametrize(
    "names", [["rm"], ["mcp__fs__rm"], ["read", "fs_rm"], ["read", "mcp__fs.rm", "query"]]
)
def test_a_denied_call_within_refuses_the_whole_with_its_reason_and_every_candidate(names: list[str]) -> None:
    snapshot = situation(["fs", "db"], OFFERS, **DENY)
    judged = verdict(snapshot, wrapping(*names))
    assert judged.action is Action.BLOCK
    assert "it calls " in judged.reason
    assert {candidate.tool for candidate in judged.candidates} == {
        name.split("_")[-1].split(".")[-1] for name in names
    }
    explained = snapshot.explain(wrapping(*names))
    assert explained.verdict.candidates == judged.candidates
    assert (explained.verdict.action, explained.steps[-1].reason) == (Action.BLOCK, judged.reason)


@pytest.mark.parametrize("fail_closed", [False, True])
def test_allowed_calls_within_pass_though_nobody_knows_the_wrapper(*, fail_closed: bool) -> None:
    snapshot = situation(["fs", "db"], OFFERS, fail_closed=fail_closed, **DENY)
    judged = verdict(snapshot, wrapping("mcp__fs__read", "query"))
    assert judged.action is Action.ALLOW
    assert [(c.server_id, c.tool) for c in judged.candidates] == [("fs", "read"), ("db", "query")]


def test_an_unknown_call_within_goes_by_fail_closed() -> None:
    for closed, action in ((False, Action.ALLOW), (True, Action.BLOCK)):
        snapshot = situation(["fs"], OFFERS, fail_closed=closed)
        assert verdict(snapshot, wrapping("read", "nobody_knows")).action is action
        assert snapshot.explain(wrapping("read", "nobody_knows")).verdict.action is action


def test_a_program_that_nobody_knows_goes_by_fail_closed_whatever_it_calls() -> None:
    program = ToolCall("exec", "c", {"code": "await tools.mcp__fs__read({})"})
    for closed, action in ((False, Action.ALLOW), (True, Action.BLOCK)):
        snapshot = situation(["fs"], OFFERS, fail_closed=closed, native_tools=())
        assert verdict(snapshot, program).action is action
        assert snapshot.explain(program).verdict.action is action


def test_a_rule_against_the_wrapper_itself_decides() -> None:
    snapshot = situation(["fs"], OFFERS, denied_tools=[("*", "multi_tool_use*")])
    assert verdict(snapshot, wrapping("read")).action is Action.BLOCK


def test_what_cannot_be_read_of_a_wrapper_is_refused() -> None:
    assert (
        verdict(situation(["fs"], OFFERS), ToolCall(PARALLEL, input='{"tool_uses": [')).action is Action.BLOCK
    )


def test_arguments_within_are_judged_by_the_rules_over_arguments() -> None:
    rule = {"server": "fs", "tool": "read", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
    snapshot = situation(["fs"], OFFERS, denied_tools=[rule])
    assert verdict(snapshot, wrapping("read", path="/etc/passwd")).action is Action.BLOCK
    assert verdict(snapshot, wrapping("read", path="/srv/x")).action is Action.ALLOW


def test_where_nothing_is_enforced_it_passes_and_says_what_would_be() -> None:
    judged = verdict(situation(["fs"], OFFERS, enforce_policy=False, **DENY), wrapping("read", "rm"))
    assert (judged.action, judged.would) == (Action.ALLOW, Action.BLOCK)


def test_each_call_within_is_charged_by_itself_and_none_where_one_is_denied() -> None:
    charged: list[tuple[str, str]] = []

    def charge(server: str, _: str, key: str, __: str) -> bool:
        charged.append((server, key))
        return len(charged) < 3

    snapshot = situation(["fs", "db"], OFFERS, rate_limits=RateLimits(True), **DENY)
    assert snapshot.judge(wrapping("read", "rm"), session_id="s", charge=charge).action is Action.BLOCK
    assert charged == []
    assert snapshot.judge(wrapping("read", "query"), session_id="s", charge=charge).action is Action.ALLOW
    assert charged == [("fs", "1:c#0"), ("db", "1:c#1")]
    over = snapshot.judge(wrapping("read"), session_id="s", charge=charge)
    assert (over.action, "rate" in over.reason) == (Action.BLOCK, True)


def test_one_call_within_over_its_rate_refuses_the_whole() -> None:
    snapshot = situation(["fs", "db"], OFFERS, rate_limits=RateLimits(True))
    over = snapshot.judge(wrapping("read", "query"), session_id="s", charge=lambda server, *_: server != "db")
    assert over.action is Action.BLOCK
    assert over.reason.startswith("it calls 'query': ")
    assert "rate" in over.reason


def test_the_trace_has_the_steps_of_each_call_within_and_one_verdict() -> None:
    snapshot = situation(["fs", "db"], OFFERS, **DENY)
    explained = snapshot.explain(wrapping("read", "query"))
    assert [step.step for step in explained.steps] == ["name", "server", "tool", "pin"] * 2 + ["verdict"]
    assert [c.tool for c in explained.verdict.candidates] == ["read", "query"]
    assert explained.steps[-1].reason == explained.verdict.reason
    assert explained.verdict.reason == snapshot.explain(ToolCall("read")).verdict.reason


def test_a_servers_own_tool_that_names_recipients_is_judged_beside_them() -> None:
    snapshot = situation(["fs", "db"], OFFERS, **DENY)
    judged = verdict(snapshot, ToolCall("mcp__fs__batch", input=uses("query")))
    assert [(c.server_id, c.tool) for c in judged.candidates] == [("fs", "batch"), ("db", "query")]


def test_a_servers_own_tool_that_runs_programs_is_refused_for_what_they_name() -> None:
    snapshot = situation(["fs"], {"fs": ["exec", "rm", "read"]}, **DENY)
    for name, action in (("rm", Action.BLOCK), ("read", Action.ALLOW)):
        program = f"await tools.mcp__fs__{name}({{}})"
        assert verdict(snapshot, ToolCall("exec", input=program)).action is action


def test_a_servers_own_tool_of_a_wrappers_name_has_arguments_of_its_own_unless_they_name_recipients() -> None:
    snapshot = situation(["fs"], OFFERS, **DENY)
    own = {"calls": [{"name": "rm"}]}
    assert verdict(snapshot, ToolCall("batch", input=own)).action is Action.ALLOW
    assert verdict(snapshot, ToolCall("mcp__fs__batch", input=own)).action is Action.ALLOW
    assert verdict(snapshot, ToolCall("batch", input=uses("rm"))).action is Action.BLOCK
    assert (
        verdict(situation(["db"], {"db": ["query"]}, **DENY), ToolCall("batch", input=own)).action
        is Action.BLOCK
    )


def test_names_within_mean_what_the_request_showed_them_to_be() -> None:
    snapshot = situation(["fs"], OFFERS, **DENY)
    lessons = Lessons({("", "tidy"): Shown((Candidate("fs", "rm", "h"),))})
    assert verdict(snapshot, wrapping("tidy")).action is Action.ALLOW
    assert verdict(snapshot, lessons.applied(wrapping("tidy"))).action is Action.BLOCK
    assert lessons.applied(ToolCall("other")) == ToolCall("other")


@pytest.mark.parametrize("fail_closed", [False, True])
def test_a_program_is_refused_for_the_denied_tools_that_it_names_and_for_no_unknown_word(
    *, fail_closed: bool
) -> None:
    snapshot = situation(["fs"], OFFERS, fail_closed=fail_closed, native_tools=["exec"], **DENY)
    assert verdict(snapshot, ToolCall("exec", input="await tools.mcp__fs__rm({})")).action is Action.BLOCK
    assert (
        verdict(snapshot, ToolCall("exec", input="await tools.mcp__fs__read({}); tools.whatever()")).action
        is Action.ALLOW
    )
    assert snapshot.judge(ToolCall("exec", input="tools.rm()"), session_id="s", charge=unlimited).denied


@pytest.mark.parametrize("fail_closed", [False, True])
def test_what_denies_a_family_of_tools_denies_its_members_and_what_lists_it_lists_none_of_them(
    *, fail_closed: bool
) -> None:
    click = ToolCall("left_click", "c", {"coordinate": [1, 2]}, toolset="computer")
    denied = situation(["fs"], OFFERS, denied_tools=["computer"], fail_closed=fail_closed)
    judged = verdict(denied, click)
    assert judged.action is Action.BLOCK
    assert fail_closed or "it calls 'computer'" in judged.reason
    listed = situation(["fs"], OFFERS, native_tools=("left_click",), fail_closed=fail_closed)
    assert verdict(listed, click).action is Action.ALLOW
    hidden = replace(click, name="mcp__evil__x")
    family = situation(["fs"], OFFERS, native_tools=("computer",), fail_closed=fail_closed)
    assert verdict(family, hidden).denied is fail_closed  # a client that knows no families runs the name


def test_a_family_of_tools_hides_no_call_within_its_member() -> None:
    snapshot = situation(["fs", "db"], OFFERS, **DENY)
    assert verdict(snapshot, replace(wrapping("rm"), toolset="computer")).action is Action.BLOCK
    assert verdict(snapshot, ToolCall("rm", "c", {}, toolset="computer")).action is Action.BLOCK


def test_an_unknown_tool_that_runs_programs_goes_by_fail_closed_whatever_they_name() -> None:
    for closed, action in ((False, Action.ALLOW), (True, Action.BLOCK)):
        snapshot = situation(["fs"], OFFERS, fail_closed=closed)
        assert verdict(snapshot, ToolCall("exec", input="await tools.mcp__fs__read({})")).action is action
