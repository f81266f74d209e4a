"""What a predecessor knows of connections is taken over where it is understood, and never over what is known already."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from netns import box

from agentsh_net.core.abi import wire
from agentsh_net.core.network.plane import Name
from agentsh_net.kernel.bpf import prebuilt, streams, syscall

pytestmark = pytest.mark.kernel


def stream(verdict: int, name: str) -> bytes:
    return wire.STREAM.pack(*range(10), verdict, *range(5)) + wire.encode_name(Name(name))


def cookie(number: int) -> bytes:
    return struct.pack("=Q", number)


def test_streams_are_read_and_inherited() -> None:
    def inside() -> dict[int, wire.Stream]:
        probes = prebuilt.read()
        old_programs, old = prebuilt.load(probes)
        _, new = prebuilt.load(probes)
        syscall.update(old["streams"], cookie(1), stream(wire.PASSED, "old.test"))
        syscall.update(old["streams"], cookie(2), stream(wire.REFUSED, "old.test"))
        syscall.update(new["streams"], cookie(2), stream(wire.PASSED, "new.test"))
        streams.inherit(syscall.program_info(old_programs["agentsh_egress"])[0], new["streams"])
        return streams.read(new["streams"])

    assert box.in_box(inside) == {
        1: wire.Stream(wire.PASSED, "old.test"),
        2: wire.Stream(wire.PASSED, "new.test"),
    }


def test_nothing_is_taken_from_a_program_that_has_no_streams() -> None:
    def inside() -> tuple[int, int]:
        _, maps = prebuilt.load(prebuilt.read())
        kind, code = syscall.CGROUP_SOCK_ADDR, bytes.fromhex("b700000001000000 9500000000000000")
        alien = syscall.load_program("x", kind, syscall.CONNECT4, code=code, licence="GPL")
        number = syscall.program_info(alien)[0]
        streams.inherit(number, maps["streams"])
        return len(streams.read(maps["streams"])), len(syscall.maps_of(number))

    assert box.in_box(inside) == (0, 0)


def test_streams_of_another_layout_are_left_alone() -> None:
    def inside() -> dict[int, wire.Stream]:
        probes = prebuilt.read()
        size = wire.STREAM_SIZE + 8
        wider, blank = (replace(probes.maps[n], value_size=size) for n in ("streams", "blank"))
        older = replace(probes, maps={**probes.maps, "streams": wider, "blank": blank})
        programs, old = prebuilt.load(older)
        syscall.update(old["streams"], cookie(1), bytes(size))
        _, new = prebuilt.load(probes)
        streams.inherit(syscall.program_info(programs["agentsh_egress"])[0], new["streams"])
        return streams.read(new["streams"])

    assert box.in_box(inside) == {}
