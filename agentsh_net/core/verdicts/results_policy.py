"""What becomes of a tool's result in which detectors found something (`output_inspection`).

A finding of low severity (an operator's pattern that is too costly for all of a text) is told of and never blocks. What they find is `inspect`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.inspect.findings import Finding, Severity
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.verdicts.rules import ROOT

RULE = f"{ROOT}.output_inspection.on_detection"


def judge(mcp: Mcp, found: Sequence[Finding], what: str = "result") -> Verdict:
    """Return the verdict on a result (or `what` else) with these findings, the worst first."""
    if not found:
        return Verdict(Action.ALLOW, f"nothing was found in the {what}")
    worst = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    reason = f"the {what} has findings up to {worst.severity}: {worst.pattern} at {worst.path}{more}"
    if mcp.output_inspection.on_detection != "block" or worst.severity is Severity.LOW:
        return Verdict(Action.ALLOW, reason, RULE)
    if mcp.enforce_policy:
        return Verdict(Action.BLOCK, reason, RULE)
    return Verdict(Action.ALLOW, reason, RULE, Action.BLOCK)
