"""One table of ours as the kernel has it, asked by netlink: is it there, is it what we made, what does it hold.

Changes nothing. Nothing is believed because it was so a moment ago: only where the kernel says that nobody has committed
anything since (its generation) does an earlier look stand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from agentsh_net.core.abi import netlink
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.kernel.netlink import Netlink, missing

# Looking through every element takes at most one part in so many of the time: 100,000 of them take some 0.2 s.
_SHARE = 20
_WALKS = 5  # resizes end within milliseconds; where one does not, the last walk counts
_FAMILIES = {nft_dump.INET: "inet", nft_dump.NETDEV: "netdev"}


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything of a table but its elements and counters: equal only where nobody put something else in its place."""

    table: nft_dump.Table
    chains: tuple[nft_dump.Chain, ...]
    rules: tuple[tuple[str, int], ...]
    sets: tuple[tuple[str, int], ...]


class Table:
    """A table by family and name, in the network namespace of the connection."""

    def __init__(self, connection: Netlink, family: int, name: str) -> None:
        self._netlink = connection
        self._family = family
        self._name = name

    @property
    def name(self) -> str:
        """Family and name, as nft writes them."""
        return f"{_FAMILIES[self._family]} {self._name}"

    @property
    def plain_name(self) -> str:
        """The name without the family."""
        return self._name

    @property
    def family(self) -> int:
        """The family's number (NFPROTO_*)."""
        return self._family

    def generation(self) -> int:
        """Return the count of commits in this namespace, ours and others'. Raises OSError."""
        answers = self._netlink.ask(nft_dump.GET_GENERATION, nft_dump.request(self._family))
        return nft_dump.generation(answers[0].body)

    def found(self) -> nft_dump.Table | None:
        """Return the table, None where it is not there. Raises OSError."""
        try:
            answers = self._netlink.ask(nft_dump.GET_TABLE, nft_dump.request(self._family, table=self._name))
        except OSError as error:
            if missing(error):
                return None
            raise
        return nft_dump.table(answers[0].body) if answers else None

    def standing(self) -> Standing | None:
        """Return what stands, None where the table is not there. Raises OSError."""
        table = self.found()
        if table is None:
            return None
        return Standing(
            table=table,
            chains=self.chains(),
            rules=tuple(map(nft_dump.rule, self._dump(nft_dump.GET_RULE))),
            sets=tuple(map(nft_dump.name_of_set, self._dump(nft_dump.GET_SET))),
        )

    def chains(self) -> tuple[nft_dump.Chain, ...]:
        """Return the chains. Raises OSError."""
        return tuple(map(nft_dump.chain, self._dump(nft_dump.GET_CHAIN)))

    def stands(self) -> bool:
        """Say whether packets come to it: one that was only made, and not filled, has no hooks. Raises OSError."""
        return any(chain.hooked for chain in self.chains())

    def elements(self, name: str) -> set[bytes]:
        """Return the keys of a set. Raises OSError.

        A walk during which the kernel resized its table tells some twice and misses others, and is made again.
        """
        request = nft_dump.request(self._family, table=self._name, set=name)
        found: set[bytes] = set()
        for _ in range(_WALKS):
            answers = self._netlink.ask(nft_dump.GET_ELEMENT, request, flags=netlink.DUMP)
            told = [key for message in answers for key in nft_dump.keys(message.body)]
            found = set(told)
            if len(found) == len(told):
                break
        return found

    def counters(self) -> dict[str, int]:
        """Return the packets of the named counters. Raises OSError."""
        return dict(map(nft_dump.counter, self._dump(nft_dump.GET_OBJECT)))

    def _dump(self, kind: int) -> list[bytes]:
        """Return every object of a kind in this table: the kernel tells those of other tables too where it does not filter."""
        request = nft_dump.request(self._family, table=self._name)
        answers = self._netlink.ask(kind, request, flags=netlink.DUMP)
        return [
            message.body
            for message in answers
            if message.body[0] == self._family
            and netlink.text(nft_dump.fields(message.body).get(1, b"")) == self._name
        ]


def _difference(ours: Standing, found: Standing) -> str:
    """Say what is not as it was made. Devices are left out: they come and go without anybody's doing."""
    chains = {
        c.name
        for c in found.chains
        if c.hooked or not next((o.hooked for o in ours.chains if o.name == c.name), False)
    }
    for name in (c.name for c in ours.chains):
        if name not in chains:
            return f"chain {name} is missing"
        has, had = (sum(chain == name for chain, _ in one.rules) for one in (found, ours))
        if has != had:
            return f"chain {name}: {has} rules, expected {had}"
    same = {(c.name, c.handle) for c in ours.chains} == {(c.name, c.handle) for c in found.chains}
    if same and set(ours.rules) == set(found.rules) and set(ours.sets) == set(found.sets):
        return ""
    return "its rules are not those that were made"


class Commits:
    """Counts how often somebody else committed anything in this namespace; our own commits are told to it."""

    def __init__(self, table: Table) -> None:
        """Begin to count. Raises OSError."""
        self._table = table
        self._generation = table.generation()
        self._foreign = 0

    def foreign(self) -> int:
        """Return the count up to now. Raises OSError."""
        now = self._table.generation()
        if now != self._generation:
            self._generation, self._foreign = now, self._foreign + 1
        return self._foreign

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Do one commit of ours within; one of somebody else's at that very moment counts as theirs. Raises OSError."""
        self.foreign()
        expected = self._generation + 1
        yield
        now = self._table.generation()
        if now != expected:
            self._foreign += 1
        self._generation = now


class Contents:
    """Whether a table is what we made it: looked through whole after somebody else's commit, else known.

    Looking through is bounded to a twentieth of the time, however often others commit; `age` says how old the last look is.
    """

    def __init__(
        self, table: Table, commits: Commits, keys: Callable[[Plan], Mapping[str, AbstractSet[bytes]]]
    ) -> None:
        self._table = table
        self._commits = commits
        self._keys = keys
        self._standing: Standing | None = None
        self._confirmed: int | None = None  # others' commits when it was looked through last, None: never
        self._looked_at, self._took = 0.0, 0.0
        self._wrong = ""  # what the last look through the elements found; stands until the next one, or until it is made anew

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the table anew within. Raises OSError."""
        before = self._commits.foreign()
        yield
        self._standing, self._confirmed, self._wrong = self._table.standing(), before, ""

    @contextmanager
    def rules_changed(self) -> Iterator[None]:
        """Make the table's rules anew within, and elements as may be. Raises OSError."""
        yield
        self._standing = self._table.standing()

    def why_not(self, plan: Plan) -> str:
        """Say what is not as `plan` wants it and we made it. Raises OSError."""
        others = self._commits.foreign()
        if others == self._confirmed:
            return ""
        if reason := self._skeleton():
            return reason
        now = time.monotonic()
        if now - self._looked_at < self._took * _SHARE:
            return self._wrong  # where that is nothing it is not confirmed either: `age` tells
        self._wrong = self._elements(plan)
        self._took, self._looked_at = time.monotonic() - now, time.monotonic()
        if not self._wrong:
            self._confirmed = others
        return self._wrong

    def age(self) -> float | None:
        """Return how many seconds ago the elements were confirmed, None where nobody touched anything since."""
        return None if self._commits.foreign() == self._confirmed else time.monotonic() - self._looked_at

    def _skeleton(self) -> str:
        found = self._table.standing()
        if found is None:
            return f"table {self._table.name} is not there"
        ours = self._standing
        if ours is None or (found.table.handle, found.table.owner) != (ours.table.handle, ours.table.owner):
            return f"table {self._table.name} is somebody else's"
        if found.table.flags & nft_dump.DORMANT:
            return f"table {self._table.name} is dormant"
        return _difference(ours, found)

    def _elements(self, plan: Plan) -> str:
        for name, wanted in self._keys(plan).items():
            held = self._table.elements(name)
            if held != wanted:
                return f"table {self._table.name}: set {name} has {len(held)} elements, {len(wanted & held)} of {len(wanted)} that it should have"
        return ""
