"""The steps of a verdict about one (server, tool), each with its outcome and its reason in words.

In which order they are taken, and what several candidates lead to, is core.verdicts.policy's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from agentsh_net.core.configuration.settings import (
    CrossServer,
    Gateway,
    Inspection,
    RateLimits,
    VersionPinning,
)
from agentsh_net.core.inspect.findings import Finding, at_least
from agentsh_net.core.limits.ratelimit import limit_of
from agentsh_net.core.model import Candidate, Crossing, PinState, Tool
from agentsh_net.core.naming import globs
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.trust import pins
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins
from agentsh_net.core.verdicts.given import Given
from agentsh_net.core.verdicts.rules import ROOT, Rule, Rules

MAX_SHARED = 8  # servers that a reason lists
MAX_NAME = 100  # characters of a name in a reason: what people read; events carry the whole

PROTOCOL = "protocol"  # the rule of verdicts on a call's shape: no line of the configuration stands behind it

ASPECTS = {Aspect.TLS: "TLS certificate", Aspect.BINARY: "binary", Aspect.INSTRUCTIONS: "instructions text"}


class Outcome(StrEnum):
    """What a step says."""

    PASS = "pass"  # noqa: S105 - no password
    ALERT = "alert"  # pass, and say so
    BLOCK = "block"


_TRUSTED: Final = PinState.TRUSTED
_ON_CHANGE: Final = f"{ROOT}.version_pinning.on_change"
_TRUST_FIRST: Final = f"{ROOT}.version_pinning.auto_trust_first"
_OUTCOMES: Final = {effect: Outcome(effect.value) for effect in pins.PinEffect}


@dataclass(slots=True)  # not frozen, which would double what it costs: several are made for a verdict
class Step:
    """One step of the reasoning. `rule` is the YAML path of what decided, `about` the pair it is about, if one."""

    step: str  # name | protocol | server | tool | identity | pin | inspection | arguments | session | native | fail_closed | rate | gateway | verdict
    outcome: Outcome
    reason: str
    rule: str = ""
    about: Candidate | None = None
    crossing: Crossing | None = None  # of a session step that blocks


def about(step: Step, pair: Candidate) -> Step:
    """Return a step as one about this pair."""
    return Step(step.step, step.outcome, step.reason, step.rule, pair, step.crossing)


def shown(candidate: Candidate) -> str:
    """Return a pair as reasons write it."""
    pair = f"{candidate.server_id}/{candidate.tool}"
    if len(pair) <= MAX_NAME and pair.isascii() and pair.isprintable():  # nearly every pair
        return pair
    server = visible(candidate.server_id, MAX_NAME)
    return f"{server}/{visible(candidate.tool, MAX_NAME)}"


def protocol_step(flaw: str) -> Step:
    """Refuse a call in whose bytes two clients could read two calls: no verdict on one of them would hold for the other."""
    return Step("protocol", Outcome.BLOCK, flaw, PROTOCOL)


def server_step(rules: Rules, policy: str, about: Candidate) -> Step:
    """Judge the server of a pair: a deny rule, then an allow rule, then the default."""
    server = fold(about.server_id)
    name = f"server {visible(about.server_id, MAX_NAME)}"
    denied = rules.denied_servers.first(server)
    if denied is not None:
        return Step("server", Outcome.BLOCK, f"{name} is denied by {denied.shown}", denied.path, about)
    allowed = rules.allowed_servers.first(server)
    if allowed is not None:
        return Step("server", Outcome.PASS, f"{name} is allowed by {allowed.shown}", allowed.path, about)
    if rules.other_servers is not None:
        reason = f"{name} is not in allowed_servers, and {rules.other_servers.shown} denies every other"
        return Step("server", Outcome.BLOCK, reason, rules.other_servers.path, about)
    if policy == "allowlist":
        reason = f"{name} is not in allowed_servers (server_policy: allowlist)"
        return Step("server", Outcome.BLOCK, reason, f"{ROOT}.server_policy", about)
    return Step("server", Outcome.PASS, f"no rule denies {name}", about=about)


def tool_step(rules: Rules, policy: str, about: Candidate, given: Given | None = None) -> Step:
    """Judge a pair by the rules over tools, as server_step does by those over servers.

    Without arguments (`given`) it is the tool itself that is judged: denied is what no arguments would save.
    """
    pair = fold(about.server_id), fold(about.tool), about.tool_hash
    name = f"tool {shown(about)}"
    denied, why = _denied(rules, pair, given)
    if denied is not None:
        reason = f"{name} is denied by {denied.shown}" + (f": {why}" if why else "")
        return Step("tool", Outcome.BLOCK, reason, denied.path, about)
    allowed, almost = _allowed(rules, pair, given)
    if allowed is not None:
        return Step("tool", Outcome.PASS, f"{name} is allowed by {allowed.shown}", allowed.path, about)
    missing = f"not in allowed_tools{f' with these arguments ({almost.shown})' if almost else ''}"
    if rules.other_tools is not None:
        reason = f"{name} is {missing}, and {rules.other_tools.shown} denies every other"
        return Step("tool", Outcome.BLOCK, reason, rules.other_tools.path, about)
    if policy == "allowlist":
        reason = f"{name} is {missing} (tool_policy: allowlist)"
        return Step("tool", Outcome.BLOCK, reason, f"{ROOT}.tool_policy", about)
    return Step("tool", Outcome.PASS, f"no rule denies {name}", about=about)


def _denied(rules: Rules, pair: tuple[str, str, str], given: Given | None) -> tuple[Rule | None, str]:
    """Return the first denied rule that holds, and what its arguments have to do with it."""
    plain, why = rules.denied_tools.first(*pair), ""
    for rule in rules.denied_tools.narrowed(*pair) if given is not None else ():
        if plain is not None and plain.order < rule.order:
            break
        if rule.args is not None and given is not None and (why := rule.args.denies(given)):
            return rule, why
    return plain, ""


def _allowed(
    rules: Rules, pair: tuple[str, str, str], given: Given | None
) -> tuple[Rule | None, Rule | None]:
    """Return the first allowed rule that holds, and one that would with other arguments."""
    if not rules.allowed_tools.rules:
        return None, None
    found, almost = rules.allowed_tools.first(*pair), None
    for rule in rules.allowed_tools.narrowed(*pair):
        if found is not None and found.order < rule.order:
            break
        if given is None or (rule.args is not None and rule.args.allows(given)):
            return rule, None
        almost = almost or rule
    return found, almost


def pin_step(board: Pins, pinning: VersionPinning, about: Candidate) -> Step | None:
    """Judge the version of a tool that was seen; None where pinning is off."""
    if not pinning.enabled:
        return None
    state = board.lookup(about.server_id, about.tool, about.tool_hash)
    outcome = _OUTCOMES[pins.effect(state, pinning)]
    if state is _TRUSTED:
        return Step("pin", outcome, f"this version of tool {shown(about)} is trusted", "", about)
    if state is PinState.CHANGED:
        reason = f"tool {shown(about)} is not the version that was trusted (on_change: {pinning.on_change})"
        return Step("pin", outcome, reason, _ON_CHANGE, about)
    if pinning.auto_trust_first:
        reason = f"tool {shown(about)} is trusted at first sight (auto_trust_first)"
    else:
        reason = f"nobody trusts tool {shown(about)} yet (`agentsh-net mcp pins trust`)"
    return Step("pin", outcome, reason, _TRUST_FIRST, about)


def identity_step(identities: Iterable[Identity], pinning: VersionPinning, about: Candidate) -> Step | None:
    """Judge who the server is: certificate, binary, instructions. None where all is as trusted, or nothing was seen."""
    taken = [step for known in identities if (step := _aspect_step(known, pinning)) is not None]
    for outcome in (Outcome.BLOCK, Outcome.ALERT):
        for step in taken:
            if step.outcome is outcome:
                return replace(step, about=about)
    return None


def _aspect_step(identity: Identity, pinning: VersionPinning) -> Step | None:
    name, where = visible(identity.server_id, MAX_NAME), f"{ROOT}.version_pinning"
    what = ASPECTS[identity.aspect]
    if identity.declared and identity.state is PinState.CHANGED:
        reason = f"server {name} shows another TLS certificate than its tls_fingerprint names"
        return Step("identity", Outcome.BLOCK, reason, f"{ROOT}.servers")
    outcome = Outcome(pins.effect(identity.state, pinning).value)
    if identity.state is PinState.CHANGED:
        reason = (
            f"the {what} of server {name} is not the one that was trusted (on_change: {pinning.on_change})"
        )
        return Step("identity", outcome, reason, f"{where}.on_change")
    if identity.state is PinState.NEW and outcome is Outcome.BLOCK:
        reason = f"nobody trusts the {what} of server {name} yet (`agentsh-net mcp pins trust --identity`)"
        return Step("identity", outcome, reason, f"{where}.auto_trust_first")
    return None


def altered_step(pinning: VersionPinning, about: Candidate, fields: str) -> Step | None:
    """Judge a tool whose definition, as the request showed it to the model, is not the server's; None where pinning is off."""
    if not pinning.enabled:
        return None
    outcome = Outcome(pins.effect(PinState.CHANGED, pinning).value)
    reason = f"the request shows tool {shown(about)} with another {fields} than its server does (on_change: {pinning.on_change})"
    return Step("pin", outcome, reason, f"{ROOT}.version_pinning.on_change", about)


def inspection_step(inspection: Inspection, tool: Tool | None, about: Candidate) -> Step | None:
    """Judge what the detectors recorded about a definition; None where they recorded nothing."""
    if tool is None or not tool.max_severity:
        return None
    found, bound = tool.max_severity, inspection.block_severity
    reason = f"the definition of tool {shown(about)} has findings up to {visible(found, MAX_NAME)}"
    if at_least(found, bound):
        reason += f" (inspection.block_severity: {bound})"
        return Step("inspection", Outcome.BLOCK, reason, f"{ROOT}.inspection.block_severity", about)
    return Step("inspection", Outcome.ALERT, reason, about=about)


SESSION_RULES = f"{ROOT}.cross_server"


def session_step(crossing: Crossing, about: Candidate | None = None) -> Step:
    """Judge a call by what a session rule has against it."""
    rule = f"{SESSION_RULES}.{crossing.rule}"
    return Step("session", Outcome.BLOCK, crossing.reason, rule, about, crossing)


def shadowing_step(settings: CrossServer, tool: Tool | None, about: Candidate) -> Step | None:
    """Judge a tool that steers or imitates another server's; None where session rules are off. The other's tool is not judged by it."""
    if not settings.enabled or tool is None or not tool.shadows:
        return None
    reason = f"tool {shown(about)} gives orders about another server's tool, or passes for one (cross_server)"
    return session_step(Crossing("shadowing", "high", reason), about)


def shared_name_step(settings: CrossServer, candidates: Sequence[Candidate]) -> Step | None:
    """Judge a name that says nothing of its server and may reach several; None where session rules are off or there is one."""
    if not settings.enabled or len({fold(candidate.server_id) for candidate in candidates}) < 2:
        return None
    several = ", ".join(map(shown, candidates[:MAX_SHARED]))
    reason = f"the name may reach tools of several servers ({several}); with a server's prefix it reaches one (cross_server)"
    related = tuple({"server_id": c.server_id, "tool_name": c.tool} for c in candidates[:MAX_SHARED])
    return session_step(Crossing("shadowing", "high", reason, related))


def arguments_step(found: Sequence[Finding]) -> Step:
    """Say what detectors found in the arguments of a call."""
    worst = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    reason = f"the arguments have findings up to {worst.severity}: {worst.pattern} at {worst.path}{more}"
    return Step("arguments", Outcome.ALERT, reason)


def gateway_step(gateway: Gateway, about: Candidate) -> Step | None:
    """Say what the gateway does with calls of a pair, whatever the verdict is; None where it has no say of its own."""
    for server_id, own in gateway.servers.items():
        if gateway.enabled and own.allow_tools and fold(server_id) == fold(about.server_id):
            rule, name = f"gateway.servers.{server_id}.allow_tools", f"tool {shown(about)}"
            if any(globs.parse(pattern).matches(fold(about.tool)) for pattern in own.allow_tools):
                return Step("gateway", Outcome.PASS, f"the gateway offers {name}", rule, about)
            reason = f"the gateway does not offer {name}: calls through it are blocked"
            return Step("gateway", Outcome.ALERT, reason, rule, about)
    return None


def rate_step(limits: RateLimits, about: Candidate, outcome: Outcome) -> Step:
    """Say which rate holds for a pair's server, within it or over it."""
    limit = limit_of(limits, about.server_id)
    rate = f"{limit.calls_per_minute:g} calls a minute, {limit.burst} at once"
    server = visible(about.server_id, MAX_NAME)
    own = any(fold(name) == fold(about.server_id) for name in limits.per_server)
    rule = f"{ROOT}.rate_limits.per_server.{server}" if own else f"{ROOT}.rate_limits"
    over = outcome is Outcome.BLOCK
    reason = (
        f"server {server} is over its rate of {rate}" if over else f"the rate of server {server} is {rate}"
    )
    return Step("rate", outcome, reason, rule, about)
