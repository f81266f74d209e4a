"""A result with findings is told of, blocked where that is wanted, and never for what could merely not be read."""

from __future__ import annotations

import pytest

from agentsh_net.core.configuration.settings import Mcp, OutputInspection
from agentsh_net.core.inspect.findings import Category, Finding, Severity
from agentsh_net.core.model import Action
from agentsh_net.core.verdicts.results_policy import judge


def finding(severity: Severity) -> Finding:
    return Finding("pattern", Category.INSTRUCTION, severity, "$.result", "text")


def mcp(reaction: str, *, enforce: bool = True) -> Mcp:
    return Mcp(
        enforce_policy=enforce, output_inspection=OutputInspection(enabled=True, on_detection=reaction)
    )


@pytest.mark.parametrize("reaction", ["allow", "alert", "block"])
def test_without_a_finding_a_result_passes(reaction: str) -> None:
    assert judge(mcp(reaction), ()).action is Action.ALLOW


@pytest.mark.parametrize(("reaction", "blocked"), [("allow", False), ("alert", False), ("block", True)])
def test_a_finding_does_what_the_policy_says(reaction: str, blocked: bool) -> None:
    verdict = judge(mcp(reaction), (finding(Severity.HIGH), finding(Severity.LOW)))
    assert verdict.blocked is blocked
    assert verdict.rule == "sandbox.mcp.output_inspection.on_detection"
    assert verdict.reason == "the result has findings up to high: pattern at $.result and 1 more"


def test_audit_mode_lets_pass_and_says_what_it_would_have_done() -> None:
    verdict = judge(mcp("block", enforce=False), (finding(Severity.MEDIUM),))
    assert (verdict.action, verdict.would) == (Action.ALLOW, Action.BLOCK)


def test_what_could_not_be_read_whole_does_not_block() -> None:
    assert not judge(mcp("block"), (finding(Severity.LOW),)).blocked
