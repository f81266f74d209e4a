"""Whatever somebody writes into the maps is seen at the next look, and what was found right is not compared again."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.abi import sieve, wire
from agentsh_net.core.network.plane import Fate, Name, Plan
from agentsh_net.kernel.bpf import map_contents, syscall
from agentsh_net.kernel.bpf.ebpf import Ebpf
from agentsh_net.kernel.bpf.map_contents import MapContents

pytestmark = pytest.mark.kernel

BAD = at("10.99.0.2")
FEW, MANY = 10, 5000  # rules; of so many the sieve is read whole


def wanted(rules: int) -> Plan:
    made = plan(1, deny=(BAD, *(at(f"10.77.{n >> 8}.{n & 255}") for n in range(rules - 1))))
    return Plan(1, made.rules, names={Name("evil.test"): Fate.DENY})


def loaded(rules: int) -> tuple[dict[str, int], Plan]:
    desired = wanted(rules)
    plane = Ebpf(Path("/sys/fs/cgroup"))
    plane.start(desired)
    return dict(plane._loaded.maps), desired


def looks(rules: int, write: Callable[[dict[str, int]], None]) -> list[tuple[int, str]]:
    """Look, look again, let somebody write, and look."""
    maps, desired = loaded(rules)
    contents = MapContents(maps)
    seen = [contents.look(desired), contents.look(desired)]
    write(maps)
    return [*seen, contents.look(desired), contents.look(desired)]


def another_fate(maps: dict[str, int]) -> None:
    syscall.update(maps["rules"], wire.encode_key(BAD), wire.encode_fate(Fate.TAG))


def gone(maps: dict[str, int]) -> None:
    syscall.delete_all(maps["rules"], [wire.encode_key(BAD)])


def one_for_another(maps: dict[str, int]) -> None:
    gone(maps)
    syscall.update(maps["rules"], wire.encode_key(at("10.99.0.9")), wire.encode_fate(Fate.DENY))


def another_name(maps: dict[str, int]) -> None:
    key = wire.encode_name(Name("evil.test"))
    syscall.update(maps["names"], key, wire.encode_fate(Fate.TAG))


def a_hole_in_the_sieve(maps: dict[str, int]) -> None:
    syscall.update(maps["sieve"], struct.pack("=I", sieve.place(BAD.address) >> 5), bytes(8))


@pytest.mark.parametrize("rules", [FEW, MANY])
@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (another_fate, "other rules in the kernel"),
        (gone, "rules in the kernel, "),
        (one_for_another, "other rules in the kernel"),
        (another_name, "other server names"),
        (a_hole_in_the_sieve, "the sieve in the kernel lets pass"),
    ],
)
def test_what_is_written_is_seen_and_seen_again_until_it_is_mended(
    rules: int, write: Callable[[dict[str, int]], None], reason: str
) -> None:
    first, second, third, fourth = box.in_box(looks, rules, write)
    assert first == second == (rules, "")
    assert reason in third[1]
    assert third == fourth


def compared() -> tuple[int, int, int, str]:
    """Count comparisons, element by element, over five looks, after the same rule was written again, and for an equal plan."""
    calls: list[object] = []
    difference = map_contents._difference

    def counted(*what: object) -> str:
        calls.append(what)
        return difference(*what)

    map_contents._difference = counted
    maps, desired = loaded(MANY)
    contents = MapContents(maps)
    for _ in range(5):
        contents.look(desired)
    five = len(calls)
    gone(maps)
    syscall.update(maps["rules"], wire.encode_key(BAD), wire.encode_fate(Fate.DENY))
    _, reason = contents.look(desired)
    after = len(calls)
    contents.look(wanted(MANY))
    return five, after - five, len(calls) - after, reason


def test_what_was_found_right_is_not_compared_again_while_nobody_writes() -> None:
    five, rewritten, another_plan, reason = box.in_box(compared)
    assert five == 1
    assert rewritten <= 1  # the kernel may have put it elsewhere
    assert another_plan == 1
    assert reason == ""
