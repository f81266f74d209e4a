"""An object file is taken apart to the byte, or refused with the reason; no byte of it can make the parser fall."""

from __future__ import annotations

import random
import struct

import pytest

from agentsh_net.core.abi import bpf_object
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import probe_source

DATA = (probe_source.directory() / probe_source.OBJECT).read_bytes()


def test_programs_maps_licence_and_origin_are_found() -> None:
    found = bpf_object.parse(DATA)
    assert found.licence == "Dual MIT/GPL"
    assert set(found.programs) == set(probe_source.PROGRAMS)
    assert set(found.maps) == set(probe_source.MAPS)
    assert len(found.sources) == 64
    assert "clang version" in found.compiler


def test_a_program_ends_with_an_exit_or_a_jump_and_every_map_is_referred_to() -> None:
    programs = bpf_object.parse(DATA).programs.values()
    ends = {program.code[at - 8] for program in programs for at, _ in (*program.functions[1:], (0, ""))}
    assert ends <= {0x95, 0x05}
    assert {name for program in programs for _, name in program.maps} == set(probe_source.MAPS)


def test_relocation_writes_descriptors_where_maps_are_loaded_and_nowhere_else() -> None:
    program = bpf_object.parse(DATA).programs["agentsh_conn4"]
    numbers = {name: 1000 + i for i, name in enumerate(probe_source.MAPS)}
    code = program.relocated(numbers)
    for at, name in program.maps:
        opcode, registers, _, number, rest = struct.unpack_from("<BBhiq", code, at)
        assert (opcode, registers >> 4, number, rest) == (0x18, 1, numbers[name], 0)
    touched = {at + i for at, _ in program.maps for i in range(16)}
    assert [
        i for i, (a, b) in enumerate(zip(code, program.code, strict=True)) if a != b and i not in touched
    ] == []


def test_every_call_leads_to_the_beginning_of_a_function_whose_type_is_known() -> None:
    probes = bpf_object.parse(DATA)
    called = 0
    for program in probes.programs.values():
        starts = [at // 8 for at, _ in program.functions]
        assert starts[0] == 0
        assert all(name in probes.types.numbers for _, name in program.functions)
        for at in range(len(program.code) // 8):
            opcode, registers, _, distance = struct.unpack_from("<BBhi", program.code, 8 * at)
            if opcode == 0x85 and registers >> 4 == 1:
                assert at + 1 + distance in starts[1:]
                called += 1
    assert called >= 6


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a little-endian 64-bit ELF"),
        (b"MZ" + DATA[2:], "not a little-endian 64-bit ELF"),
        (DATA[:18] + struct.pack("<H", 62) + DATA[20:], "machine 62"),
        (DATA.replace(b"agentsh.origin", b"agentsh.orange"), "no section agentsh.origin"),
        (DATA.replace(b"license\0", b"licence\0"), "no section license"),
        (DATA.replace(b".maps\0", b".mops\0"), "neither a map nor a function"),
    ],
    ids=["empty", "another format", "another machine", "no origin", "no licence", "no maps"],
)  # fmt: skip
def test_what_cannot_be_loaded_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(KernelError, match=reason) as caught:
        bpf_object.parse(data)
    assert caught.value.remedy == "reinstall agentsh-net"


def test_a_file_that_is_cut_anywhere_is_refused() -> None:
    for length in range(0, len(DATA) - 1, 97):
        with pytest.raises(KernelError):
            bpf_object.parse(DATA[:length])


def test_a_flipped_byte_is_read_or_refused_and_nothing_else() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        data = bytearray(DATA)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            bpf_object.parse(bytes(data))
        except KernelError:
            continue
