"""Rules over what a client reads of a server besides calling its tools: resources, prompts, completions.

A rule of the tools' lists names such a request by its method (`tool: resources/read`) and narrows it by its parameters
(`args: {uri: ...}`). Its pattern has to begin with the kind: one over tools (`*`, `delete_*`) says nothing of what is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from agentsh_net.core.configuration.settings import Mcp, ToolRule
from agentsh_net.core.mcp.glance import misspelt, reads
from agentsh_net.core.model import Candidate
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.verdicts import steps
from agentsh_net.core.verdicts.given import Given
from agentsh_net.core.verdicts.rules import Rule, Rules
from agentsh_net.core.verdicts.steps import Step

_KEYS: Final = frozenset(("uri", "name", "arguments", "ref", "argument"))


class Readings:
    """The rules of a policy that name requests to read."""

    __slots__ = ("_denying", "_policy", "_rules")

    def __init__(self, mcp: Mcp) -> None:
        named = replace(mcp, denied_tools=_named(mcp.denied_tools), allowed_tools=_named(mcp.allowed_tools))
        self._rules = Rules(named)  # as for tools: what allow rules name may be denied by default
        self._denying = Rules(replace(named, allowed_tools=()))
        self._denying.other_tools = None
        self._policy = mcp.tool_policy

    def speak_of(self, server_id: str, method: str = "") -> bool:
        """Say whether a rule names a server's requests of this method (empty: of any)."""
        both = (*self._rules.denied_tools.rules, *self._rules.allowed_tools.rules)
        return bool(both) and any(_matches(rule, server_id, method) for rule in both)

    def step(self, server_id: str, method: str, params: Any) -> Step:
        """Judge a request to read, as `steps.tool_step` does calls; where no allow rule names it, only deny rules hold."""
        listed = any(_matches(rule, server_id, method) for rule in self._rules.allowed_tools.rules)
        about, given = Candidate(server_id, method), _given(params)
        if listed:
            return steps.tool_step(self._rules, self._policy, about, given)
        return steps.tool_step(self._denying, "denylist", about, given)


def _named(rules: Iterable[ToolRule]) -> tuple[ToolRule, ...]:
    """Return the rules that name requests to read, and the catch-all, which is a default."""
    return tuple(rule for rule in rules if reads(rule.tool) or _is_bare(rule))


def _is_bare(rule: ToolRule) -> bool:
    return rule.server.strip() == rule.tool.strip() == "*" and not rule.content_hash and not rule.args


def _matches(rule: Rule, server_id: str, method: str) -> bool:
    named = not rule.bare and rule.server.matches(fold(server_id))
    return named and (not method or rule.tool.matches(fold(method)))


def _given(params: Any) -> Given:
    if params is None:
        return Given({})
    if not isinstance(params, Mapping):
        return Given({}, "they are no JSON object")
    return Given(params, "a parameter in another spelling" if misspelt(params, _KEYS) else "")
