"""Verdicts: what a call may mean, every candidate judged step by step, the first block decides.

The steps are core.verdicts.steps', in the order of the design: the call's shape, then server, tool, pin, inspection, then (where nothing
was seen) native tools and fail_closed, then the rate. `explain` returns the very steps that `judge` took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.inspect.contents import inspect_arguments
from agentsh_net.core.inspect.custom import compiled
from agentsh_net.core.model import Action, Candidate, Crossing, Shown, ToolCall, Verdict
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.naming.names import Names, Resolution, wrapped_pair
from agentsh_net.core.naming.native_tools import Native, NativeTools
from agentsh_net.core.registry import Registry
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Identity
from agentsh_net.core.trust.pins import Pins
from agentsh_net.core.verdicts import connectors, steps, unseen
from agentsh_net.core.verdicts.given import Given, given_by
from agentsh_net.core.verdicts.readings import Readings
from agentsh_net.core.verdicts.rules import Rules
from agentsh_net.core.verdicts.steps import MAX_NAME, Outcome, Step

# (server id, tool, the call's key, session id) -> within the rate, or what a session rule has against it
Charge = Callable[[str, str, str, str], bool | Crossing]

# Names whose ruling is remembered: more than agents use at once; past it the memory starts anew.
# A ruling takes some 1 KB, so that a model that makes up names costs 4 MB at most.
MAX_REMEMBERED = 4096
MAX_REMEMBERED_NAME = 512  # characters; real names have at most 128 on each side
MAX_LISTED = 8  # candidates in the words of a step; the verdict has them all

_BLOCK, _ALERT = Outcome.BLOCK, Outcome.ALERT  # looked up once: as attributes they cost as much as a call

K = TypeVar("K")
V = TypeVar("V")
CallKey = tuple[str, str, str, tuple[str, str] | None, Shown | None]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a verdict came about. The last step is the verdict."""

    steps: tuple[Step, ...]
    verdict: Verdict


class _Ruling(NamedTuple):
    """What holds for every call of one name: the verdict, and the pairs whose rate is charged."""

    verdict: Verdict
    charged: tuple[Candidate, ...] = ()
    of_arguments: bool = False  # another call of the name may get another ruling


class _Taken(NamedTuple):
    """A ruling and the steps that led to it, which are not remembered: they are many objects, and hardly anybody asks."""

    ruling: _Ruling
    steps: list[Step]
    deciding: Step


class Policy:
    """The rules over one registry and one board of pins. Frozen in what it says; it only remembers what it worked out."""

    def __init__(self, mcp: Mcp, registry: Registry, pins: Pins) -> None:
        self._mcp = mcp
        self._registry = registry
        self._pins = pins
        self._rules = rules = Rules(mcp)
        self._asking = tuple(r for r in (rules.denied_tools, rules.allowed_tools) if r.looks_at_arguments)
        self._charges = mcp.rate_limits.enabled or mcp.cross_server.enabled
        self._natives = NativeTools(mcp.native_tools)
        self.readings = Readings(mcp)
        self._customs = compiled(mcp.inspection.custom_patterns)
        self._names: Names | None = None  # made with the first call: the supervisor may never judge one
        self._rulings: dict[CallKey, _Ruling] = {}
        self._of_servers: dict[str, tuple[Step, Step | None]] = {}

    def judge(self, call: ToolCall, session_id: str, charge: Charge) -> Verdict:
        """Return the verdict on a call, and charge the rate if nothing else blocks it."""
        ruling = self._ruling(call)
        for pair in () if call.hypothetical or call.stored else ruling.charged:
            answer = charge(pair.server_id, pair.tool, call.key, session_id)
            if isinstance(answer, Crossing):
                crossed = steps.session_step(answer, pair)
                return self._verdict(crossed, ruling.verdict.candidates)
            if not answer:
                over = steps.rate_step(self._mcp.rate_limits, pair, _BLOCK)
                return self._verdict(over, ruling.verdict.candidates)
        return ruling.verdict

    def explain(self, call: ToolCall) -> Explanation:
        """Return the steps that lead to the verdict on a call; nothing is charged.

        What detectors find in the arguments stands before the verdict: it alerts, and never decides.
        """
        (verdict, *_), taken, deciding = self._work_out(call, wrapped_pair(call))
        found = inspect_arguments(call.input, self._customs) if call.input else ()
        told = (steps.arguments_step(found),) if found else ()
        last = Step("verdict", deciding.outcome, verdict.reason, verdict.rule, deciding.about)
        return Explanation((self._name_step(call, verdict.candidates), *taken, *told, last), verdict)

    def explain_reading(self, call: ToolCall) -> Explanation:
        """Return the steps that lead to the verdict on a request to read, whose method is the call's name."""
        server = self.server_step(call.server_name)
        own = self.readings.step(self._registry.canonical_id(call.server_name), call.name, call.input)
        deciding = _first_block([server, own]) or own
        verdict = self._verdict(deciding, (deciding.about,) if deciding.about else ())
        last = Step("verdict", deciding.outcome, verdict.reason, verdict.rule, deciding.about)
        return Explanation((server, own, last), verdict)

    def stands(self, call: ToolCall) -> bool:
        """Say whether what `judge` says of a call holds for every call of its name, until the policy changes.

        Whatever `judge` looks at besides names (rates, other calls, arguments) makes this false: shims that are told
        a verdict stands let the next call of the tool pass at once and tell of it.
        """
        ruling = self._ruling(call)
        return not (ruling.charged or ruling.of_arguments or call.flaw or self._mcp.cross_server.enabled)

    def meant(self, call: ToolCall) -> tuple[Candidate, ...]:
        """Return the registered tools that a call's name spells."""
        return self._resolve(call, wrapped_pair(call)).registered

    def judge_offer(self, call: ToolCall) -> Verdict:
        """Return the verdict on the offer of a tool: blocked is what would be, whatever the arguments of the call."""
        return self._work_out(call, wrapped_pair(call), offered=True).ruling.verdict

    def judge_server(self, server_id: str) -> Verdict:
        """Return the verdict of the server step alone."""
        return self._verdict(self.server_step(server_id), ())

    def judge_reading(self, server_id: str, method: str, params: Any) -> Verdict:
        """Return the verdict on a request to read of a server that is not denied itself."""
        step = self.readings.step(self._registry.canonical_id(server_id), method, params)
        return self._verdict(step, (step.about,) if step.about else ())

    def judge_connector(self, server_id: str, url: str) -> Verdict:
        """Return the verdict on an MCP server that a request asks the provider to call by itself."""
        step = connectors.connector_step(self._registry, self._mcp, self.server_step, server_id, url)
        return self._verdict(step, (step.about,) if step.about else ())

    def connector_reach(self, server_id: str, url: str) -> connectors.Reach:
        """Return which tools a connector that may be called may reach."""
        return connectors.reach(self._registry, self._mcp, self._rules, self.judge_offer, server_id, url)

    def server_step(self, server_id: str) -> Step:
        """Judge a server, declared or not."""
        about = Candidate(self._registry.canonical_id(server_id), "")
        return steps.server_step(self._rules, self._mcp.server_policy, about)

    def _ruling(self, call: ToolCall) -> _Ruling:
        if call.flaw:
            return self._work_out(call, wrapped_pair(call)).ruling  # too rare to remember
        wrapped = wrapped_pair(call)
        key = call.name, call.namespace, call.server_name, wrapped, call.shown
        known = self._rulings.get(key)
        if known is not None:
            return known
        ruling = self._work_out(call, wrapped).ruling
        length = len(call.name) + len(call.namespace) + len(call.server_name)
        if wrapped is not None:
            length += len(wrapped[0]) + len(wrapped[1])
        if length <= MAX_REMEMBERED_NAME and not ruling.of_arguments:
            _remember(self._rulings, key, ruling)
        return ruling

    def prepare(self) -> Names:
        """Make the index of names now: some 20 ms with 10,000 tools, which else the first call waits for, and whoever streams beside it."""
        if self._names is None:
            self._names = Names(self._registry, self._rules)
        return self._names

    def _resolve(self, call: ToolCall, wrapped: tuple[str, str] | None) -> Resolution:
        return (self._names or self.prepare()).resolve_wrapped(call, wrapped)

    def _work_out(self, call: ToolCall, wrapped: tuple[str, str] | None, *, offered: bool = False) -> _Taken:
        meant = self._resolve(call, wrapped)
        native = self._native(call) if wrapped is None else None
        chance = () if native is not None and native.exact and not meant.registered else meant.guessed
        candidates = (*meant.registered, *meant.bound, *chance)
        if call.flaw:
            hostile = steps.protocol_step(call.flaw)
            return self._concluded([hostile], hostile, candidates)
        given = None if offered else self._arguments(call, candidates)
        changed = self._altered_step(call, candidates)
        taken = [changed] if changed else []
        for index, candidate in enumerate(candidates):
            taken += self._steps_of(candidate, given, seen=index < len(meant.registered))
        shared = steps.shared_name_step(self._mcp.cross_server, meant.registered)
        taken += [shared] if shared else []
        block = _first_block(taken)
        if block is None and not meant.registered:
            unseen = self._unseen_step(call, meant, candidates, native, given)
            taken.append(unseen)
            block = unseen if unseen.outcome is _BLOCK else None
        if block is not None:
            return self._concluded(taken, block, candidates, of_arguments=given is not None)
        charged = tuple(self._charged((*meant.registered, *meant.bound))) if self._charges else ()
        if self._mcp.cross_server.enabled and charged:
            taken.append(
                Step("session", Outcome.PASS, "the calls of the session decide", steps.SESSION_RULES)
            )
        if self._mcp.rate_limits.enabled:
            taken += [steps.rate_step(self._mcp.rate_limits, pair, Outcome.PASS) for pair in charged]
        return self._concluded(taken, _weightiest(taken), candidates, charged, of_arguments=given is not None)

    def _arguments(self, call: ToolCall, candidates: tuple[Candidate, ...]) -> Given | None:
        """Return a call's arguments where a rule asks for them; None where none does, so that the ruling can be remembered."""
        if not self._asking:
            return None
        asked = any(
            rules.narrowed(fold(c.server_id), fold(c.tool), c.tool_hash)
            for rules in self._asking
            for c in candidates
        )
        if not candidates and self._names is not None:
            tools = self._names.unplaced(fold(call.name))
            asked = any(self._rules.denied_tools.narrowed_anywhere(tool) for tool in tools)
        return given_by(call, wrapped=wrapped_pair(call) is not None) if asked else None

    def _altered_step(self, call: ToolCall, candidates: tuple[Candidate, ...]) -> Step | None:
        """Judge a tool that the request showed with another definition than its server does."""
        if call.shown is None or not call.shown.altered or not candidates:
            return None
        return steps.altered_step(self._mcp.version_pinning, candidates[0], call.shown.altered)

    def _name_step(self, call: ToolCall, candidates: tuple[Candidate, ...]) -> Step:
        name = visible(call.name, MAX_NAME)
        meaning = ", ".join(map(steps.shown, candidates[:MAX_LISTED])) or "no tool of a known server"
        if len(candidates) > MAX_LISTED:
            meaning += f" and {len(candidates) - MAX_LISTED} more"
        return Step("name", Outcome.PASS, f"{name!r} may mean {meaning}")

    def _steps_of(self, about: Candidate, given: Given | None, *, seen: bool) -> list[Step]:
        """Take the steps about one candidate, up to the first block."""
        of_server, of_identity = self._server_steps(about.server_id)
        step = steps.about(of_server, about)
        taken = [step]
        if step.outcome is not _BLOCK:
            step = steps.tool_step(self._rules, self._mcp.tool_policy, about, given)
            taken.append(step)
        if step.outcome is not _BLOCK and of_identity is not None:
            step = steps.about(of_identity, about)
            taken.append(step)
        if step.outcome is not _BLOCK and seen:
            taken += self._definition_steps(about)
        return taken

    def _definition_steps(self, about: Candidate) -> list[Step]:
        """Take the steps about what a seen tool says of itself, up to the first block."""
        tool = self._registry.tool(about.server_id, about.tool)
        taken = []
        for step in (
            steps.pin_step(self._pins, self._mcp.version_pinning, about),
            steps.inspection_step(self._mcp.inspection, tool, about),
            steps.shadowing_step(self._mcp.cross_server, tool, about),
        ):
            if step is not None:
                taken.append(step)
                if step.outcome is _BLOCK:
                    break
        return taken

    def _server_steps(self, server_id: str) -> tuple[Step, Step | None]:
        """Return the steps about a server and its identity, which are those of all its tools."""
        known = self._of_servers.get(server_id)
        if known is None:
            about = Candidate(server_id, "")
            judged = steps.server_step(self._rules, self._mcp.server_policy, about)
            known = (
                judged,
                steps.identity_step(self._identities(server_id), self._mcp.version_pinning, about),
            )
            _remember(self._of_servers, server_id, known)
        return known

    def _identities(self, server_id: str) -> list[Identity]:
        """Return what is known of a server itself, as far as the policy pins it."""
        server = self._registry.server(server_id)
        known = self._pins.identities_of(server_id) if server else ()
        return [each for each in known if server and identity.wanted(server, each.aspect)]

    def _native(self, call: ToolCall) -> Native | None:
        """Return the entry of native_tools for a call that names no MCP server beside its name."""
        if call.server_name or (call.namespace and fold(call.namespace).startswith("mcp")):
            return None
        return self._natives.find(fold(call.name))

    def _unseen_step(
        self,
        call: ToolCall,
        meant: Resolution,
        candidates: tuple[Candidate, ...],
        native: Native | None,
        given: Given | None,
    ) -> Step:
        """Judge a call that resolves to no registered tool, and that no rule about its candidates denies."""
        if not candidates:
            tools = self._names.unplaced(fold(call.name)) if self._names else ()
            # A pattern over servers' tools is not about a tool that is listed as the agent's own; a rule with its very name is.
            by_name = native is not None and native.exact
            denied = unseen.denied_step(self._rules.denied_tools, call, tools, given, by_name=by_name)
            if denied is not None:
                return denied
        if native is not None:
            return unseen.native_step(call, native)
        return unseen.step(call, meant, candidates, fail_closed=self._mcp.fail_closed)

    def _charged(self, candidates: tuple[Candidate, ...]) -> Iterator[Candidate]:
        """Yield one candidate of each known server: made-up servers have no bucket that a model could fill the memory with."""
        servers: set[str] = set()
        for candidate in candidates:
            server = fold(candidate.server_id)
            known = self._registry.server(server) or self._registry.tools_of(server)
            if known and server not in servers:
                servers.add(server)
                yield candidate

    def _concluded(
        self,
        taken: list[Step],
        deciding: Step,
        candidates: tuple[Candidate, ...],
        charged: tuple[Candidate, ...] = (),
        *,
        of_arguments: bool = False,
    ) -> _Taken:
        if deciding.outcome is _BLOCK and len(candidates) > 1 and deciding.rule != steps.PROTOCOL:
            reason = f"{deciding.reason}; the name may mean {len(candidates)} tools"
            deciding = replace(deciding, reason=reason)
        verdict = self._verdict(deciding, candidates)
        return _Taken(_Ruling(verdict, charged, of_arguments), taken, deciding)

    def _verdict(self, deciding: Step, candidates: tuple[Candidate, ...]) -> Verdict:
        """Return the step as a verdict; in audit mode a block is let pass, and says so in `would`."""
        if deciding.outcome is not _BLOCK:
            return Verdict(Action.ALLOW, deciding.reason, deciding.rule, None, candidates)
        if deciding.about in candidates[1:]:  # events are of the first
            candidates = (deciding.about, *(c for c in candidates if c != deciding.about))
        if self._mcp.enforce_policy:
            return Verdict(Action.BLOCK, deciding.reason, deciding.rule, None, candidates, deciding.crossing)
        return Verdict(
            Action.ALLOW, deciding.reason, deciding.rule, Action.BLOCK, candidates, deciding.crossing
        )


def _first_block(taken: list[Step]) -> Step | None:
    for step in taken:  # a loop and no generator: this runs for every first verdict
        if step.outcome is _BLOCK:
            return step
    return None


def _weightiest(taken: list[Step]) -> Step:
    """Return the step that an allowing verdict quotes: an alert if there is one, else what allows it, native_tools before a rule."""
    first: dict[str, Step] = {}
    for step in taken:
        if step.outcome is _ALERT:
            return step
        first.setdefault(step.step, step)
    return first.get("native") or first["tool"]


def _remember(memory: dict[K, V], key: K, value: V) -> None:
    if len(memory) >= MAX_REMEMBERED:
        memory.clear()
    memory[key] = value
