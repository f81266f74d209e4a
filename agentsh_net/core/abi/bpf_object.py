"""A BPF object file as clang makes it, taken apart: programs, the maps they refer to, licence, what it was built from.

Bytes in, values out. It understands what bpf/build makes and refuses everything else by name: no global variables, no CO-RE.
Loading is kernel/bpf/prebuilt.py's business.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from agentsh_net.core.abi import btf
from agentsh_net.core.abi.bpf_program import INSTRUCTION, Function, Program, linked
from agentsh_net.core.abi.btf import FunctionTypes, MapDefinition
from agentsh_net.core.errors import KernelError

# Names of the ELF specification, 64 bits, little-endian.
_IDENT = b"\x7fELF\x02\x01\x01"
_EM_BPF = 247
_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")
_REL = struct.Struct("<QQ")
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_REL = 1, 2, 9
_SHF_EXECINSTR = 4
_STT_FUNC = 2
# An instruction that loads 64 bits takes two slots of 8 bytes; where it loads a map, the relocation is of the first type. A call is
# of the second, to a function of section `.text`, which all programs share.
_LOAD_64, _R_BPF_64_64 = 0x18, 1
_CALL, _R_BPF_64_32 = 0x85, 10
_SHARED = ".text"


@dataclass(frozen=True, slots=True)
class BpfObject:
    """What an object file holds. `sources` is a hash of the sources, `compiler` who compiled them."""

    licence: str
    programs: Mapping[str, Program]
    maps: Mapping[str, MapDefinition]
    types: FunctionTypes
    sources: str
    compiler: str


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    content: bytes
    target: int  # of a relocation section: the number of the section that it relocates
    link: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    kind: int
    section: int
    value: int
    size: int


def parse(data: bytes) -> BpfObject:
    """Take an object file apart. Raises KernelError for one that is broken, or that needs more than this."""
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError, KeyError) as error:
        raise _broken(str(error)) from error


def _parse(data: bytes) -> BpfObject:
    if not data.startswith(_IDENT):
        raise _broken("it is not a little-endian 64-bit ELF file")
    sections = _sections(data)
    symbols = _symbols(sections)
    origin = _content(sections, "agentsh.origin").decode("ascii").splitlines()
    functions, types = _functions(sections, symbols), _content(sections, ".BTF")
    return BpfObject(
        licence=_content(sections, "license").rstrip(b"\0").decode("ascii"),
        programs={name: linked(name, functions) for name, f in functions.items() if f.section != _SHARED},
        maps=btf.map_definitions(types),
        types=btf.function_types(types),
        sources=origin[0],
        compiler=origin[1],
    )


def _sections(data: bytes) -> list[_Section]:
    header = _EHDR.unpack_from(data)
    machine, table, count, names_at = header[2], header[6], header[12], header[13]
    if machine != _EM_BPF:
        raise _broken(f"it is for machine {machine}, not BPF")
    rows = [_SHDR.unpack_from(data, table + i * _SHDR.size) for i in range(count)]
    names = data[rows[names_at][4] :][: rows[names_at][5]]
    return [
        _Section(_string(names, name), kind, flags, data[offset : offset + size], info, link)
        for name, kind, flags, _, offset, size, link, info, _, _ in rows
    ]


def _symbols(sections: list[_Section]) -> list[_Symbol]:
    table = next((s for s in sections if s.kind == _SHT_SYMTAB), None)
    if table is None:
        raise _broken("it has no symbols")
    names = sections[table.link].content
    return [
        _Symbol(_string(names, name), info & 0xF, section, value, size)
        for name, info, _, section, value, size in _SYM.iter_unpack(table.content)
    ]


def _functions(sections: list[_Section], symbols: list[_Symbol]) -> dict[str, Function]:
    functions = [s for s in symbols if s.kind == _STT_FUNC and sections[s.section].flags & _SHF_EXECINSTR]
    references = {
        section.target: _references(section, sections, symbols)
        for section in sections
        if section.kind == _SHT_REL and sections[section.target].flags & _SHF_EXECINSTR
    }
    found = {}
    for function in functions:
        section = sections[function.section]
        start, end = function.value, function.value + function.size
        code = section.content[start:end]
        if not code or len(code) != function.size or len(code) % INSTRUCTION:
            raise _broken(f"program {function.name} is cut short")
        maps, calls = (
            tuple((at - start, name) for at, name in places if start <= at < end)
            for places in references.get(function.section, ((), ()))
        )
        found[function.name] = Function(section.name, code, maps, calls)
    return found


def _references(
    relocations: _Section, sections: list[_Section], symbols: list[_Symbol]
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return (offset in the code, name) of every reference to a map and of every call; there may be no other reference."""
    maps: list[tuple[int, str]] = []
    calls: list[tuple[int, str]] = []
    code = sections[relocations.target].content
    for offset, info in _REL.iter_unpack(relocations.content):
        symbol, kind = symbols[info >> 32], info & 0xFFFFFFFF
        section = sections[symbol.section].name
        what = symbol.name or section
        if (kind, section) == (_R_BPF_64_64, ".maps") and symbol.name:
            opcode, length, found = _LOAD_64, 2 * INSTRUCTION, maps
        elif (kind, section, symbol.kind) == (_R_BPF_64_32, _SHARED, _STT_FUNC):
            opcode, length, found = _CALL, INSTRUCTION, calls
        else:
            raise _broken(
                f"a reference to {what}, which is neither a map nor a function: globals are not supported"
            )
        if code[offset] != opcode or len(code) < offset + length:
            raise _broken(f"a reference to {what} from something that can neither load nor call it")
        found.append((offset, symbol.name))
    return maps, calls


def _content(sections: list[_Section], name: str) -> bytes:
    found = [s.content for s in sections if s.name == name and s.kind == _SHT_PROGBITS]
    if not found:
        raise _broken(f"it has no section {name}")
    return found[0]


def _string(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode("ascii")


def _broken(what: str) -> KernelError:
    return KernelError(
        f"the prebuilt probes are unusable: {what}", layer="ebpf", remedy="reinstall agentsh-net"
    )
