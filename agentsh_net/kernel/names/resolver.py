"""Asks DNS for every address of the declared servers, again and again by TTL, and tells when the known set changes.

What is kept, refused and for how long is core.network.addresses' business; this file has the clock, the questions and the waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address
from itertools import islice

import dns.exception

from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.network import nat64
from agentsh_net.core.network.addresses import Address, Book, Kind, NameState, canonical, literal, refusal
from agentsh_net.core.network.dns_message import Ascribed, WireName, wire_name
from agentsh_net.core.network.hearsay import CAPS, Hearsay, Source
from agentsh_net.kernel import boot_clock
from agentsh_net.kernel.names import multicast_dns
from agentsh_net.kernel.names.address_memory import AddressMemory
from agentsh_net.kernel.names.hosts_file import HostsFile, is_localhost
from agentsh_net.kernel.names.name_servers import NameServers, failure
from agentsh_net.kernel.names.own_addresses import own_addresses

# Seconds for one question with all its retries: a dead server must not hold a reload up for longer.
LIFETIME = 5.0
# Questions under way at once; a policy of thousands of names does not flood its own name server.
_PARALLEL = 32
_HOSTS_FILE_EVERY = 5.0
# How often (seconds) it is asked whether this network has an IPv6 translator: about as often as a machine changes networks.
_TRANSLATORS_EVERY = 300.0
# Of one server: what a chain may have, twice. The planes have room for 16,384 names.
_MOST_ALIASES = 32
# Seconds until a name without a record of a kind is asked for that kind again.
_NO_RECORD_TTL = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What DNS said. No addresses is an answer too. `aliases`: the names that led to them (CNAME)."""

    addresses: tuple[Address, ...]
    ttl: float
    aliases: tuple[str, ...] = ()


Ask = Callable[[str, Kind], Awaitable[Answer]]
Changed = Callable[[Mapping[str, Sequence[Address]]], None]


class ResolveError(Exception):
    """A question that got no answer."""


class Resolver:
    """Watches the names of the declared servers."""

    def __init__(
        self,
        settings: Resolve,
        *,
        changed: Changed,
        ask: Ask | None = None,
        hosts_file: HostsFile | None = None,
        memory: AddressMemory | None = None,
        overheard: AddressMemory | None = None,
        own: Callable[[], Collection[Address]] = own_addresses,
        name_servers: NameServers | None = None,
        clock: Callable[[], float] = boot_clock.seconds,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Take the settings and the way to tell: `changed` is called with server id -> addresses whenever that mapping is no longer what it was."""
        self._book, self._settings = Book(settings), settings
        self._changed = changed
        self._hearsay = Hearsay(settings)
        self._servers = name_servers or NameServers()
        self._ask = ask or partial(ask_dns, servers=self._servers)
        self._hosts_file = hosts_file or HostsFile()
        self._memory = memory
        self._recalled: dict[str, tuple[Address, ...]] = memory.read() if memory else {}
        # What DNS said of the translators' name last, what it means, and when to ask again.
        self._translated: tuple[Address, ...] = self._recalled.pop(nat64.NAME, ())
        self._prefixes = nat64.prefixes(self._translated)
        self._translators_due = -1.0
        # Apart from the other one: what was hearsay does not become our own answer by a restart.
        self._overheard = overheard
        self._heard_before: dict[str, tuple[Address, ...]] = overheard.read() if overheard else {}
        self._own, self._clock, self._jitter = own, clock, jitter
        self._places = asyncio.Semaphore(_PARALLEL)
        self._own_known: Collection[Address] = ()
        self._own_until = -1.0
        self._wire: dict[WireName, str] = {}
        self._hosts: Mapping[str, str] = {}
        self._woken = asyncio.Event()
        self._refused: dict[tuple[str, Kind], list[str]] = {}
        self._aliases: dict[str, dict[str, float]] = {}  # and until when each counts
        self._told: tuple[object, ...] = ()
        self._asked_of: tuple[Collection[Address], tuple[str, ...]] | None = None

    async def watch(self, hosts: Mapping[str, str]) -> dict[str, tuple[Address, ...]]:
        """Watch exactly these (server id -> host), ask for what is new, and return all that is known.

        Does not call `changed`: the caller is about to build its plan from what is returned.
        """
        self._hosts = dict(hosts)
        self._book.watch(hosts, self._clock())
        self._hearsay.keep(self._book.names())
        self._wire = dict(self._on_the_wire())
        self._refused = {key: why for key, why in self._refused.items() if key[0] in self._book.names()}
        self._aliases = {name: them for name, them in self._aliases.items() if name in self._book.names()}
        self._hosts_file.refresh()
        self._take_hosts_file()
        self._recall()
        await self._ask_due()
        await self._remember()
        known = self.addresses()
        self._told = self._all_of(known)
        self._woken.set()
        return known

    async def run(self) -> None:
        """Keep what is known fresh until cancelled."""
        await self._ask_for_translators()
        self._tell()
        while True:
            await self._sleep()
            if self._hosts_file.refresh():
                self._take_hosts_file()
            self._hearsay.expire(self._clock())
            self._follow_name_servers()
            await asyncio.gather(self._ask_due(), self._ask_for_translators())
            self._tell()
            await self._remember()

    def addresses(self) -> dict[str, tuple[Address, ...]]:
        """Return what each server is known by now, in the spellings of this network's translators too."""
        return {key: self._spelled_out(found) for key, found in self._book.addresses().items()}

    def hearsay(self) -> dict[str, tuple[Address, ...]]:
        """Return what was overheard of each server's name and may be refused (core.network.hearsay)."""
        known = self._hearsay.known()
        return {
            key: self._spelled_out(tuple(known[host])) for key, host in self._hosts.items() if host in known
        }

    def aliases(self) -> dict[str, frozenset[str]]:
        """Return by which other names servers were found: who answers by a server's own may answer by them too."""
        return {
            key: frozenset(found) for key, host in self._hosts.items() if (found := self._aliases.get(host))
        }

    def own(self) -> frozenset[IPv6Address]:
        """Return this host's addresses as the planes look them up: not those of a link, which come and go with containers."""
        return frozenset(canonical(a) for a in self._own_lately() if not (a.is_link_local or a.is_loopback))

    def name_servers(self) -> frozenset[IPv6Address]:
        """Return this system's name servers as the planes look them up."""
        return frozenset(map(canonical, self._servers.addresses()))

    def wire_names(self) -> Collection[WireName]:
        """Return the names under watch as they stand in a DNS message."""
        return self._wire.keys()

    def overheard(self, said: Mapping[WireName, Ascribed], sender: Address) -> bool:
        """Take an answer to somebody else; say whether it brought an address that nobody knew of its name."""
        source = Source.RESOLVER if self._servers.has(sender) else Source.STRANGER
        new = False
        for wire, answer in said.items():
            name = self._wire[wire]
            unknown = {*answer.addresses} - {*self._book.known(name)}
            own = {*self._own_lately(), *self._servers.addresses()} if unknown else set()
            # As many as one name can have room for: looking at more is work that a forger would have us do.
            candidates = islice((a for a in answer.addresses if a in unknown), CAPS[Source.RESOLVER])
            found = [a for a in candidates if not refusal(a, own)]
            if self._hearsay.heard(name, found, ttl=answer.ttl, source=source, now=self._clock()):
                new = True
        if new:
            self._tell()
        return new

    def released(self, said: Mapping[WireName, Ascribed]) -> bool:
        """Take an answer that our stub got from our name servers; say whether all of it is known now."""
        own, now = self._own(), self._clock()
        known = [
            self._book.also(self._wire[wire], answer.addresses, ttl=answer.ttl, now=now, own=own)
            for wire, answer in said.items()
            if wire in self._wire
        ]
        self._tell()
        return all(known)

    def ask_soon(self, names: Collection[WireName]) -> None:
        """Ask for these at once, where they were not asked for just now: somebody else got an answer that we may not have."""
        now = self._clock()
        hastened = [self._book.hasten(self._wire[wire], now) for wire in names if wire in self._wire]
        if any(hastened):
            self._woken.set()

    def names(self) -> dict[str, NameState]:
        """Return what is known of each name, for people."""
        return self._book.state(self._clock())

    def heard(self) -> dict[str, dict[Address, Source]]:
        """Return what was overheard of each name, and from whom."""
        return self._hearsay.known()

    @property
    def unheard(self) -> int:
        """Return how many overheard addresses found no room."""
        return self._hearsay.over

    def problems(self) -> dict[str, str]:
        """Return the names of which no address is known, and why; neighbours' names are nobody else's to know."""
        heard = {name for name in self._hearsay.known() if multicast_dns.is_local(name)}
        return {name: why for name, why in self._book.problems().items() if name not in heard}

    @property
    def refused(self) -> dict[str, list[str]]:
        """Return name -> the addresses of its last answers that were not learnt, and why."""
        found: dict[str, list[str]] = {}
        for (name, _), reasons in self._refused.items():
            if reasons:
                found.setdefault(name, []).extend(reasons)
        return found

    def _tell(self) -> None:
        known = self.addresses()
        if (now := self._all_of(known)) != self._told:
            self._told = now
            self._changed(known)

    def _all_of(self, known: Mapping[str, Sequence[Address]]) -> tuple[object, ...]:
        """Return all that a plan is made of."""
        return known, self.hearsay(), self.own(), self.name_servers(), self.aliases()

    def _take_hosts_file(self) -> None:
        for name in self._book.names():
            self._book.given(name, self._hosts_file.addresses(name))

    def _own_lately(self) -> Collection[Address]:
        """Return this host's addresses as they were a second ago at most: who sends answers does not have us ask each time."""
        now = self._clock()
        if now >= self._own_until:
            self._own_known, self._own_until = self._own(), now + 1.0
        return self._own_known

    def _on_the_wire(self) -> Iterator[tuple[WireName, str]]:
        """Yield every name that a question for a watched one may have: with the search list, as the C library tries it."""
        for name in self._book.names():
            for suffix in ("", *self._servers.search()):
                try:
                    yield wire_name(f"{name}.{suffix}"), name
                except ProtocolError:
                    continue  # too long: then nobody can ask for it

    def _recall(self) -> None:
        """Take from the memory what is watched now; a name is taken once, for what DNS says since then is newer."""
        own = self._own() if self._recalled or self._heard_before else ()
        for name in self._book.names() & self._recalled.keys():
            self._book.recall(name, self._recalled.pop(name), now=self._clock(), own=own)
        for name in self._book.names() & self._heard_before.keys():
            found = [a for a in self._heard_before.pop(name) if not refusal(a, own)]
            self._hearsay.heard(name, found, ttl=0, source=Source.RESOLVER, now=self._clock())

    async def _remember(self) -> None:
        if self._memory is not None:
            learnt = {**self._book.learnt(), nat64.NAME: self._translated}
            await asyncio.to_thread(
                self._memory.write, {name: found for name, found in learnt.items() if found}
            )
        if self._overheard is not None:
            known = self._hearsay.known()
            told = {n: tuple(a for a, s in held.items() if s is Source.RESOLVER) for n, held in known.items()}
            await asyncio.to_thread(self._overheard.write, told)

    async def _sleep(self) -> None:
        """Wait for the next question, the next look at the hosts file, or for new names."""
        due = self._book.next_due()
        wait = _HOSTS_FILE_EVERY if due is None else min(_HOSTS_FILE_EVERY, max(0.0, due - self._clock()))
        self._woken.clear()
        try:
            # Not wait_for: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(wait):
                await self._woken.wait()
        except TimeoutError:
            return

    def _follow_name_servers(self) -> None:
        """Ask anew when the name servers are others (a VPN, another network): what they answer may be something else."""
        before, self._asked_of = self._asked_of, (self._servers.addresses(), self._servers.search())
        if before not in {None, self._asked_of}:
            self._wire = dict(self._on_the_wire())
            self._translators_due = -1.0
            self._book.ask_again(self._clock())

    async def _ask_due(self) -> None:
        due = self._book.due(self._clock())
        if due:
            own = self._own()
            await asyncio.gather(*(self._ask_one(name, kind, own) for name, kind in due))

    async def _ask_for_translators(self) -> None:
        """Ask by which prefixes this network translates (RFC 7050); what was known stays where nobody answers."""
        if not self._hosts or self._clock() < self._translators_due:
            return
        self._translators_due = self._clock() + _TRANSLATORS_EVERY
        with contextlib.suppress(ResolveError):
            self._translated = (await self._ask(nat64.NAME, "AAAA")).addresses
            self._prefixes = nat64.prefixes(self._translated)

    def _spelled_out(self, found: tuple[Address, ...]) -> tuple[Address, ...]:
        return nat64.spelled_out(found, self._prefixes) if self._prefixes else found

    async def _ask_one(self, name: str, kind: Kind, own: Collection[Address]) -> None:
        async with self._places:
            if multicast_dns.is_local(name):
                await self._ask_neighbours(name, kind, own)
            try:
                answer = await self._ask(name, kind)
            except ResolveError as error:
                self._book.failed((name, kind), str(error), now=self._clock(), jitter=self._jitter())
                return
        refused = self._book.answered(
            (name, kind), answer.addresses, ttl=answer.ttl, now=self._clock(), jitter=self._jitter(), own=own
        )
        self._refused[name, kind] = refused
        if answer.addresses:
            self._keep_aliases(name, answer)

    def _keep_aliases(self, name: str, answer: Answer) -> None:
        """Keep them as long as addresses: names that take turns are all the server's."""
        now, settings = self._clock(), self._settings
        until = now + min(max(answer.ttl, settings.min_ttl), settings.max_ttl) + settings.grace
        held = {alias: end for alias, end in self._aliases.get(name, {}).items() if end > now}
        held |= dict.fromkeys(answer.aliases, until)
        latest = sorted(held, key=lambda alias: held[alias], reverse=True)[:_MOST_ALIASES]
        self._aliases[name] = {alias: held[alias] for alias in latest}

    async def _ask_neighbours(self, name: str, kind: Kind, own: Collection[Address]) -> None:
        """Take what neighbours say of a name as hearsay: any of them, a container too, may say what it likes."""
        servers = self._servers.addresses()
        for said in await asyncio.to_thread(multicast_dns.ask, name, kind, own):
            found = [a for a in said.addresses if not refusal(a, {*own, *servers})]
            self._hearsay.heard(name, found, ttl=said.ttl, source=Source.NEIGHBOUR, now=self._clock())


async def ask_dns(name: str, kind: Kind, servers: NameServers | None = None) -> Answer:
    """Ask the servers of /etc/resolv.conf, search list included, as the C library would. Raises ResolveError."""
    if is_localhost(name):
        return Answer((), _NO_RECORD_TTL)  # never a question for DNS (RFC 6761, 6.3)
    try:
        resolver = (servers or NameServers()).resolver()
        answer = await resolver.resolve(name, kind, raise_on_no_answer=False, search=True, lifetime=LIFETIME)
    except (dns.exception.DNSException, OSError) as error:
        raise ResolveError(failure(error)) from error
    # dnspython waits with wait_for, which before Python 3.12 swallows a cancellation that comes with the answer.
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError
    if answer.rrset is None:
        return Answer((), _NO_RECORD_TTL)
    addresses = (literal(record.to_text()) for record in answer.rrset)
    chain = answer.chaining_result
    # To the name with the addresses; that of the question may have the search list's end.
    leading = [alias.name for alias in chain.cnames] + [chain.canonical_name]
    aliases = tuple(n.to_text(omit_final_dot=True).lower() for n in leading if n != answer.qname)
    return Answer(tuple(a for a in addresses if a is not None), float(chain.minimum_ttl), aliases)
