"""A table is asked about as it stands; an earlier look stands only while nobody else has committed anything."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.abi.netlink import Message
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.kernel.netlink import NETFILTER, Netlink
from agentsh_net.kernel.nft import table as nft_table
from agentsh_net.kernel.nft.table import Commits, Contents, Table

pytestmark = pytest.mark.kernel

MINE = "table inet mine { counter hits { }; set held { type ipv4_addr; elements = { 10.0.0.1 }; }; chain in { type filter hook output priority 0; ip daddr @held counter name hits; }; }"


def nft(text: str) -> None:
    subprocess.run(["nft", text], check=True)


def opened(name: str = "mine") -> Table:
    return Table(Netlink(NETFILTER), nft_dump.INET, name)


def test_what_stands_is_told_whole() -> None:
    def inside() -> tuple[object, ...]:
        nft(MINE)
        table = opened()
        standing = table.standing()
        assert standing is not None
        chain = [(c.name, c.hooked) for c in standing.chains]
        return (
            chain,
            len(standing.rules),
            [n for n, _ in standing.sets],
            table.elements("held"),
            table.counters(),
        )

    held = bytes([10, 0, 0, 1])
    assert box.in_box(inside) == ([("in", True)], 1, ["held"], {held}, {"hits": 0})


def test_a_table_that_is_not_there_is_none() -> None:
    assert box.in_box(lambda: (opened().found(), opened().standing())) == (None, None)


def test_every_element_of_a_large_set_is_told() -> None:
    def inside() -> int:
        many = ", ".join(f"10.{n >> 8}.{n & 255}.1" for n in range(20_000))
        subprocess.run(["nft", "-f", "-"], input=f"table inet mine {{\n set held {{\n type ipv4_addr\n elements = {{ {many} }}\n }}\n}}\n", text=True, check=True)  # fmt: skip
        return len(opened().elements("held"))

    assert box.in_box(inside) == 20_000


class Overtaken:
    """A connection on which the first walk through a set tells what comes first once more, in the place of the rest."""

    def __init__(self) -> None:
        self._netlink, self.walks = Netlink(NETFILTER), 0

    def ask(self, *args: Any, **flags: int) -> list[Message]:
        self.walks += 1
        answers = self._netlink.ask(*args, **flags)
        return answers if self.walks > 1 else [answers[0], *answers[:-1]]


def test_a_walk_that_a_resize_overtook_is_made_again() -> None:
    def inside() -> tuple[int, int]:
        many = ", ".join(f"10.{n >> 8}.{n & 255}.1" for n in range(2_000))
        subprocess.run(["nft", "-f", "-"], input=f"table inet mine {{\n set held {{\n type ipv4_addr\n elements = {{ {many} }}\n }}\n}}\n", text=True, check=True)  # fmt: skip
        overtaken = Overtaken()
        return len(Table(overtaken, nft_dump.INET, "mine").elements("held")), overtaken.walks

    assert box.in_box(inside) == (2_000, 2)


def test_own_commits_are_told_from_those_of_others() -> None:
    def inside() -> list[int]:
        commits = Commits(opened())
        seen = [commits.foreign()]
        with commits.ours():
            nft("add table inet mine")
        seen.append(commits.foreign())
        nft("add table inet theirs")
        seen.append(commits.foreign())
        with commits.ours():  # at the very moment of ours, somebody else's
            nft("add table inet more")
            nft("add table inet others")
        return [*seen, commits.foreign()]

    assert box.in_box(inside) == [0, 0, 1, 2]


def test_others_who_commit_often_cannot_keep_us_busy_and_the_age_of_the_look_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nft_table, "_SHARE", 1e9)

    def inside() -> tuple[str, bool, str, bool]:
        table = opened()
        contents = Contents(table, commits := Commits(table), lambda _: {"held": {bytes([10, 0, 0, 1])}})
        with contents.made(), commits.ours():
            nft(MINE)
        wanted = plan(deny=(at("10.0.0.1"),))
        nft("add table inet theirs")
        first = contents.why_not(wanted), contents.age() is None
        nft("add element inet mine held { 10.0.0.2 }")
        return *first, contents.why_not(wanted), contents.age() is None

    assert box.in_box(inside) == ("", True, "", False)


def test_what_was_found_wrong_stays_wrong_between_two_looks_and_is_right_once_it_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nft_table, "_SHARE", 1e9)  # as a set of many thousands has it

    def inside() -> list[str]:
        table = opened()
        contents = Contents(table, commits := Commits(table), lambda _: {"held": {bytes([10, 0, 0, 1])}})
        with contents.made(), commits.ours():
            nft(MINE)
        wanted = plan(deny=(at("10.0.0.1"),))
        nft("flush set inet mine held")
        found = [contents.why_not(wanted), contents.why_not(wanted)]
        nft("delete table inet mine")
        with contents.made(), commits.ours():
            nft(MINE)
        nft("add table inet theirs")
        return [*found, contents.why_not(wanted)]

    wrong = "table inet mine: set held has 0 elements, 0 of 1 that it should have"
    assert box.in_box(inside) == [wrong, wrong, ""]
