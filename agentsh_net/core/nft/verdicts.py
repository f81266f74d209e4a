"""What happens to a packet that a lookup found: whose it must be for a rule to concern it, then refusal or tag, each logged.

Rules as expressions, by chain. Lookups, chains and transactions are `ruleset`'s business. The chains of forwarded packets
ask for no socket: the kernel knows none there, and neither a session nor the proxy sends any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentsh_net.core.network.plane import Fate, Plan
from agentsh_net.core.nft import flows as nft_flows
from agentsh_net.core.nft.sockets import NOWHERE, Sockets

PREFIX = "agentsh-net"
# The largest headers whose ports and sequence number are wanted: IPv4 with all options (60) or IPv6 (40) with extension headers, and 8 bytes.
SNAPLEN = 128
# Records that wait in the kernel before a wake-up; the reader's timeout bounds how long.
LOG_BATCH = 16
_FIN, _SYN, _RST, _ACK = 0x01, 0x02, 0x04, 0x10  # TCP's flags
UNDECLARED = "-undeclared"  # behind the fate in a log prefix: no rule says it
ROUTED = "_routed"  # ends the names of chains for forwarded packets
CHAINS = (
    *("refuse", "tag", "refuse_ours", "tag_ours", "refuse_scope", "tag_scope"),
    *(f"refuse{ROUTED}", f"tag{ROUTED}"),
)

Expressions = list[dict[str, Any]]


def verdict(fate: Fate, plan: Plan, *, ours: bool, routed: bool) -> dict[str, Any]:
    """Return how a packet leaves its lookup. `ours`: the rule does not concern the proxy."""
    verb, chain = ("goto", "refuse") if fate is Fate.DENY else ("jump", "tag")
    if routed:
        return {verb: {"target": chain + ROUTED}}
    return {verb: {"target": f"{chain}_ours" if ours else chain + _scope(plan)}}


def rules(
    plan: Plan, nflog_group: int, sockets: Sockets, *, tags: bool, ours: bool
) -> Iterator[tuple[str, Expressions]]:
    """Yield (chain, rule). `tags` and `ours`: there are such lookups; what no lookup leads to costs the path nothing."""
    for stem, fate in (("refuse", Fate.DENY), *([("tag", Fate.TAG)] if tags else [])):
        act = refuse if fate is Fate.DENY else tag
        yield from ((stem, e) for e in act(plan, nflog_group, sockets))
        yield from ((stem + ROUTED, e) for e in act(plan, nflog_group, NOWHERE))
        if plan.sessions_only:
            yield from ((f"{stem}_scope", [e, {"goto": {"target": stem}}]) for e in sockets.of_sessions())
        if ours:
            yield from ((f"{stem}_ours", [e, {"return": None}]) for e in sockets.of_workers())
            yield f"{stem}_ours", [{"goto": {"target": stem + _scope(plan)}}]


def prefix(fate: Fate, generation: int, session_id: str = "", *, undeclared: bool = False) -> str:
    """Return the log prefix that tells the reader what happened, under which policy, to whose packet."""
    what = f"{fate}{UNDECLARED}" if undeclared else fate
    return ":".join([PREFIX, what, str(generation), *([session_id] if session_id else [])])


def parse_prefix(text: str) -> tuple[Fate, int, str] | None:
    """Return fate, generation and session of a log prefix, None for a message that is not ours."""
    found = re.fullmatch(
        rf"{PREFIX}:(deny|tag)(?:{UNDECLARED})?:([0-9]{{1,20}})(?::([A-Za-z0-9._-]{{1,64}}))?", text
    )
    return (Fate(found[1]), int(found[2]), found[3] or "") if found else None


def is_undeclared(text: str) -> bool:
    """Say whether a log prefix of ours tells of what no rule does."""
    return f"{UNDECLARED}:" in text


def match(left: Any, right: Any, *, op: str = "==") -> dict[str, Any]:
    """Return a comparison."""
    return {"match": {"op": op, "left": left, "right": right}}


def _scope(plan: Plan) -> str:
    return "_scope" if plan.sessions_only else ""


def _sessions(plan: Plan, sockets: Sockets) -> Iterator[tuple[str, dict[str, Any]]]:
    for session_id in plan.sessions:
        yield from ((session_id, expression) for expression in sockets.of_session(session_id))


def refuse(
    plan: Plan, nflog_group: int, sockets: Sockets, *, undeclared: bool = False
) -> Iterator[Expressions]:
    """Yield the refusal: counted exactly and logged each time (what the log loses, its sequence numbers tell).

    A reset is what is left of a connection that is closed already, by a sweep for one: stopped, but no news.
    """
    flags = {"payload": {"protocol": "tcp", "field": "flags"}}
    tcp = match({"meta": {"key": "l4proto"}}, 6)
    reset, prohibited = (
        {"reject": {"type": "tcp reset"}},
        {"reject": {"type": "icmpx", "expr": "admin-prohibited"}},
    )
    yield [match({"&": [flags, _RST]}, _RST), {"drop": None}]
    for session_id, its in _sessions(plan, sockets):
        told = [{"counter": "denied"}, _log(Fate.DENY, plan, nflog_group, session_id, undeclared=undeclared)]
        yield [its, tcp, *told, reset]
        yield [its, *told, prohibited]
    yield [{"counter": "denied"}, _log(Fate.DENY, plan, nflog_group, undeclared=undeclared)]
    yield [tcp, reset]
    yield [prohibited]


def tag(plan: Plan, nflog_group: int, sockets: Sockets, *, undeclared: bool = False) -> Iterator[Expressions]:
    """Yield the tagging: every packet carries the mark in our bits only, if any; what begins a connection is logged.

    TCP says itself what begins one (RFC 9293, section 3.5), again where nobody answers: the reader joins those. Other flows
    are remembered. One that there is no room to remember is logged with every packet.
    """
    if plan.mark:
        yield [_set_mark("meta", plan)]
        yield [_set_mark("ct", plan)]  # the kernel tracks connections wherever a rule says `ct`
    flags = {"payload": {"protocol": "tcp", "field": "flags"}}
    yield [match({"&": [flags, _FIN | _SYN | _RST | _ACK]}, _SYN, op="!="), {"return": None}]
    no_tcp = match({"meta": {"key": "l4proto"}}, 6, op="!=")
    for name, flow in nft_flows.KEYS.items():
        update, add = ({"set": {"op": op, "elem": flow, "set": f"@{name}"}} for op in ("update", "add"))
        yield [no_tcp, match(flow, f"@{name}"), update, {"return": None}]
        yield [no_tcp, add]
    told = {"counter": "tagged"}
    for session_id, its in _sessions(plan, sockets):
        yield [
            its,
            told,
            _log(Fate.TAG, plan, nflog_group, session_id, undeclared=undeclared),
            {"return": None},
        ]
    yield [told, _log(Fate.TAG, plan, nflog_group, undeclared=undeclared)]


def _set_mark(where: str, plan: Plan) -> dict[str, Any]:
    key = {where: {"key": "mark"}}
    others = {"&": [key, ~plan.mark_mask & 0xFFFFFFFF]}
    return {"mangle": {"key": key, "value": {"|": [others, plan.mark]}}}


def _log(
    fate: Fate, plan: Plan, nflog_group: int, session_id: str = "", *, undeclared: bool
) -> dict[str, Any]:
    return {
        "log": {
            "prefix": prefix(fate, plan.generation, session_id, undeclared=undeclared),
            "group": nflog_group,
            "snaplen": SNAPLEN,
            "queue-threshold": LOG_BATCH,
        }
    }
