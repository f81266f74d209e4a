"""What of a plan stands in which set of the table `inet agentsh_net`: names, types, elements, and the keys the kernel holds.

A set is named fate (`allow`: what sessions may reach), IP version, shape: `deny4` has whole addresses, `deny4_port` an address with a port, `deny4_here` ports
of this host, whichever of its addresses is used. What ends in `_llm` does not concern our own proxy. The rules that look into them are `ruleset`'s business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address

from agentsh_net.core.network.addresses import LOOPBACKS
from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import Endpoint, Fate, Plan, Rule

TYPES: Mapping[str, str | list[str]] = {
    f"{fate}{version}{shape}{whose}": kinds
    for fate in (Fate.DENY, Fate.TAG)
    for version, kind in ((4, "ipv4_addr"), (6, "ipv6_addr"))
    for shape, kinds in (("", kind), ("_port", [kind, "inet_service"]), ("_here", "inet_service"))
    for whose in ("", "_llm")
    if (fate, shape) != (Fate.TAG, "_here") and (shape, whose) != ("", "_llm")
} | {
    f"{Fate.ALLOW}{version}{shape}": kinds
    for version, kind in ((4, "ipv4_addr"), (6, "ipv6_addr"))
    for shape, kinds in (("", kind), ("_port", [kind, "inet_service"]))
}
SIX_TO_FOUR = b"\x20\x02"  # 2002::/16, RFC 3056
_NAT64 = b"\x00\x64\xff\x9b" + bytes(8)  # 64:ff9b::/96, RFC 6052
_MAPPED = bytes(10) + b"\xff\xff"
_LEAST_SIZE = 256  # 4 KiB of the kernel's
_UNPRINTED = re.compile(r"[^A-Za-z0-9._:/-]")
_MAX_COMMENT = 100  # bytes; the kernel's user data for an element ends at 128

Element = tuple[str, str, int]  # set, address or nothing, port or 0


@dataclass(frozen=True, slots=True)
class Room:
    """How many elements each set of a table has, and how many it was made for."""

    held: Counter[str]
    sizes: Mapping[str, int]

    @property
    def used(self) -> frozenset[str]:
        """The sets that have elements."""
        return frozenset(name for name, count in self.held.items() if count)

    def more(self, added: Iterable[Element]) -> Room:
        """Return it with elements that come; a set that they do not fit into is made for twice as many."""
        held = self.held + Counter(name for name, _, _ in added)
        return Room(held, {n: most if held[n] <= most else size(held[n]) for n, most in self.sizes.items()})

    def less(self, gone: Iterable[Element]) -> Room:
        """Return it without elements that go."""
        return Room(self.held - Counter(name for name, _, _ in gone), self.sizes)


def version(name: str) -> int:
    """Return the IP version of a set's packets."""
    return 4 if "4" in name else 6


def shape(name: str) -> str:
    """Return what a set's elements are: nothing (addresses), `_port` or `_here`."""
    return name.removesuffix("_llm")[5 if name.startswith(Fate.DENY) else 4 :]


def unless_ours(name: str) -> bool:
    """Say whether our own proxy is exempt from what a set says."""
    return name.endswith("_llm")


def size(count: int) -> int:
    """Return how many elements a set is made for that has so many: what grows past it is made anew.

    A set of a known size is looked into sooner; twice as many, because a change adds before it deletes.
    """
    return max(_LEAST_SIZE, 1 << (2 * count).bit_length())


def spellings(address: IPv6Address, *, with_port: bool) -> Iterator[tuple[int, bytes]]:
    """Yield every form in which packets may carry a canonical address, with its IP version."""
    packed = address.packed
    if not packed.startswith(_MAPPED):
        yield 6, packed
        return
    v4 = packed[12:]
    yield 4, v4
    yield 6, _NAT64 + v4
    if not with_port:  # looked up under a /48 mask, which a set with ports cannot be
        yield 6, SIX_TO_FOUR + v4 + bytes(10)


def elements(rules: Mapping[Endpoint, Rule]) -> Iterator[tuple[Element, str]]:
    """Yield every element of these rules with its comment."""
    for endpoint, rule in rules.items():
        note = comment((*rule.server_ids, *rule.providers) or ("declared",))
        for name, packed in _places(endpoint, rule):
            yield (name, _text(packed), endpoint.port), note


def keys(plan: Plan) -> dict[str, set[bytes]]:
    """Return what each set holds when `plan` is in force, as the kernel tells it: every field padded to words of 32 bits."""
    found: dict[str, set[bytes]] = {name: set() for name in TYPES}
    for endpoint, rule in plan.rules.items():
        port = endpoint.port.to_bytes(2, "big") + bytes(2) if endpoint.port else b""
        for name, packed in _places(endpoint, rule):
            found[name].add(packed + port)
    return found


def room(rules: Mapping[Endpoint, Rule]) -> Room:
    """Return that of a table which is made for these rules."""
    held = Counter(name for endpoint, rule in rules.items() for name, _ in _places(endpoint, rule))
    return Room(held, {name: size(held[name]) for name in TYPES})


def steps(old: Plan, step: Diff) -> tuple[dict[Element, str], dict[Element, str], dict[Element, str]]:
    """Return the elements (with comments) that are fresh, that only change their comment, and that are gone."""
    touched = {e: old.rules[e] for e in (*step.adds, *step.deletes) if e in old.rules}
    before, after = dict(elements(touched)), dict(elements(step.adds))
    fresh = {e: note for e, note in after.items() if e not in before}
    renamed = {e: note for e, note in after.items() if before.get(e, note) != note}
    return fresh, renamed, {e: note for e, note in before.items() if e not in after}


def comment(server_ids: Iterable[str]) -> str:
    """Return the server ids as an element's comment: printable, without quotes, bounded."""
    text = ",".join(_UNPRINTED.sub("?", s) for s in server_ids)
    return text if len(text) <= _MAX_COMMENT else text[: _MAX_COMMENT - 3] + "..."


def _text(packed: bytes) -> str:
    """Return an address as `ipaddress` would write it; the forms of IPv4 without its help, which takes five times as long."""
    match len(packed):
        case 0:
            return ""
        case 4:
            return f"{packed[0]}.{packed[1]}.{packed[2]}.{packed[3]}"
    if packed.startswith(_NAT64) and packed[12:14] != bytes(2):
        return f"64:ff9b::{packed[12] << 8 | packed[13]:x}:{packed[14] << 8 | packed[15]:x}"
    if packed.startswith(SIX_TO_FOUR) and packed.endswith(bytes(10)) and packed[4:6] != bytes(2):
        return f"2002:{packed[2] << 8 | packed[3]:x}:{packed[4] << 8 | packed[5]:x}::"
    return str(IPv6Address(packed))


def _places(endpoint: Endpoint, rule: Rule) -> Iterator[tuple[str, bytes]]:
    """Yield set and address of every element of one rule; no address where the set has ports alone."""
    if rule.declared:
        yield from _spelt(endpoint, Fate.ALLOW, "")
    if rule.fate is Fate.ALLOW:
        return
    whose = "_llm" if rule.unless_ours else ""
    if rule.fate is Fate.DENY and endpoint.port and endpoint.address in LOOPBACKS:
        yield f"{rule.fate}{4 if endpoint.address.ipv4_mapped else 6}_here{whose}", b""
        return
    yield from _spelt(endpoint, rule.fate, whose)


def _spelt(endpoint: Endpoint, fate: Fate, whose: str) -> Iterator[tuple[str, bytes]]:
    ports = "_port" if endpoint.port else ""
    for number, packed in spellings(endpoint.address, with_port=bool(ports)):
        yield f"{fate}{number}{ports}{whose}", packed
