"""A successor takes over the map of its predecessor's where it is understood, and makes its own where it is not."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.abi import wire
from agentsh_net.kernel.bpf import loader, prebuilt, streams, syscall
from agentsh_net.kernel.bpf.ebpf import Ebpf

pytestmark = pytest.mark.kernel

ROOT = Path("/sys/fs/cgroup")
DENIED = plan(1, deny=(at("10.99.0.2"),))


def plane(**definition: int) -> Ebpf:
    """Attach the probes, with another definition of the map; let go of them."""
    probes = prebuilt.read()
    other = replace(probes, maps={**probes.maps, "streams": replace(probes.maps["streams"], **definition)})

    def load() -> loader.Loaded:
        return loader.Loaded(*prebuilt.load(other), how="by the test")

    made = Ebpf(ROOT, load)
    made.start(DENIED)
    return made


def map_id(fd: int) -> int:
    return int(re.search(r"^map_id:\s*(\d+)$", Path(f"/proc/self/fdinfo/{fd}").read_text(), re.MULTILINE)[1])


def successor() -> tuple[bool, bool]:
    first = plane()
    taken = streams.of_predecessor(ROOT)
    second = Ebpf(ROOT, partial(loader.load, "prebuilt", taken))
    second.start(DENIED)
    ids = [map_id(each.streams) for each in (first, second)]
    first.close(remove=False)
    return ids[0] == ids[1] == taken[streams.MAP], streams.of_predecessor(ROOT) == taken


def test_a_successor_goes_on_with_the_map_of_its_predecessor() -> None:
    assert box.in_box(successor) == (True, True)


def test_a_map_of_another_layout_is_left_alone() -> None:
    def inside() -> dict[str, int]:
        plane(value_size=wire.STREAM_SIZE + 8)
        return streams.of_predecessor(ROOT)

    assert box.in_box(inside) == {}


def test_nothing_is_taken_where_there_is_none() -> None:
    def inside() -> tuple[dict[str, int], dict[str, int]]:
        kind, code = syscall.CGROUP_SKB, bytes.fromhex("b700000001000000 9500000000000000")
        alien = syscall.load_program("agentsh_x", kind, syscall.INET_EGRESS, code=code, licence="GPL")
        before = streams.of_predecessor(ROOT)
        cgroup = os.open(ROOT, os.O_RDONLY)
        syscall.attach(cgroup, alien, syscall.INET_EGRESS)
        return before, streams.of_predecessor(ROOT)

    assert box.in_box(inside) == ({}, {})
    assert streams.of_predecessor(Path("/nowhere")) == {}


def test_a_map_that_went_meanwhile_is_made_anew() -> None:
    def inside() -> int:
        _, maps = prebuilt.load(prebuilt.read(), {streams.MAP: 0x7FFFFFFF})
        return map_id(maps[streams.MAP])

    assert box.in_box(inside) > 0
