"""Map definitions are read from BTF to the number; BTF that is broken or says more is refused, never guessed at."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.abi import bpf_object, btf
from agentsh_net.core.abi.btf import MapDefinition, map_definitions
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import probe_source

INT, POINTER, ARRAY, STRUCT, TYPEDEF, FUNCTION, PROTOTYPE, VARIABLE, SECTION = 1, 2, 3, 4, 8, 12, 13, 14, 15


class Btf:
    """Builds BTF: each method adds one type and returns its number."""

    def __init__(self) -> None:
        self.types: list[bytes] = []
        self.strings = b"\0"

    def name(self, text: str) -> int:
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def add(self, kind: int, refers: int, name: str = "", rest: bytes = b"", parts: int = 0) -> int:
        self.types.append(struct.pack("<III", self.name(name), kind << 24 | parts, refers) + rest)
        return len(self.types)

    def integer(self, size: int) -> int:
        return self.add(INT, size, "int", bytes(4))

    def pointer(self, to: int) -> int:
        return self.add(POINTER, to)

    def array(self, of: int, length: int) -> int:
        return self.add(ARRAY, 0, rest=struct.pack("<III", of, of, length))

    def struct(self, size: int, members: dict[str, int]) -> int:
        rest = b"".join(struct.pack("<III", self.name(n), number, 0) for n, number in members.items())
        return self.add(STRUCT, size, rest=rest, parts=len(members))

    def map(self, name: str, **members: int) -> None:
        """Add a map of these members; a section of all maps follows it."""
        variable = self.add(VARIABLE, self.struct(8 * len(members), members), name, bytes(4))
        self.add(SECTION, 8, ".maps", struct.pack("<III", variable, 0, 8), 1)

    def number(self, value: int) -> int:
        """Add what libbpf's __uint makes of a number."""
        return self.pointer(self.array(self.integer(4), value))

    def bytes(self) -> bytes:
        types = b"".join(self.types)
        header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(self.strings))
        return header + types + self.strings


def test_numbers_and_types_of_a_map_are_read() -> None:
    btf = Btf()
    key = btf.add(TYPEDEF, btf.struct(20, {}), "key_t")
    value = btf.array(btf.add(TYPEDEF, btf.integer(8), "u64"), 3)
    btf.map(
        "rules",
        type=btf.number(1),
        max_entries=btf.number(77),
        map_flags=btf.number(5),
        key=btf.pointer(key),
        value=btf.pointer(value),
    )
    assert map_definitions(btf.bytes()) == {"rules": MapDefinition(1, 20, 24, 77, 5)}


def test_sizes_may_be_given_as_numbers_and_a_pointer_has_eight_bytes() -> None:
    btf = Btf()
    btf.map("a", type=btf.number(9), key_size=btf.number(4), value=btf.pointer(btf.pointer(0)))
    assert map_definitions(btf.bytes()) == {"a": MapDefinition(9, 4, 8, 0, 0)}


def test_our_own_object_has_the_maps_that_the_abi_says() -> None:
    data = (probe_source.directory() / probe_source.OBJECT).read_bytes()
    maps = bpf_object.parse(data).maps
    assert maps["rules"] == MapDefinition(1, 20, 4, 262_144, 1)
    assert maps["records"] == MapDefinition(27, 0, 0, 1 << 20, 0)


def test_an_attribute_that_the_loader_would_ignore_is_refused_by_name() -> None:
    btf = Btf()
    btf.map("rules", type=btf.number(1), pinning=btf.number(1))
    with pytest.raises(KernelError, match="map rules says pinning"):
        map_definitions(btf.bytes())


def test_a_ring_of_types_has_no_size_and_ends() -> None:
    btf = Btf()
    ring = btf.add(TYPEDEF, 1, "again")
    btf.map("rules", type=btf.number(1), key=btf.pointer(ring))
    with pytest.raises(KernelError, match="has no size"):
        map_definitions(btf.bytes())


@pytest.mark.parametrize("data", [b"", b"\0" * 24, Btf().bytes()[:20]])
def test_what_is_not_btf_is_refused(data: bytes) -> None:
    with pytest.raises(KernelError, match="broken type information"):
        map_definitions(data)


@given(st.binary(max_size=200), st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_and_nothing_else(types: bytes, strings: bytes) -> None:
    lengths = (0, len(types), len(types), len(strings))
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, *lengths)
    with contextlib.suppress(KernelError):
        map_definitions(header + types + strings)


def test_type_information_is_made_of_an_int_and_of_bytes() -> None:
    made = btf._Btf(btf.type_of_bytes(332))
    assert (made._size(made._types[btf.KEY]), made._size(made._types[btf.VALUE])) == (4, 332)


def test_functions_have_their_numbers_and_a_section_leaves_all_others_theirs() -> None:
    types = Btf()
    prototype = types.add(PROTOTYPE, types.integer(4))
    first = types.add(FUNCTION, prototype, "first", parts=1)
    types.map("rules", type=types.number(1))
    second = types.add(FUNCTION, prototype, "second", parts=1)
    data = types.bytes()
    told = btf.function_types(data)
    assert told.numbers == {"first": first, "second": second}
    section, pointer = struct.pack("<I", SECTION << 24 | 1), struct.pack("<III", 0, POINTER << 24, 0)
    at = data.index(section) - 4
    # Three words, and one of the section's parts.
    assert told.btf[24:] == data[24:at] + pointer + data[at + 24 :]
    assert struct.unpack_from("<II", told.btf, 12) == (len(data) - 12 - 24 - len(types.strings),) * 2
