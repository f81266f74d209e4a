"""The histories of all sessions, judged by core.flows.crossflow and charged together with the rates: one question, one answer.

It is kept where it is exact over all workers (the supervisor's arbiter). `now` is an argument; asked about one call twice it
answers the same twice, and remembers only what was let through.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from agentsh_net.core.configuration.settings import CrossServer
from agentsh_net.core.flows.crossflow import Call, History, crossing
from agentsh_net.core.flows.tool_kind import Kind, kind_of
from agentsh_net.core.model import Crossing
from agentsh_net.core.registry import Registry
from agentsh_net.core.values.recent import remember

# Sessions that are remembered, those that called last: each is some 256 calls, 50 KB at most. A thousand agents on one machine.
MAX_SESSIONS = 1024
# Calls whose answer is remembered, as long as their answers may be judged again (core.limits.ratelimit has the same bound).
MAX_ANSWERS = 65_536


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A call that nothing else blocks. `key` names one call of one answer; empty, each question is a call of its own."""

    server_id: str
    tool: str
    session_id: str
    turn: str = ""
    call_id: str = ""
    key: str = ""


class SessionLedger:
    """What sessions did. A reload changes the rules it judges by and forgets nothing."""

    def __init__(self) -> None:
        self._settings = CrossServer()
        self._registry = Registry()
        self._histories: OrderedDict[str, History] = OrderedDict()
        self._answers: OrderedDict[tuple[str, str], Crossing | bool] = OrderedDict()
        self._audit = False

    def follow(self, settings: CrossServer, registry: Registry, *, audit: bool) -> None:
        """Judge by these rules and these definitions from now on. In an audit what is held against a call happens all the same."""
        self._settings, self._registry, self._audit = settings, registry, audit

    def take(self, asked: ProposedCall, now: float, within: Callable[[], bool]) -> Crossing | bool:
        """Return what a rule has against a call, or whether it is within its rate, which is charged after the rules are asked."""
        if not self._settings.enabled:
            return within()
        known = self._answers.get((asked.server_id, asked.key)) if asked.key else None
        if known is not None:
            return known
        call = Call(asked.server_id, asked.tool, self._kind(asked), now, asked.turn, asked.call_id)
        history = self._histories.get(asked.session_id, History())
        answer: Crossing | bool = crossing(history, call, self._settings) or within()
        if answer is True or self._audit:
            remember(self._histories, asked.session_id, history.after(call, self._settings), MAX_SESSIONS)
        if asked.key:
            remember(self._answers, (asked.server_id, asked.key), answer, MAX_ANSWERS)
        return answer

    def _kind(self, asked: ProposedCall) -> Kind:
        tool = self._registry.tool(asked.server_id, asked.tool)
        return kind_of(asked.tool, tool.definition if tool else None)
