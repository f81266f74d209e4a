"""A policy from what was observed: allow the tools that were used, deny those that were made to deceive, leave the rest out.

Pure: events and rows come from the store, the policy that it begins from is the operator's. What went wrong by another's
doing (a poisoned page that an honest tool fetched) turns a detector on, and denies nothing.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentsh_net.core.audit.events import (
    CrossServerBlocked,
    ToolCalled,
    ToolCallIntercepted,
    ToolResultInspected,
)
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.values.recent import remember

Row = Mapping[str, Any]
Pair = tuple[str, str]

GRAVE = frozenset({"high", "critical"})
# A name with one of these is not written as a pattern of itself: it would mean others too.
WILD = re.compile(r"[*?\[\]]")
MAX_COUNTED = 50_000  # calls: more than hosts make in an hour, in some 15 MB
MAX_NAME = 128  # characters; a longer name is no real tool's, and a model makes up any


@dataclass(slots=True)
class Observed:
    """What a look through the audit trail gathers."""

    used: Counter[Pair] = field(default_factory=Counter)
    # Definitions with grave findings, and of what severity.
    poisoned: dict[Pair, str] = field(default_factory=dict)
    blocked: Counter[Pair] = field(default_factory=Counter)
    native: Counter[str] = field(default_factory=Counter)  # tools of the agent itself
    offered: set[Pair] = field(default_factory=set)
    crossed: bool = False  # a session rule, or the wish for one, was seen
    injected: bool = False  # results with grave findings
    # The last calls by the event of their intent, and whether held: the wire follows the model's answer within minutes.
    counted: OrderedDict[tuple[str, bool], None] = field(default_factory=OrderedDict)

    @property
    def allowed(self) -> list[Pair]:
        """Return the tools that were used and are not made to deceive."""
        return sorted(pair for pair in self.used if pair not in self.poisoned)

    @property
    def unused(self) -> list[Pair]:
        """Return the tools that servers offered and nobody called."""
        return sorted(self.offered - self.used.keys() - self.blocked.keys() - self.poisoned.keys())


def observe(events: Iterable[Row], tools: Iterable[Row]) -> Observed:
    """Return what events and the table of tools tell."""
    seen = Observed()
    for row in tools:
        pair = str(row["server_id"]), str(row["tool_name"])
        if row.get("removed"):
            continue
        seen.offered.add(pair)
        if row.get("max_severity") in GRAVE:
            seen.poisoned[pair] = str(row["max_severity"])
    for event in events:
        match event.get("type"):
            case ToolCallIntercepted.type | ToolCalled.type:
                _call(seen, event)
            case ToolResultInspected.type:
                seen.injected |= any(d.get("severity") in GRAVE for d in event.get("detections") or ())
            case CrossServerBlocked.type:
                seen.crossed = True
    return seen


def _call(seen: Observed, event: Row) -> None:
    pairs = list(_pairs(event))
    if not pairs:
        name = str(event.get("tool_name") or "")
        if name and not fold(name).startswith("mcp") and event.get("action") == "allow":
            seen.native[name] += 1
    if len(pairs) != 1:  # which one it was, the wire tells, if it came there
        return
    held = "block" in {event.get("action"), event.get("would")}
    if (call := str(event.get("intercepted_id") or event.get("id") or "")) and (call, held) in seen.counted:
        return  # in the model's answer and on the wire it is one call
    remember(seen.counted, (call, held), None, MAX_COUNTED)
    (seen.blocked if held else seen.used)[pairs[0]] += 1


def _pairs(event: Row) -> Iterator[Pair]:
    if event.get("type") == ToolCalled.type:
        yield str(event.get("server_id")), str(event.get("tool_name"))
        return
    for candidate in event.get("candidates") or ():
        # Stores of earlier versions say `tool`.
        yield str(candidate.get("server_id")), str(candidate.get("tool_name", candidate.get("tool")))


def policy(base: Mapping[str, Any], seen: Observed) -> dict[str, Any]:
    """Return the policy: `base` with its lists replaced by what was seen; what it denies stays denied."""
    sandbox = base.get("sandbox") if isinstance(base.get("sandbox"), Mapping) else {}
    mcp = dict((sandbox or {}).get("mcp") or {})
    allowed = [pair for pair in seen.allowed if _writable(pair)]
    denied = list(mcp.get("denied_tools") or ())
    for server, tool in sorted(seen.poisoned):
        rule = {"server": server, "tool": tool}
        if _writable((server, tool)) and rule not in denied:
            denied.append(rule)
    pinning = mcp.get("version_pinning") or {}
    mcp |= {
        "enforce_policy": True,
        "server_policy": "allowlist",
        "allowed_servers": [{"id": server} for server in sorted({server for server, _ in allowed})],
        "tool_policy": "allowlist",
        "allowed_tools": [{"server": server, "tool": tool} for server, tool in allowed],
        "denied_tools": denied,
        "version_pinning": {"auto_trust_first": True, **pinning, "enabled": True, "on_change": "block"},
    }
    native = [name for name in sorted(seen.native) if _plain(name)]
    if native:
        mcp["native_tools"] = [*(mcp.get("native_tools") or ()), *(n for n in native if n not in (mcp.get("native_tools") or ()))]  # fmt: skip
    if seen.crossed:
        mcp["cross_server"] = {**(mcp.get("cross_server") or {}), "enabled": True}
    if seen.injected:
        mcp["output_inspection"] = {"enabled": True, "on_detection": "block"}
    return {"version": 1, **base, "sandbox": {**(sandbox or {}), "mcp": mcp}}


def notes(seen: Observed) -> Iterator[str]:
    """Yield why each thing is in the policy or left out, a line each."""
    for pair in seen.allowed:
        if _writable(pair):
            yield f"allowed: {_shown(pair)}, called {_times(seen.used[pair])}"
    for pair, severity in sorted(seen.poisoned.items()):
        yield f"denied: {_shown(pair)}: its definition has findings up to {severity} (agentsh-net mcp detections)"
    for pair, count in sorted(seen.blocked.items()):
        if pair not in seen.used and pair not in seen.poisoned:
            yield f"left out: {_shown(pair)}: {count} {'call' if count == 1 else 'calls'} that the policy blocked, or would have blocked"
    for pair in seen.unused:
        yield f"left out: {_shown(pair)}: offered, and never called"
    for pair in (*seen.allowed, *seen.poisoned):
        if not _writable(pair):
            yield f"left out: {_shown(pair)}: a name that reads as a pattern, or does not show"
    if seen.crossed:
        yield "cross_server: on, because data of one server would have gone to another"
    if seen.injected:
        yield "output_inspection: block, because results spoke to the model as if with authority"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _writable(pair: Pair) -> bool:
    return all(map(_plain, pair))


def _plain(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME and visible(name) == name == name.strip() and not WILD.search(name)


def _shown(pair: Pair) -> str:
    return "/".join(part[:MAX_NAME] for part in pair)
