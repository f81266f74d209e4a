"""The verdict on a call with others in its arguments: refused if any of them is, for its reason, and charged for each if none is.

Where such calls stand is `inner_calls`' business, what is thought of each the policy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from agentsh_net.core.model import Candidate, ToolCall, Verdict
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.verdicts.inner_calls import names_recipients, wraps_alone
from agentsh_net.core.verdicts.policy import Explanation
from agentsh_net.core.verdicts.steps import MAX_NAME

_FAIL_CLOSED: Final = "fail_closed"


def judged(
    call: ToolCall,
    inner: tuple[ToolCall, ...],
    *,
    explain: Callable[[ToolCall], Explanation],
    judge: Callable[[ToolCall], Verdict],
    meant: Callable[[ToolCall], tuple[Candidate, ...]],
) -> Verdict:
    """Return the verdict on all of a call; `judge` charges, and is asked only where nothing is refused without."""
    asked, refused = _explained(call, inner, explain, meant)
    candidates = _candidates(verdict for _, verdict in asked)
    if refused is not None:
        return _about(*refused, call, candidates)
    verdicts = [(each, judge(each)) for each, _ in asked if not each.hypothetical]
    denied = next((found for found in verdicts if found[1].denied), None)
    if denied is not None:
        return _about(*denied, call, candidates)
    return replace(verdicts[0][1], candidates=candidates)


def explained(
    call: ToolCall,
    inner: tuple[ToolCall, ...],
    *,
    explain: Callable[[ToolCall], Explanation],
    meant: Callable[[ToolCall], tuple[Candidate, ...]],
) -> Explanation:
    """Return the steps about each of the calls, and the verdict on all."""
    asked, refused = _explained(call, inner, explain, meant)
    decisive = refused or asked[0]
    candidates = _candidates(verdict for _, verdict in asked)
    verdict = _about(*decisive, call, candidates) if refused else replace(asked[0][1], candidates=candidates)
    steps = [step for each, _ in asked for step in explain(each).steps[:-1]]
    last = replace(explain(decisive[0]).steps[-1], reason=verdict.reason)
    return Explanation((*steps, last), verdict)


Asked = tuple[ToolCall, Verdict]


def _explained(
    call: ToolCall,
    inner: tuple[ToolCall, ...],
    explain: Callable[[ToolCall], Explanation],
    meant: Callable[[ToolCall], tuple[Candidate, ...]],
) -> tuple[list[Asked], Asked | None]:
    """Return what is asked about, with the verdicts as far as nothing is charged, and what is refused of it."""
    registered = bool(meant(call))
    if registered and wraps_alone(inner) and not names_recipients(call):
        inner = ()  # a server's own tool, and its own arguments
    asked = [(each, explain(each).verdict) for each in (call, *inner)]
    whole, rest = asked[0], asked[1:]
    if not whole[1].denied or (_unknown(whole[1]) and wraps_alone(inner)):
        refused = next(
            (
                found
                for found in rest
                if found[1].denied and not (found[0].hypothetical and _unknown(found[1]))
            ),
            None,
        )
    else:
        refused = whole
    keeps = registered or not wraps_alone(inner)
    return (asked if keeps else rest), refused


def _unknown(verdict: Verdict) -> bool:
    """Say whether a call is refused for nothing but being unknown."""
    return verdict.rule.endswith(_FAIL_CLOSED)


def _about(which: ToolCall, verdict: Verdict, call: ToolCall, candidates: tuple[Candidate, ...]) -> Verdict:
    if which is call:
        return replace(verdict, candidates=candidates)
    return replace(
        verdict, reason=f"it calls {visible(which.name, MAX_NAME)!r}: {verdict.reason}", candidates=candidates
    )


def _candidates(verdicts: Iterable[Verdict]) -> tuple[Candidate, ...]:
    return tuple(dict.fromkeys(candidate for verdict in verdicts for candidate in verdict.candidates))
