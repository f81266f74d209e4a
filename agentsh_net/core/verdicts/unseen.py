"""Steps about a call that resolves to no tool that a server was seen to offer: rules for every server, the agent's own tools, fail_closed.

Which of them are taken, and what else decides, is `policy`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentsh_net.core.model import Candidate, ToolCall
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.naming.names import Resolution
from agentsh_net.core.naming.native_tools import Native
from agentsh_net.core.verdicts.given import Given
from agentsh_net.core.verdicts.rules import ROOT, RuleList
from agentsh_net.core.verdicts.steps import MAX_NAME, Outcome, Step, shown

_FAIL_CLOSED: Final = f"{ROOT}.fail_closed"
_BLOCK, _ALERT = Outcome.BLOCK, Outcome.ALERT  # looked up once: as attributes they cost as much as a call


def denied_step(
    denied: RuleList, call: ToolCall, tools: Iterable[str], given: Given | None, *, by_name: bool
) -> Step | None:
    """Return the block of a tool that a rule denies on every server (`by_name`: without wildcards), where nobody knows the server."""
    for tool in tools:
        rule = denied.first_anywhere(tool, by_name=by_name)
        why = ""
        for narrowed in denied.narrowed_anywhere(tool, by_name=by_name) if given is not None else ():
            if rule is None and narrowed.args is not None and given is not None:
                why = narrowed.args.denies(given)
                rule = narrowed if why else None
        if rule is not None:
            reason = f"tool {visible(call.name, MAX_NAME)} of an unknown server is denied by {rule.shown}"
            return Step("tool", _BLOCK, f"{reason}: {why}" if why else reason, rule.path)
    return None


def native_step(call: ToolCall, native: Native) -> Step:
    """Let a tool of the agent's own pass."""
    name = visible(call.name, MAX_NAME)
    reason = f"{name!r} is the agent's own tool, by native_tools ({visible(native.entry, MAX_NAME)})"
    return Step("native", Outcome.PASS, reason, native.path)


def step(call: ToolCall, meant: Resolution, candidates: tuple[Candidate, ...], *, fail_closed: bool) -> Step:
    """Judge what nobody knows by fail_closed."""
    if candidates:
        reason = f"tool {shown(candidates[0])} was not seen in its server's tools/list"
    else:
        what = "looks like an MCP tool, but no" if meant.looks_mcp else "no"
        reason = f"{visible(call.name, MAX_NAME)!r}: {what} server was seen to offer it"
    if fail_closed:
        return Step("fail_closed", _BLOCK, f"{reason} (fail_closed)", _FAIL_CLOSED)
    return Step("fail_closed", _ALERT, f"{reason}; let through because fail_closed is false", _FAIL_CLOSED)
