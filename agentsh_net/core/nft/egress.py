"""The rules by which sessions reach only what is declared (`Plan.egress`): whose packets, what is declared, what becomes of the rest.

Packets of this namespace's own sockets alone, by the address that their sender wrote: what is forwarded tells no session.
Before the translation of addresses, so that a published port or a Service of this host is what it is declared as. Behind
them come the lookups of denials, which hold whatever is declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from agentsh_net.core.network.plane import Egress, Plan, Prefix
from agentsh_net.core.nft import verdicts as nft_verdicts
from agentsh_net.core.nft.sockets import Sockets
from agentsh_net.core.nft.verdicts import Expressions, match

# The chain on the hook; what is declared; what becomes of what is not.
BASE, DECLARED, UNDECLARED = "egress", "declared", "undeclared"
PRIORITY = -109  # behind what denies by the address that was written (-110), before DNAT (-100)

# Of the kernel's own: neighbours, routers and groups of the link (RFC 4861, RFC 2710, RFC 3810), and IGMP.
_LINK_MESSAGES = [130, 131, 132, 133, 134, 135, 136, 143]
_IGMP, _ICMP6 = 2, 58
_MAPPED = IPv6Network("::ffff:0:0/96")
_RETURN: dict[str, Any] = {"return": None}


def chains(plan: Plan) -> tuple[str, ...]:
    """Return the chains, but for the one on the hook."""
    return (DECLARED, UNDECLARED) if plan.egress is not None else ()


def rules(
    plan: Plan, used: frozenset[str], ports: list[int], nflog_group: int, sockets: Sockets
) -> Iterator[tuple[str, Expressions]]:
    """Yield (chain, rule). `used`: the sets that have elements; `ports`: the protocols that have ports."""
    if plan.egress is None:
        return
    yield from ((BASE, e) for e in _whose(plan.egress, sockets))
    has_ports = match({"meta": {"key": "l4proto"}}, {"set": ports})
    yield DECLARED, [match({"meta": {"key": "oif"}}, "lo"), _RETURN]
    yield from ((DECLARED, e) for name in sorted(used) for e in _in_set(name, has_ports))
    yield from ((DECLARED, e) for prefix in plan.egress.prefixes for e in _in_prefix(prefix, has_ports))
    yield DECLARED, [{"goto": {"target": UNDECLARED}}]
    act = nft_verdicts.refuse if plan.egress.refuse else nft_verdicts.tag
    unmarked = replace(plan, mark=0)
    yield from ((UNDECLARED, e) for e in act(unmarked, nflog_group, sockets, undeclared=True))


def _whose(egress: Egress, sockets: Sockets) -> Iterator[Expressions]:
    judged = {"goto": {"target": DECLARED}}
    if not egress.everybody:
        yield from ([its, judged] for its in sockets.of_sessions())
        return
    yield from ([its, _RETURN] for its in sockets.of_workers())
    # A process holds the socket: then it is no message of the kernel's own, whatever its type is.
    yield [match({"meta": {"key": "skuid"}}, 0, op=">="), judged]
    kind = {"payload": {"protocol": "icmpv6", "field": "type"}}
    yield [match({"meta": {"key": "l4proto"}}, _ICMP6), match(kind, {"set": _LINK_MESSAGES}), _RETURN]
    yield [match({"meta": {"key": "l4proto"}}, _IGMP), _RETURN]
    yield [judged]


def _in_set(name: str, has_ports: dict[str, Any]) -> Iterator[Expressions]:
    """Yield what looks into a set of declared endpoints."""
    if name in {"allow4_port", "allow6_port"}:
        daddr, dport = _daddr(4 if "4" in name else 6), {"payload": {"protocol": "th", "field": "dport"}}
        yield [has_ports, match({"concat": [daddr, dport]}, f"@{name}"), _RETURN]
    elif name in {"allow4", "allow6"}:
        daddr = _daddr(4 if "4" in name else 6)
        yield [match(daddr, f"@{name}"), _RETURN]
        if "6" in name:
            site = {"&": [daddr, "ffff:ffff:ffff::"]}
            yield [match(daddr, _network("2002::", 16)), match(site, f"@{name}"), _RETURN]


def _in_prefix(prefix: Prefix, has_ports: dict[str, Any]) -> Iterator[Expressions]:
    """Yield what compares with a prefix, in every form in which packets may carry it (`sets.spellings`)."""
    dport = {"payload": {"protocol": "th", "field": "dport"}}
    port = [has_ports, match(dport, prefix.port)] if prefix.port else []
    for network in _spellings(prefix.network):
        right = _network(str(network.network_address), network.prefixlen)
        yield [match(_daddr(network.version), right), *port, _RETURN]


def _spellings(network: IPv6Network) -> Iterator[IPv4Network | IPv6Network]:
    if not network.subnet_of(_MAPPED):
        yield network
        return
    v4, bits = int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96
    yield IPv4Network((v4, bits))
    yield IPv6Network((0x64FF9B << 96 | v4, 96 + bits))  # NAT64, RFC 6052
    yield IPv6Network((0x2002 << 112 | v4 << 80, 16 + bits))  # 6to4, RFC 3056


def _daddr(version: int) -> dict[str, Any]:
    return {"payload": {"protocol": "ip" if version == 4 else "ip6", "field": "daddr"}}


def _network(address: str, bits: int) -> dict[str, Any]:
    return {"prefix": {"addr": address, "len": bits}}
