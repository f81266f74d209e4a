"""A program has each function that it calls behind it once, and every call and every map where it now stands."""

from __future__ import annotations

import struct

import pytest

from agentsh_net.core.abi.bpf_program import Function, linked

EXIT = struct.pack("<BBhi", 0x95, 0, 0, 0)
CALL = struct.pack("<BBhi", 0x85, 1 << 4, 0, -1)
LOAD = struct.pack("<BBhi8x", 0x18, 2, 0, 0)


def distances(code: bytes) -> dict[int, int]:
    """Return how far which instruction calls."""
    found = {}
    for at in range(len(code) // 8):
        opcode, registers, _, distance = struct.unpack_from("<BBhi", code, 8 * at)
        if (opcode, registers >> 4) == (0x85, 1):
            found[at] = distance
    return found


def test_functions_that_call_each_other_stand_behind_the_program_once() -> None:
    program = linked(
        "main",
        {
            "main": Function("egress", CALL + CALL + EXIT, (), ((0, "a"), (8, "b"))),
            "a": Function(".text", LOAD + CALL + EXIT, ((0, "rules"),), ((16, "b"),)),
            "b": Function(".text", LOAD + EXIT, ((0, "names"),)),
            "nobody's": Function(".text", EXIT, ()),
        },
    )
    assert program.section == "egress"
    assert program.functions == ((0, "main"), (24, "a"), (56, "b"))
    assert distances(program.code) == {0: 2, 1: 5, 5: 1}
    assert program.maps == ((24, "rules"), (56, "names"))
    code = program.relocated({"rules": 7, "names": 9})
    assert [struct.unpack_from("<BBhi", code, at) for at, _ in program.maps] == [
        (0x18, 0x12, 0, 7),
        (0x18, 0x12, 0, 9),
    ]


def test_a_program_that_calls_nothing_stays_what_it_is() -> None:
    program = linked("main", {"main": Function("make", LOAD + EXIT, ((0, "makers"),))})
    assert (program.code, program.maps, program.functions) == (LOAD + EXIT, ((0, "makers"),), ((0, "main"),))


def test_a_call_of_what_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="gone"):
        linked("main", {"main": Function("egress", CALL + EXIT, (), ((0, "gone"),))})
