"""A call of a tool that nobody saw is denied by rules for every server, is the agent's own, or goes by fail_closed; each says why."""

from __future__ import annotations

import pytest

from agentsh_net.core.configuration.config import parse
from agentsh_net.core.model import Candidate, ToolCall
from agentsh_net.core.naming.names import Resolution
from agentsh_net.core.naming.native_tools import Native
from agentsh_net.core.verdicts import unseen
from agentsh_net.core.verdicts.given import given_by
from agentsh_net.core.verdicts.rules import Rules
from agentsh_net.core.verdicts.steps import Outcome

RULE = "sandbox.mcp.denied_tools[0]"


def denied(*rules):
    return Rules(
        parse({"version": 1, "sandbox": {"mcp": {"denied_tools": list(rules)}}}).sandbox.mcp
    ).denied_tools


@pytest.mark.parametrize(
    ("rule", "by_name", "blocked"),
    [
        ({"tool": "rm"}, False, True),
        ({"tool": "rm"}, True, True),
        ({"server": "*", "tool": "r*"}, False, True),
        ({"server": "*", "tool": "r*"}, True, False),
        ({"server": "fs", "tool": "rm"}, False, False),
        ({"tool": "get"}, False, False),
    ],
)
def test_only_a_rule_for_every_server_is_about_a_tool_of_nobodys(rule, by_name, blocked) -> None:
    step = unseen.denied_step(denied(rule), ToolCall("rm"), ("rm",), None, by_name=by_name)
    assert (step is not None) is blocked
    if step is not None:
        assert (step.step, step.outcome, step.rule) == ("tool", Outcome.BLOCK, RULE)
        assert "tool rm of an unknown server is denied" in step.reason


ETC, SRV = ({"tool": "rm", "args": {"path": {"glob": f"/{folder}/*"}}} for folder in ("etc", "srv"))


@pytest.mark.parametrize(
    ("rules", "which"),
    [
        ([ETC, SRV], 0),
        ([SRV, ETC], 1),
        ([ETC, ETC], 0),
        ([{"tool": "rm"}, SRV], 0),
        ([SRV, {"tool": "rm"}], 1),
    ],
)
def test_a_rule_that_holds_denies_whatever_others_say_of_the_arguments(rules, which) -> None:
    call = ToolCall("rm", input={"path": "/etc/passwd"})
    step = unseen.denied_step(denied(*rules), call, ("rm",), given_by(call, wrapped=False), by_name=False)
    assert step is not None and step.rule == f"sandbox.mcp.denied_tools[{which}]"
    assert ("its argument $.path" in step.reason) is ("args" in rules[which])


@pytest.mark.parametrize(("path", "blocked"), [("/etc/passwd", True), ("/srv/x", False)])
def test_a_rule_over_arguments_denies_by_them_and_says_which(path, blocked) -> None:
    rules = denied({"tool": "rm", "args": {"path": {"glob": "/etc/*"}}})
    call = ToolCall("rm", input={"path": path})
    step = unseen.denied_step(rules, call, ("rm",), given_by(call, wrapped=False), by_name=False)
    assert (step is not None) is blocked
    assert step is None or "path" in step.reason
    assert unseen.denied_step(rules, call, ("rm",), None, by_name=False) is None


def test_the_agents_own_tool_passes_by_the_entry_that_lists_it() -> None:
    step = unseen.native_step(ToolCall("Bash"), Native("Bash", "sandbox.mcp.native_tools[0]", exact=True))
    assert (step.outcome, step.rule) == (Outcome.PASS, "sandbox.mcp.native_tools[0]")
    assert "'Bash' is the agent's own tool" in step.reason


@pytest.mark.parametrize(
    ("meant", "candidates", "reason"),
    [
        (Resolution(), (Candidate("fs", "rm"),), "was not seen in its server's tools/list"),
        (Resolution(looks_mcp=True), (), "looks like an MCP tool, but no server was seen to offer it"),
        (Resolution(), (), "'rm': no server was seen to offer it"),
    ],
)
def test_what_nobody_knows_goes_by_fail_closed(meant, candidates, reason) -> None:
    closed = unseen.step(ToolCall("rm"), meant, candidates, fail_closed=True)
    opened = unseen.step(ToolCall("rm"), meant, candidates, fail_closed=False)
    assert (closed.outcome, opened.outcome) == (Outcome.BLOCK, Outcome.ALERT)
    assert closed.rule == opened.rule == "sandbox.mcp.fail_closed"
    assert reason in closed.reason
    assert reason in opened.reason
