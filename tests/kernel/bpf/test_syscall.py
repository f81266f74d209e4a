"""Maps and programs are reached by the bare system call: batches are whole, absent is no error, refusals are OSError."""

from __future__ import annotations

import errno
import os
import struct

import pytest
from netns import box

from agentsh_net.kernel.bpf import syscall
from agentsh_net.kernel.bpf.loader import load_prebuilt
from agentsh_net.kernel.bpf.map_contents import MapContents

pytestmark = pytest.mark.kernel


def key(number: int) -> bytes:
    return struct.pack(">16xI", number)[:20]


def in_loaded_box(test: object) -> object:
    """Run `test(loaded)` in a box with our own programs and maps loaded and nothing attached."""

    def inside() -> object:
        loaded = load_prebuilt()
        try:
            return test(loaded)
        finally:
            loaded.close()

    return box.in_box(inside)


def test_batches_set_list_and_delete_every_element_and_skip_what_is_absent() -> None:
    def inside(loaded):
        rules = loaded.maps["rules"]
        keys = [key(n) for n in range(40_000)]
        syscall.update_all(rules, keys, [struct.pack("=I", n) for n in range(40_000)])
        held = MapContents({"rules": rules}).rules()
        syscall.delete_all(rules, [keys[0], key(99_999), *keys[1:39_999], key(99_998)])
        return held == {k: struct.pack("=I", n) for n, k in enumerate(keys)}, MapContents(
            {"rules": rules}
        ).rules()

    whole, left = in_loaded_box(inside)
    assert whole
    assert left == {key(39_999): struct.pack("=I", 39_999)}


def test_what_a_map_holds_is_the_same_bytes_until_somebody_writes() -> None:
    def inside(loaded):
        rules = loaded.maps["rules"]
        keys = [key(n) for n in range(20_000)]
        syscall.update_all(rules, keys, [struct.pack("=I", n) for n in range(20_000)])
        first, again = syscall.contents(rules, 20, 4), syscall.contents(rules, 20, 4)
        syscall.update(rules, keys[7], struct.pack("=I", 1 << 30))
        return first == again, len(first[0]), len(first[1]), syscall.contents(rules, 20, 4) == first

    assert in_loaded_box(inside) == (True, 400_000, 80_000, False)


def test_a_full_map_refuses_and_keeps_what_it_has() -> None:
    def inside(loaded):
        rules = loaded.maps["rules"]
        try:
            syscall.update_all(rules, [key(n) for n in range(262_145)], [bytes(4)] * 262_145)
        except OSError as error:
            number = error.errno
        return number, len(MapContents({"rules": rules}).rules())

    number, held = in_loaded_box(inside)
    assert number in {errno.E2BIG, errno.ENOSPC}
    assert held == 262_144


def test_a_per_cpu_value_has_one_slot_for_every_possible_cpu() -> None:
    def inside(loaded):
        return len(syscall.lookup(loaded.maps["counters"], bytes(4), 8 * syscall.possible_cpus()))

    assert in_loaded_box(inside) == 8 * syscall.possible_cpus()


def test_a_map_says_how_much_it_holds() -> None:
    sizes = in_loaded_box(lambda loaded: {name: syscall.map_entries(fd) for name, fd in loaded.maps.items()})
    assert sizes == {
        "rules": 262_144, "sieve": 32_768, "config": 1, "counters": 4, "makers": 0, "records": 1 << 20,
            "names": 16_384, "streams": 0, "prefixes": 1_024,
    }  # fmt: skip


def test_every_value_of_an_array_is_read_in_order_however_many_calls_it_takes() -> None:
    def inside(loaded):
        sieve = loaded.maps["sieve"]
        keys, values = zip(
            *((struct.pack("=I", n), struct.pack("=Q", n)) for n in range(32_768)), strict=True
        )
        syscall.update_all(sieve, keys, values)
        return struct.unpack("=32768Q", syscall.array_values(sieve, 32_768, 8)) == tuple(range(32_768))

    assert in_loaded_box(inside)


def test_a_program_comes_first_where_the_kernel_knows_how_and_is_attached_all_the_same_where_not() -> None:
    asked = []

    def attach(flag: int, refuses: int) -> str:
        asked.append(flag)
        if flag and refuses:
            raise OSError(refuses, "refused")
        return "attached"

    assert syscall.foremost(lambda flag: attach(flag, 0)) == "attached"
    assert syscall.foremost(lambda flag: attach(flag, errno.EINVAL)) == "attached"
    with pytest.raises(PermissionError):
        syscall.foremost(lambda flag: attach(flag, errno.EPERM))
    assert asked == [64, 64, 0, 64]


def test_a_program_is_attached_listed_named_and_detached() -> None:
    def inside(loaded):
        cgroup = os.open("/sys/fs/cgroup", os.O_RDONLY)
        program = loaded.programs["agentsh_conn4"]
        before = syscall.attached(cgroup, syscall.CONNECT4)
        syscall.attach(cgroup, program, syscall.CONNECT4)
        during = syscall.attached(cgroup, syscall.CONNECT4)
        number, name = syscall.program_info(program)
        again = syscall.program_info(syscall.program_fd(number))
        syscall.detach(cgroup, program, syscall.CONNECT4)
        syscall.detach(cgroup, program, syscall.CONNECT4)
        return (
            before,
            during == [number],
            name,
            again == (number, name),
            syscall.attached(cgroup, syscall.CONNECT4),
        )

    assert in_loaded_box(inside) == ([], True, "agentsh_conn4", True, [])


def test_a_refusal_names_the_call_and_the_reason() -> None:
    with pytest.raises(OSError, match="PROG_QUERY: Bad file descriptor"):
        syscall.attached(0xFFFFF, syscall.CONNECT4)


def test_a_map_and_a_program_are_made_and_carry_their_names() -> None:
    def inside() -> tuple[int, tuple[int, str]]:
        made = syscall.create_map("a_name", 1, key_size=4, value_size=8, max_entries=77)
        program = syscall.load_program(
            "an_overlong_name_", syscall.CGROUP_SOCK_ADDR, syscall.CONNECT4, code=PASS, licence="GPL"
        )
        return syscall.map_entries(made), syscall.program_info(program)

    entries, (number, name) = box.in_box(inside)
    assert entries == 77
    assert number > 0
    assert name == "an_overlong_nam"


def test_a_refused_program_comes_with_the_verifiers_log() -> None:
    def inside() -> tuple[int, str]:
        try:
            # exit without a return value
            syscall.load_program(
                "x", syscall.CGROUP_SOCK_ADDR, syscall.CONNECT4, code=PASS[8:], licence="GPL"
            )
        except syscall.VerifierError as error:
            return error.errno or 0, error.log
        return 0, ""

    number, log = box.in_box(inside)
    assert number == errno.EACCES
    assert "R0 !read_ok" in log


# r0 = 1; exit
PASS = bytes.fromhex("b700000001000000 9500000000000000")
