"""A plan, or the step from one plan to the next, as one libnftables JSON transaction (libnftables-json(5)).

Everything lives in the table `inet agentsh_net`, which is ours alone; nobody else's table is read, flushed or counted on.
Loading it, and asking the kernel what is loaded, is kernel/'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import Fate, Plan
from agentsh_net.core.nft import egress as nft_egress
from agentsh_net.core.nft import flows as nft_flows
from agentsh_net.core.nft import sets as nft_sets
from agentsh_net.core.nft import verdicts as nft_verdicts
from agentsh_net.core.nft.sets import Element, Room
from agentsh_net.core.nft.sockets import NOWHERE, Sockets
from agentsh_net.core.nft.verdicts import match

FAMILY, TABLE = "inet", "agentsh_net"
BRIDGE = "agentsh_net_bridge"  # exists only while TABLE is being replaced
COUNTERS = ("denied", "tagged")

# Transport protocols whose first four bytes are the ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
_WITH_PORTS = [6, 17, 33, 132, 136]
_Command = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Base:
    """A chain that packets come to by a hook. `asked`: still with the address that its sender wrote; `routed`: also others' packets."""

    name: str
    hook: str
    asked: bool = False
    routed: bool = False

    @property
    def priority(self) -> int:
        """Return its place among those of the hook: beside DNAT (-100), and before the filters of others (0)."""
        return -110 if self.asked else -10

    @property
    def six(self) -> str:
        """Return the chain for IPv6, which it has apart so that an IPv4 packet is asked about it once only."""
        return f"six_{self.name}"


# Behind DNAT, so that an alias of a denied host is seen as what it is.
_BASES = (Base("output", "output"), Base("forward", "forward", routed=True))
# Before it, so that a denied host (a Service, a published port) is seen that becomes another: elsewhere eBPF sees it.
_ALONE = (Base("asked", "output", asked=True), Base("asked_routed", "prerouting", asked=True, routed=True))


def bases(plan: Plan) -> tuple[Base, ...]:
    """Return the chains on hooks that a plan needs."""
    return (*_ALONE, *_BASES) if plan.alone else _BASES


def fill(plan: Plan, *, nflog_group: int, sockets: Sockets = NOWHERE, table: str = TABLE) -> dict[str, Any]:
    """Return the transaction that makes an empty table exactly `plan`. `sockets`: where our cgroups are.

    `table` BRIDGE is the other one, which holds the line while the table is replaced.
    """
    room = nft_sets.room(plan.rules)
    filled = _transaction(
        *({"add": {"counter": _ours(name=name)}} for name in COUNTERS),
        *({"add": {"set": _set(name, room)}} for name in nft_sets.TYPES),
        *({"add": {"set": _ours(name=name, **made)}} for name, made in nft_flows.SETS.items()),
        *({"add": {"chain": chain}} for chain in _chains(plan)),
        *_elements("add", nft_sets.elements(plan.rules)),
        *_rules(plan, room.used, nflog_group, sockets),
    )
    return filled if table == TABLE else _in_table(filled, table)


@dataclass(frozen=True, slots=True)
class Change:
    """Two transactions: `widen` adds, `narrow` deletes afterwards (None where nothing has to go).

    Rules and set elements do not switch at one instant for a packet that is being judged: it may be looked up by the old
    rules in the new sets. So in between everything is there that either plan has, until no such packet is left. A set that is
    too small is made anew under its name: such a packet has the old one before it, as it was.
    """

    widen: dict[str, Any]
    narrow: dict[str, Any] | None
    room: Room  # of the table afterwards


def change(
    old: Plan,
    new: Plan,
    step: Diff,
    *,
    nflog_group: int,
    sockets: Sockets = NOWHERE,
    room: Room | None = None,
) -> Change:
    """Return how the table goes from `old`, which must be what it holds, to `new`; `step` is their diff.

    `room` is that of the table, where the caller remembers it (`Change.room` of the change before this one).
    """
    fresh, renamed, gone = nft_sets.steps(old, step)
    before = room or nft_sets.room(old.rules)
    between = before.more(fresh)
    small = {name for name in nft_sets.TYPES if between.sizes[name] != before.sizes[name]}
    kept = {e: note for e, note in nft_sets.elements(old.rules) if e[0] in small} if small else {}
    flush = [{"flush": {"chain": {k: c[k] for k in ("family", "table", "name")}}} for c in _chains(new)]
    widen = _transaction(
        *flush,
        *({"delete": {"set": _ours(name=name)}} for name in small),
        *({"add": {"set": _set(name, between)}} for name in small),
        # A comment cannot be changed. The same key goes and comes in one transaction, and a lookup finds one of the two.
        *_elements("delete", (e for e in renamed.items() if e[0][0] not in small)),
        *_elements("add", (kept | renamed | fresh).items()),
        *_rules(new, between.used, nflog_group, sockets),
    )
    if not gone:
        return Change(widen, None, between)
    after = between.less(gone)
    narrow = (*flush, *_rules(new, after.used, nflog_group, sockets), *_elements("delete", gone.items()))
    return Change(widen, _transaction(*narrow), after)


# A first fragment may end before its ports, or before the transport header: receivers put it together (RFC 7112 forbids it).
_READABLE: list[list[_Command]] = [
    [match({"payload": {"protocol": "th", "field": "dport"}}, 0, op=">="), {"return": None}],
    [match({"exthdr": {"name": "frag", "field": "frag-off"}}, 0, op="!="), {"return": None}],  # a later one
    [match({"meta": {"key": "l4proto"}}, {"set": _WITH_PORTS}, op="!="), {"return": None}],
]


def _ours(**fields: Any) -> _Command:
    return {"family": FAMILY, "table": TABLE, **fields}


def _set(name: str, room: Room) -> _Command:
    return _ours(name=name, type=nft_sets.TYPES[name], size=room.sizes[name], stmt=[{"counter": None}])


def _chains(plan: Plan) -> Iterator[_Command]:
    for name in (*nft_verdicts.CHAINS, *(base.six for base in bases(plan)), *nft_egress.chains(plan)):
        yield _ours(name=name)
    if plan.egress is not None:
        hook = {"type": "filter", "hook": "output", "prio": nft_egress.PRIORITY, "policy": "accept"}
        yield _ours(name=nft_egress.BASE, **hook)
    for base in bases(plan):
        yield _ours(name=base.name, type="filter", hook=base.hook, prio=base.priority, policy="accept")


def _elements(verb: str, elements: Iterable[tuple[Element, str]]) -> Iterator[_Command]:
    """Yield one command per set: thousands of elements in one command cost a tenth of as many commands."""
    by_set: dict[str, list[Any]] = {}
    for (name, address, port), note in elements:
        key: Any = {"concat": [address, port]} if address and port else address or port
        by_set.setdefault(name, []).append(
            key if verb == "delete" else {"elem": {"val": key, "comment": note}}
        )
    for name, values in by_set.items():
        yield {verb: {"element": _ours(name=name, elem=values)}}


def _rules(plan: Plan, used: frozenset[str], nflog_group: int, sockets: Sockets) -> Iterator[_Command]:
    """Yield the rules of every chain. A lookup stands only where its set has elements: others cost the path nothing."""
    declaring = {name for name in used if name.startswith(Fate.ALLOW)}
    ordered = [name for name in nft_sets.TYPES if name in used - declaring]  # denials first
    for base in bases(plan):
        if base.routed and plan.sessions_only:  # what is forwarded comes out of no socket of a session
            continue
        for name in ordered:
            chain = base.six if nft_sets.version(name) == 6 else base.name
            yield from (_rule(chain, *e) for e in _lookups(name, plan, base))
        if not base.asked and any(
            nft_sets.version(n) == 6 and nft_sets.shape(n) for n in ordered if n.startswith(Fate.DENY)
        ):
            refused = nft_verdicts.verdict(Fate.DENY, plan, ours=False, routed=base.routed)
            yield from (_rule(base.six, *e) for e in (*_READABLE, [refused]))
        if any(nft_sets.version(name) == 6 for name in ordered):
            yield _rule(
                base.name, match({"meta": {"key": "nfproto"}}, "ipv6"), {"jump": {"target": base.six}}
            )
    tags = any(name.startswith(Fate.TAG) for name in used)
    ours = any(map(nft_sets.unless_ours, used))
    for chain, expressions in nft_verdicts.rules(plan, nflog_group, sockets, tags=tags, ours=ours):
        yield _rule(chain, *expressions)
    for chain, expressions in nft_egress.rules(plan, used, _WITH_PORTS, nflog_group, sockets):
        yield _rule(chain, *expressions)


def _lookups(name: str, plan: Plan, base: Base) -> Iterator[list[_Command]]:
    """Yield what looks into one set. A tag is told once, where a packet is still for whom its sender meant."""
    protocol = "ip" if nft_sets.version(name) == 4 else "ip6"
    fate, ours = Fate.DENY if name.startswith(Fate.DENY) else Fate.TAG, nft_sets.unless_ours(name)
    if fate is Fate.TAG and plan.alone and not base.asked:
        return
    shape = nft_sets.shape(name)
    local = match({"fib": {"result": "type", "flags": "daddr"}}, "local")
    verdict = [nft_verdicts.verdict(fate, plan, ours=ours, routed=base.routed)]
    if base.asked and base.routed:  # what the network asks of this host itself is for the network to ask
        if shape == "_here":
            return
        verdict.insert(0, local | {"match": local["match"] | {"op": "!="}})
    daddr = {"payload": {"protocol": protocol, "field": "daddr"}}
    dport = {"payload": {"protocol": "th", "field": "dport"}}
    # Asked last: few packets come so far.
    has_ports = match({"meta": {"key": "l4proto"}}, {"set": _WITH_PORTS})
    if shape == "_here":  # every address that this host has, asked for only where the port is right
        family = match({"meta": {"key": "nfproto"}}, "ipv4" if protocol == "ip" else "ipv6")
        yield [family, match(dport, f"@{name}"), has_ports, local, *verdict]
        return
    if shape == "_port":
        yield [match({"concat": [daddr, dport]}, f"@{name}"), has_ports, *verdict]
        return
    yield [match(daddr, f"@{name}"), *verdict]
    if protocol == "ip6":
        site = {"&": [daddr, "ffff:ffff:ffff::"]}
        yield [match(daddr, {"prefix": {"addr": "2002::", "len": 16}}), match(site, f"@{name}"), *verdict]


def _rule(chain: str, *expressions: _Command) -> _Command:
    return {"add": {"rule": _ours(chain=chain, expr=list(expressions))}}


def _transaction(*commands: _Command) -> dict[str, Any]:
    return {"nftables": list(commands)}


def _in_table(transaction: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the transaction for another table of ours."""
    moved = []
    for command in transaction["nftables"]:
        ((verb, thing),) = command.items()
        ((kind, body),) = thing.items()
        moved.append({verb: {kind: body | {"table": name}}})
    return _transaction(*moved)
