"""Asks DNS for every address of the declared servers, again and again by TTL, and tells when the known set changes.

What is kept, refused and for how long is core.addresses' business; this file has the clock, the questions and the waiting.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import dns.asyncresolver
import dns.exception

from agentsh_net.core.addresses import Address, Book, Kind, literal
from agentsh_net.core.settings import Resolve
from agentsh_net.kernel.address_memory import AddressMemory
from agentsh_net.kernel.hosts_file import HostsFile, is_localhost
from agentsh_net.kernel.own_addresses import own_addresses

# Seconds for one question with all its retries: a dead server must not hold a reload up for longer.
LIFETIME = 5.0
# Questions under way at once; a policy of thousands of names does not flood its own name server.
_PARALLEL = 32
_HOSTS_FILE_EVERY = 5.0
# Seconds until a name without a record of a kind is asked for that kind again.
_NO_RECORD_TTL = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What DNS said. No addresses is an answer too."""

    addresses: tuple[Address, ...]
    ttl: float


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
        own: Callable[[], Collection[Address]] = own_addresses,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Take the settings and the way to tell: `changed` is called with server id -> addresses whenever that mapping is no longer what it was."""
        self._book = Book(settings)
        self._changed = changed
        self._ask = ask or ask_dns
        self._hosts_file = hosts_file or HostsFile()
        self._memory = memory
        self._recalled: dict[str, tuple[Address, ...]] = memory.read() if memory else {}
        self._own, self._clock, self._jitter = own, clock, jitter
        self._places = asyncio.Semaphore(_PARALLEL)
        self._told: Mapping[str, tuple[Address, ...]] = {}
        self._woken = asyncio.Event()
        self._refused: dict[tuple[str, Kind], list[str]] = {}

    async def watch(self, hosts: Mapping[str, str]) -> dict[str, tuple[Address, ...]]:
        """Watch exactly these (server id -> host), ask for what is new, and return all that is known.

        Does not call `changed`: the caller is about to build its plan from what is returned.
        """
        self._book.watch(hosts, self._clock())
        self._refused = {key: why for key, why in self._refused.items() if key[0] in self._book.names()}
        self._hosts_file.refresh()
        self._take_hosts_file()
        self._recall()
        await self._ask_due()
        await self._remember()
        self._told = self._book.addresses()
        self._woken.set()
        return dict(self._told)

    async def run(self) -> None:
        """Keep what is known fresh until cancelled."""
        while True:
            await self._sleep()
            if self._hosts_file.refresh():
                self._take_hosts_file()
            await self._ask_due()
            self._tell()
            await self._remember()

    def addresses(self) -> dict[str, tuple[Address, ...]]:
        """Return what each server is known by now."""
        return self._book.addresses()

    def problems(self) -> dict[str, str]:
        """Return the names of which no address is known, and why."""
        return self._book.problems()

    @property
    def refused(self) -> dict[str, list[str]]:
        """Return name -> the addresses of its last answers that were not learnt, and why."""
        found: dict[str, list[str]] = {}
        for (name, _), reasons in self._refused.items():
            if reasons:
                found.setdefault(name, []).extend(reasons)
        return found

    def _tell(self) -> None:
        now = self._book.addresses()
        if now != self._told:
            self._told = now
            self._changed(now)

    def _take_hosts_file(self) -> None:
        for name in self._book.names():
            self._book.given(name, self._hosts_file.addresses(name))

    def _recall(self) -> None:
        """Take from the memory what is watched now; a name is taken once, for what DNS says since then is newer."""
        own = self._own() if self._recalled else ()
        for name in self._book.names() & self._recalled.keys():
            self._book.recall(name, self._recalled.pop(name), now=self._clock(), own=own)

    async def _remember(self) -> None:
        if self._memory is not None:
            await asyncio.to_thread(self._memory.write, self._book.learnt())

    async def _sleep(self) -> None:
        """Wait for the next question, the next look at the hosts file, or for new names."""
        due = self._book.next_due()
        wait = _HOSTS_FILE_EVERY if due is None else min(_HOSTS_FILE_EVERY, max(0.0, due - self._clock()))
        self._woken.clear()
        try:
            async with asyncio.timeout(
                wait
            ):  # not wait_for: before Python 3.12 it can swallow a cancellation
                await self._woken.wait()
        except TimeoutError:
            return

    async def _ask_due(self) -> None:
        due = self._book.due(self._clock())
        if due:
            own = self._own()
            await asyncio.gather(*(self._ask_one(name, kind, own) for name, kind in due))

    async def _ask_one(self, name: str, kind: Kind, own: Collection[Address]) -> None:
        async with self._places:
            try:
                answer = await self._ask(name, kind)
            except ResolveError as error:
                self._book.failed((name, kind), str(error), now=self._clock(), jitter=self._jitter())
                return
        refused = self._book.answered(
            (name, kind), answer.addresses, ttl=answer.ttl, now=self._clock(), jitter=self._jitter(), own=own
        )
        self._refused[name, kind] = refused


async def ask_dns(name: str, kind: Kind) -> Answer:
    """Ask the servers of /etc/resolv.conf, search list included, as the C library would. Raises ResolveError."""
    if is_localhost(name):
        return Answer((), _NO_RECORD_TTL)  # never a question for DNS (RFC 6761, 6.3)
    try:
        resolver = dns.asyncresolver.Resolver()
        answer = await resolver.resolve(name, kind, raise_on_no_answer=False, search=True, lifetime=LIFETIME)
    except (dns.exception.DNSException, OSError) as error:
        raise ResolveError(f"{type(error).__name__}: {error}") from error
    if answer.rrset is None:
        return Answer((), _NO_RECORD_TTL)
    addresses = (literal(record.to_text()) for record in answer.rrset)
    ttl = answer.chaining_result.minimum_ttl  # of the whole alias chain
    return Answer(tuple(a for a in addresses if a is not None), float(ttl))
