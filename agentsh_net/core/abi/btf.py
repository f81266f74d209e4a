"""BTF as far as maps and functions need it (kernel doc: bpf/btf.rst): the structs that libbpf's `__uint` and `__type` make.

Bytes in, definitions out. Where the bytes stand in an object file is bpf_object.py's business.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from agentsh_net.core.errors import KernelError

_HEADER = struct.Struct("<HBBIIIII")
_MAGIC = 0xEB9F
_TYPE = struct.Struct("<III")
# A member (name, type, offset), an array (element, index, count) and a variable of a section (type, offset, size).
_TRIPLE = struct.Struct("<III")

_INT, _POINTER, _ARRAY, _STRUCT, _UNION, _ENUM = 1, 2, 3, 4, 5, 6
_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _PROTOTYPE = 8, 9, 10, 11, 13
_FUNCTION = 12
_VARIABLE, _SECTION, _FLOAT, _DECLARATION_TAG, _TYPE_TAG, _ENUM64 = 14, 15, 16, 17, 18, 19
_ALIASES = {_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG}
_SIZED = {_INT, _STRUCT, _UNION, _ENUM, _FLOAT, _ENUM64}
# The bytes that follow a type's three words: so many, and so many for each of its parts.
_FOLLOWING = {
    _INT: (4, 0),
    _ARRAY: (12, 0),
    _STRUCT: (0, 12),
    _UNION: (0, 12),
    _ENUM: (0, 8),
    _PROTOTYPE: (0, 8),
    _VARIABLE: (4, 0),
    _SECTION: (0, 12),
    _DECLARATION_TAG: (4, 0),
    _ENUM64: (0, 12),
}
_POINTER_BYTES = 8
KEY, VALUE = 1, 3  # of `type_of_bytes`
# Types refer to types: a longer chain than this is a ring.
_MAX_CHAIN = 32


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """A map as the source defines it. `kind` is a number of enum bpf_map_type; sizes are bytes."""

    kind: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int


def type_of_bytes(size: int) -> bytes:
    """Return type information in which type `KEY` is an int and type `VALUE` so many bytes: socket storage wants it told."""
    strings = b"\0int\0byte\0"
    types = b"".join(
        (
            _TYPE.pack(1, _INT << 24, 4) + struct.pack("<I", 1 << 24 | 32),  # signed, 32 bits
            _TYPE.pack(5, _INT << 24, 1) + struct.pack("<I", 8),
            _TYPE.pack(0, _ARRAY << 24, 0) + _TRIPLE.pack(2, KEY, size),
        )
    )
    lengths = (0, len(types), len(types), len(strings))
    return _HEADER.pack(_MAGIC, 1, 0, _HEADER.size, *lengths) + types + strings


def map_definitions(data: bytes) -> dict[str, MapDefinition]:
    """Return what the variables of section `.maps` define, by name. Raises KernelError for what is not understood."""
    try:
        return _Btf(data).map_definitions()
    except (struct.error, IndexError, ValueError) as error:
        raise _broken(str(error)) from error


@dataclass(frozen=True, slots=True)
class FunctionTypes:
    """What the kernel is to be told of functions: BTF that it takes, and the number in it of each function's type."""

    btf: bytes
    numbers: Mapping[str, int]


def function_types(data: bytes) -> FunctionTypes:
    """Return the types of an object's functions. Raises KernelError for what is not understood."""
    try:
        return _Btf(data).function_types()
    except (struct.error, IndexError, ValueError) as error:
        raise _broken(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Type:
    """`refers` is the number of the type that it is made of, or for some kinds the size in bytes."""

    name: str
    kind: int
    refers: int
    rest: bytes
    whole: bytes  # as it stands in the object

    def triples(self) -> list[tuple[int, int, int]]:
        return list(_TRIPLE.iter_unpack(self.rest))


class _Btf:
    """The types of one object, numbered from 1 in their order."""

    def __init__(self, data: bytes) -> None:
        magic, _, _, header, types_at, types_length, strings_at, strings_length = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise _broken("no magic number")
        self._strings = data[header + strings_at :][:strings_length]
        self._types = [_Type("void", 0, 0, b"", b"")]
        self._read(data[header + types_at :][:types_length])

    def map_definitions(self) -> dict[str, MapDefinition]:
        sections = [t for t in self._types if t.kind == _SECTION and t.name == ".maps"]
        variables = [self._types[number] for section in sections for number, _, _ in section.triples()]
        return {variable.name: self._definition(variable) for variable in variables}

    def function_types(self) -> FunctionTypes:
        # Sections, in which a linker fills in what is where, become pointers to void: the others keep their numbers.
        types = b"".join(
            _TYPE.pack(0, _POINTER << 24, 0) if t.kind == _SECTION else t.whole for t in self._types
        )
        lengths = (0, len(types), len(types), len(self._strings))
        numbers = {t.name: number for number, t in enumerate(self._types) if t.kind == _FUNCTION}
        return FunctionTypes(
            _HEADER.pack(_MAGIC, 1, 0, _HEADER.size, *lengths) + types + self._strings, numbers
        )

    def _read(self, body: bytes) -> None:
        at = 0
        while at < len(body):
            name, info, refers = _TYPE.unpack_from(body, at)
            kind, parts = info >> 24 & 0x1F, info & 0xFFFF
            if not 0 < kind <= _ENUM64:
                raise _broken(f"unknown kind of type, {kind}")
            fixed, each = _FOLLOWING.get(kind, (0, 0))
            start, at = at, at + _TYPE.size + fixed + each * parts
            rest = body[start + _TYPE.size : at]
            self._types.append(_Type(self._string(name), kind, refers, rest, body[start:at]))

    def _string(self, at: int) -> str:
        return self._strings[at : self._strings.index(b"\0", at)].decode("ascii")

    def _definition(self, variable: _Type) -> MapDefinition:
        values = dict.fromkeys(("type", "key_size", "value_size", "max_entries", "map_flags"), 0)
        for name_at, number, _ in self._types[variable.refers].triples():
            name, pointed = self._string(name_at), self._types[self._types[number].refers]
            if name in ("key", "value"):
                values[f"{name}_size"] = self._size(pointed)
            elif name in values and pointed.kind == _ARRAY:
                values[name] = pointed.triples()[0][2]  # __uint(name, N) is a pointer to int[N]
            else:
                raise _broken(f"map {variable.name} says {name}, which this loader does not know")
        kind, key_size, value_size, max_entries, flags = values.values()
        return MapDefinition(kind, key_size, value_size, max_entries, flags)

    def _size(self, wanted: _Type) -> int:
        count = 1
        for _ in range(_MAX_CHAIN):
            if wanted.kind in _SIZED:
                return count * wanted.refers
            if wanted.kind == _POINTER:
                return count * _POINTER_BYTES
            if wanted.kind == _ARRAY:
                element, _, length = wanted.triples()[0]
                count, wanted = count * length, self._types[element]
            elif wanted.kind in _ALIASES:
                wanted = self._types[wanted.refers]
            else:
                break
        raise _broken(f"type {wanted.name or wanted.kind} has no size")


def _broken(what: str) -> KernelError:
    return KernelError(f"broken type information: {what}", layer="ebpf", remedy="reinstall agentsh-net")
