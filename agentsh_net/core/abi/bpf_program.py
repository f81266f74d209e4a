"""A BPF program put together with the functions that it calls, as the kernel wants it: one piece of code, the program first."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

INSTRUCTION: Final = 8  # bytes
_PSEUDO_MAP_FD = 1
# A load of 64 bits takes two instructions.
_LOAD = struct.Struct("<BBhi4xi")
_NUMBER_AT = 4  # where a call says how many instructions away its function is, counted from the next one


@dataclass(frozen=True, slots=True)
class Function:
    """A function by itself. `maps` and `calls` say at which byte of `code` which map is loaded, and which function called."""

    section: str
    code: bytes
    maps: tuple[tuple[int, str], ...]
    calls: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """One program. `maps` says at which byte of `code` which map's descriptor belongs, `functions` where which one begins."""

    section: str
    code: bytes
    maps: tuple[tuple[int, str], ...]
    functions: tuple[tuple[int, str], ...] = ()

    def relocated(self, descriptors: Mapping[str, int]) -> bytes:
        """Return the code with the descriptors of its maps in place."""
        code = bytearray(self.code)
        for at, name in self.maps:
            opcode, registers, offset, _, _ = _LOAD.unpack_from(code, at)
            registers = registers & 0x0F | _PSEUDO_MAP_FD << 4
            _LOAD.pack_into(code, at, opcode, registers, offset, descriptors[name], 0)
        return bytes(code)


def linked(name: str, functions: Mapping[str, Function]) -> Program:
    """Return a function as a program, with all that it calls behind it. Raises KeyError where it calls what is not there."""
    starts = _starts(name, functions)
    code = bytearray().join(functions[each].code for each in starts)
    for each, start in starts.items():
        for at, called in functions[each].calls:
            distance = (starts[called] - start - at) // INSTRUCTION - 1
            struct.pack_into("<i", code, start + at + _NUMBER_AT, distance)
    maps = [(start + at, found) for each, start in starts.items() for at, found in functions[each].maps]
    places = tuple((start, each) for each, start in starts.items())
    return Program(functions[name].section, bytes(code), tuple(maps), places)


def _starts(name: str, functions: Mapping[str, Function]) -> dict[str, int]:
    """Return at which byte each function begins, those that it calls behind it."""
    starts: dict[str, int] = {}
    waiting, length = [name], 0
    while waiting:
        each = waiting.pop(0)
        if each not in starts:
            starts[each] = length
            length += len(functions[each].code)
            waiting += (called for _, called in functions[each].calls)
    return starts
