"""Addresses of named servers: one canonical spelling, what is never learnt from an answer, and who has which for how long.

The resolver in kernel/ asks the questions and tells the time; this file only keeps the book. An address is dropped after
a later answer left it out for the time of grace; a failure drops nothing: policy never weakens because DNS failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Literal

from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.web.urls import DOTTED

Address = IPv4Address | IPv6Address
Kind = Literal["A", "AAAA"]
KINDS: tuple[Kind, ...] = ("A", "AAAA")

# Pools behind one name are known with hundreds of addresses, but an answer that brings thousands is an attack on our maps.
MAX_ADDRESSES_PER_NAME = 1024
# After a failure: 1, 2, 4 ... seconds of patience (times jitter), and never longer than this.
MAX_RETRY = 60.0

_MAPPED = 0xFFFF << 32
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052
_SIX_TO_FOUR = IPv6Network("2002::/16")  # RFC 3056
_LOW_32 = 0xFFFFFFFF

# This host under the one name that both planes look up, for each IP version.
LOOPBACKS = (IPv6Address(_MAPPED | 0x7F000001), IPv6Address(1))


def home(address: IPv6Address) -> IPv6Address:
    """Return where a canonical address leads: 127.0.0.0/8 and the unspecified addresses to this host's loopback."""
    number = int(address)
    if number >> 32 == 0xFFFF:
        return LOOPBACKS[0] if number >> 24 & 0xFF == 127 or number == _MAPPED else address
    return address if number else LOOPBACKS[1]


def canonical(address: Address) -> IPv6Address:
    """Return the 128-bit form that both planes look up: IPv4 as ::ffff:a.b.c.d, and what carries an IPv4 address as that one."""
    number = int(address)
    if isinstance(address, IPv4Address):
        return IPv6Address(_MAPPED | number)
    if address in _NAT64:
        return IPv6Address(_MAPPED | number & _LOW_32)
    if address in _SIX_TO_FOUR:
        return IPv6Address(_MAPPED | number >> 80 & _LOW_32)
    return IPv6Address(number)  # without the scope id


def plain(address: Address) -> Address:
    """Return IPv4 for an address that is an IPv4 one in disguise, for people and for the IPv4 sets."""
    return canonical(address).ipv4_mapped or address


def unmapped(address: Address) -> Address:
    """Return IPv4 for an IPv4-mapped address: Python 3.13 spells one otherwise than 3.11, and calls other ones loopback."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


# Of a policy of 10,000 servers (the file has room for no more) each host is read some eight times with every change.
@lru_cache(maxsize=1 << 14)
def literal(host: str) -> Address | None:
    """Return the address that `host` spells, or None for a name."""
    if ":" not in host and not host[-1:].isdigit():
        return None  # nearly every name, which took two exceptions to find out
    if DOTTED.fullmatch(host):
        return IPv4Address(bytes(map(int, host.split("."))))
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def refusal(address: Address, own: Collection[Address]) -> str:
    """Say why an answer must not teach us this address (rebinding), or nothing."""
    seen = plain(address)
    if seen in own:
        return "an address of this host"
    for kind in ("loopback", "link_local", "multicast", "unspecified"):
        if getattr(seen, f"is_{kind}"):
            return kind.replace("_", "-")
    if isinstance(seen, IPv4Address) and (int(seen) >> 24 == 0 or int(seen) == _LOW_32):
        return "this-network or broadcast"
    return ""


@dataclass(frozen=True, slots=True)
class NameState:
    """A name as `status` tells it. `age`: seconds since the last good answer, None before the first; `failures`: in a row."""

    addresses: tuple[Address, ...]
    hosts_file: tuple[Address, ...]
    age: float | None
    failure: str
    failures: int


@dataclass(slots=True)
class _Question:
    """What is known of one name and one record type. Times are the caller's seconds."""

    due: float
    kept_until: dict[Address, float] = field(default_factory=dict)
    failures: int = 0
    problem: str = ""  # of the last answer, empty where it was good
    answered: float | None = None  # when the last good answer came


@dataclass(slots=True)
class Book:
    """Names under watch. Every method that needs the time takes it; `jitter` is the caller's random number in [0, 1)."""

    settings: Resolve
    _hosts: dict[str, str] = field(default_factory=dict)  # server id -> host
    _questions: dict[tuple[str, Kind], _Question] = field(default_factory=dict)
    # Hosts file and literals: the operator's word.
    _given: dict[str, tuple[Address, ...]] = field(default_factory=dict)
    # What `known` said since it changed last.
    _sorted: dict[str, tuple[Address, ...]] = field(default_factory=dict)

    def watch(self, hosts: Mapping[str, str], now: float) -> None:
        """Watch exactly these (server id -> host). What is known of a name that stays is kept."""
        self._hosts = dict(hosts)
        names = {host for host in hosts.values() if literal(host) is None}
        self._questions = {k: q for k, q in self._questions.items() if k[0] in names}
        self._given = {host: a for host, a in self._given.items() if host in names}
        self._sorted = {host: a for host, a in self._sorted.items() if host in names}
        for name in names:
            for kind in KINDS:
                self._questions.setdefault((name, kind), _Question(due=now))

    def given(self, name: str, addresses: Iterable[Address]) -> None:
        """Take what the hosts file says of a name: it stands as long as the file says so, whatever the address."""
        said = tuple(addresses)
        if said != self._given.get(name, ()):
            self._given[name] = said
            self._sorted.pop(name, None)

    def recall(
        self, name: str, addresses: Iterable[Address], *, now: float, own: Collection[Address] = ()
    ) -> None:
        """Take what was known of a name before a restart: it stands until an answer, and for the time of grace after it."""
        for address in addresses:
            question = self._questions.get((name, "A" if address.version == 4 else "AAAA"))
            if question is not None and not refusal(address, own):
                question.kept_until.setdefault(address, now + self.settings.grace)
        self._sorted.pop(name, None)

    def learnt(self) -> dict[str, tuple[Address, ...]]:
        """Return what DNS has said of each name, sorted: what `recall` takes after a restart."""
        known: dict[str, set[Address]] = {}
        for (name, _), question in self._questions.items():
            known.setdefault(name, set()).update(question.kept_until)
        return {name: tuple(sorted(found, key=by_number)) for name, found in sorted(known.items()) if found}

    def names(self) -> set[str]:
        """Return the names under watch, without literals."""
        return {name for name, _ in self._questions}

    def due(self, now: float) -> list[tuple[str, Kind]]:
        """Return the questions to ask now, sorted."""
        return sorted(key for key, question in self._questions.items() if question.due <= now)

    def next_due(self) -> float | None:
        """Return when the next question is due, None while nothing is watched."""
        return min((question.due for question in self._questions.values()), default=None)

    def answered(
        self,
        key: tuple[str, Kind],
        addresses: Iterable[Address],
        *,
        ttl: float,
        now: float,
        jitter: float,
        own: Collection[Address] = (),
    ) -> list[str]:
        """Take an answer; return why some of its addresses were refused. An answer without a usable address is a failure."""
        question = self._questions.get(key)
        if question is None:
            return []  # no longer watched
        addresses = tuple(addresses)
        refused = [f"{a}: {why}" for a in addresses if (why := refusal(a, own))]
        learnt = [a for a in addresses if not refusal(a, own)]
        if not learnt:
            what = f"refused {'; '.join(refused)}" if refused else "no address"
            self.failed(key, what, now=now, jitter=jitter)
            return refused
        ttl = min(max(ttl, self.settings.min_ttl), self.settings.max_ttl)
        until, held = now + ttl + self.settings.grace, question.kept_until
        # Whoever heard a longer time to live goes by that.
        fresh = {a: max(held.get(a, 0.0), until) for a in learnt[:MAX_ADDRESSES_PER_NAME]}
        old = {a: until for a, until in held.items() if until > now and a not in fresh}
        latest = sorted(old, key=lambda a: old[a], reverse=True)[: MAX_ADDRESSES_PER_NAME - len(fresh)]
        if left_out := len({*learnt, *old}) - len(fresh) - len(latest):
            refused.append(f"{left_out} more: a name has room for {MAX_ADDRESSES_PER_NAME}")
        question.kept_until = fresh | {a: old[a] for a in latest}
        self._sorted.pop(key[0], None)
        # Up to a tenth early: names of one policy file do not ask in step.
        question.due = now + ttl * (1 - 0.1 * jitter)
        question.failures, question.problem, question.answered = 0, "", now
        return refused

    def also(
        self,
        name: str,
        addresses: Iterable[Address],
        *,
        ttl: float,
        now: float,
        own: Collection[Address] = (),
    ) -> bool:
        """Take an answer to somebody whom we asked for (the stub); say whether all of it that may be learnt found room."""
        stay = min(max(ttl, self.settings.min_ttl), self.settings.max_ttl) + self.settings.grace
        self._sorted.pop(name, None)
        for address in addresses:
            question = self._questions.get((name, "A" if address.version == 4 else "AAAA"))
            if question is None or refusal(address, own):
                continue
            held = question.kept_until
            if address not in held and len(held) >= MAX_ADDRESSES_PER_NAME:
                return False
            held[address] = max(held.get(address, 0.0), now + stay)
        return True

    def hasten(self, name: str, now: float) -> bool:
        """Make a name's questions due, but for those answered within min_ttl; say whether one is."""
        hastened = False
        for kind in KINDS:
            question = self._questions.get((name, kind))
            if question is None or (question.failures and question.due > now):
                continue  # patience after a failure is kept
            if question.answered is None or question.answered + self.settings.min_ttl <= now:
                question.due, hastened = min(question.due, now), True
        return hastened

    def ask_again(self, now: float) -> None:
        """Make every question due: other name servers may answer otherwise."""
        for question in self._questions.values():
            question.due = min(question.due, now)

    def failed(self, key: tuple[str, Kind], problem: str, *, now: float, jitter: float) -> None:
        """Take a failure: what was known stays, the question is asked again sooner than its TTL."""
        question = self._questions.get(key)
        if question is None:
            return
        patience = min(MAX_RETRY, float(1 << min(question.failures, 6)), max(1.0, self.settings.max_ttl))
        question.due = now + patience * (1 + jitter)
        question.failures += 1
        question.problem = problem

    def addresses(self) -> dict[str, tuple[Address, ...]]:
        """Return what each server is known by, sorted; a server whose name was never resolved has none."""
        return {server_id: self.known(host) for server_id, host in self._hosts.items()}

    def problems(self) -> dict[str, str]:
        """Return the names of which nothing at all is known, with the last failure of each record type."""
        return {
            name: "; ".join(
                f"{kind}: {self._questions[name, kind].problem or 'not asked yet'}" for kind in KINDS
            )
            for name in sorted(self.names())
            if not self.known(name)
        }

    def state(self, now: float) -> dict[str, NameState]:
        """Return what `status` tells of each name."""
        found = {}
        for name in sorted(self.names()):
            questions = [self._questions[name, kind] for kind in KINDS]
            answers = [q.answered for q in questions if q.answered is not None]
            failing = {k: q.problem for k, q in zip(KINDS, questions, strict=True) if q.problem}
            found[name] = NameState(
                addresses=self.known(name),
                hosts_file=self._given.get(name, ()),
                age=now - max(answers) if answers else None,
                failure="; ".join(f"{kind}: {problem}" for kind, problem in failing.items()),
                failures=max(q.failures for q in questions),
            )
        return found

    def known(self, host: str) -> tuple[Address, ...]:
        """Return what one watched host is known by, sorted."""
        found = self._sorted.get(host)
        if found is None:
            found = self._sorted[host] = self._known(host)
        return found

    def _known(self, host: str) -> tuple[Address, ...]:
        spelt = literal(host)
        if spelt is not None:
            return (spelt,)
        known = set(self._given.get(host, ()))
        for kind in KINDS:
            known |= self._questions[host, kind].kept_until.keys()
        return tuple(sorted(known, key=by_number))


def by_number(address: Address) -> tuple[int, int]:
    """Return what addresses are sorted by, IPv4 first."""
    return address.version, int(address)
