"""The shipped object is what bpf/build makes of today's sources; the kernel takes it, or says why not and keeps nothing."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import hashlib
import os
import resource
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from netns import box

from agentsh_net.core.abi.bpf_object import BpfObject
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import prebuilt, probe_source, syscall

BPF = probe_source.directory()
STALE = "bpf/connect.bpf.o is older than its sources: run bpf/build and commit the object"


def changed(probes: BpfObject, name: str, code: bytes) -> BpfObject:
    """Return the probes with other code in one program."""
    return replace(probes, programs={**probes.programs, name: replace(probes.programs[name], code=code)})


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_the_object_was_built_from_the_sources_beside_it() -> None:
    files = [*sorted(BPF.glob("*.bpf.c")), *sorted(BPF.glob("*.h")), BPF / "build"]
    listing = "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
    assert prebuilt.read().sources == hashlib.sha256(listing.encode()).hexdigest(), STALE


def test_building_again_makes_the_same_bytes_wherever_the_checkout_lies(tmp_path: Path) -> None:
    clang = shutil.which("clang") or shutil.which("clang-14")
    if clang is None or not Path("/usr/include/bpf/bpf_helpers.h").exists():
        pytest.skip("bpf/build cannot run here: sudo apt install clang llvm libbpf-dev")
    version = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    if version.splitlines()[0] != prebuilt.read().compiler:
        pytest.skip(f"the object was built by {prebuilt.read().compiler}, here is {version.splitlines()[0]}")
    elsewhere = shutil.copytree(BPF, tmp_path / "elsewhere")
    made = tmp_path / "made.o"
    done = subprocess.run([elsewhere / "build", made], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip(f"bpf/build cannot run here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert made.read_bytes() == (BPF / probe_source.OBJECT).read_bytes(), STALE


def test_libbpf_reads_the_same_programs_and_maps_from_the_object() -> None:
    try:
        libbpf = ctypes.CDLL("libbpf.so.1")
    except OSError:
        pytest.skip("no libbpf here to compare with: sudo apt install libbpf1")
    silent = ctypes.CFUNCTYPE(ctypes.c_int)(0)
    libbpf.libbpf_set_print(silent)

    def ask(function: str, *subjects: ctypes.c_void_p, kind: type = ctypes.c_uint) -> object:
        call = getattr(libbpf, function)
        call.restype = kind
        return call(*subjects)

    def each(what: str) -> list[ctypes.c_void_p]:
        found = [None]
        while following := ask(f"bpf_object__next_{what}", whole, found[-1], kind=ctypes.c_void_p):
            found.append(ctypes.c_void_p(following))
        return found[1:]

    path = os.fsencode(BPF / probe_source.OBJECT)
    whole = ctypes.c_void_p(ask("bpf_object__open_file", path, None, kind=ctypes.c_void_p))
    programs = {
        ask("bpf_program__name", p, kind=ctypes.c_char_p).decode(): (
            ask("bpf_program__section_name", p, kind=ctypes.c_char_p).decode(),
            ask("bpf_program__insn_cnt", p, kind=ctypes.c_size_t),
            ask("bpf_program__type", p),
            ask("bpf_program__expected_attach_type", p),
        )
        for p in each("program")
    }
    traits = ("type", "key_size", "value_size", "max_entries", "map_flags")
    maps = {
        ask("bpf_map__name", m, kind=ctypes.c_char_p).decode(): tuple(ask(f"bpf_map__{t}", m) for t in traits)
        for m in each("map")
    }
    ours = prebuilt.read()
    assert maps == {
        n: (m.kind, m.key_size, m.value_size, m.max_entries, m.flags) for n, m in ours.maps.items()
    }
    assert programs == {
        # What a program calls is put behind it when it is loaded.
        name: (
            p.section,
            [at for at, _ in (*p.functions, (len(p.code), ""))][1] // 8,
            syscall.PROGRAM_TYPES[attach_type],
            attach_type,
        )
        for name, p in ours.programs.items()
        if (attach_type := probe_source.PROGRAMS[name])
    }


@pytest.mark.kernel
def test_the_kernel_takes_every_program_under_its_name_and_no_child_inherits_it() -> None:
    def inside() -> tuple[dict[str, str], list[int]]:
        programs, maps = prebuilt.load(prebuilt.read())
        names = {name: syscall.program_info(fd)[1] for name, fd in programs.items()}
        return names, [fd for fd in (*programs.values(), *maps.values()) if os.get_inheritable(fd)]

    assert box.in_box(inside) == ({name: name for name in probe_source.PROGRAMS}, [])


@pytest.mark.kernel
def test_what_the_verifier_said_is_told_whole_with_the_reason_first_and_nothing_stays_loaded() -> None:
    def inside() -> tuple[str, list[str], list[str]]:
        probes = prebuilt.read()
        # The last program of all reads a register that nobody wrote.
        code = probes.programs["agentsh_send6"].code
        wrong = changed(probes, "agentsh_send6", b"\xbf\x28" + code[2:])
        before = open_descriptors()
        try:
            prebuilt.load(wrong)
        except KernelError as error:
            return str(error), before, open_descriptors()
        return "", [], []

    said, before, after = box.in_box(inside)
    first, *whole = said.splitlines()
    assert first == "the kernel refused agentsh_send6: R2 !read_ok"
    assert len(whole) >= 3
    assert whole[-1].startswith("processed ")
    assert after == before


@pytest.mark.kernel
def test_a_map_that_cannot_be_is_named() -> None:
    def inside() -> tuple[str, str]:
        probes = prebuilt.read()
        maps = {**probes.maps, "rules": replace(probes.maps["rules"], max_entries=0)}
        try:
            prebuilt.load(replace(probes, maps=maps))
        except KernelError as error:
            return str(error), error.remedy
        return "", ""

    reason, remedy = box.in_box(inside)
    assert reason == "cannot create map rules: bpf MAP_CREATE: Invalid argument"
    assert remedy


@pytest.mark.kernel
def test_a_user_without_capabilities_is_told_to_be_root() -> None:
    def inside() -> str:
        probes = prebuilt.read()
        os.setresuid(1234, 1234, 1234)
        try:
            prebuilt.load(probes)
        except KernelError as error:
            return error.remedy
        return ""

    assert box.in_box(inside).startswith("run as root")


@pytest.mark.kernel
def test_a_limit_of_locked_memory_is_lifted_for_the_loading_and_put_back() -> None:
    def inside() -> tuple[list[int], int]:
        hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, hard))
        limits = []

        def load() -> int:
            limits.append(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
            if len(limits) == 1:  # as Linux 5.10 does
                raise PermissionError(errno.EPERM, "Operation not permitted")
            return 7

        assert prebuilt._beyond_memlock(load) == 7
        return limits, resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]

    (before, meanwhile), after = box.in_box(inside)
    assert (before, after) == (4096, 4096)
    assert meanwhile == resource.RLIM_INFINITY or meanwhile > before


def test_a_verifier_without_words_leaves_the_error_of_the_call() -> None:
    error = syscall.VerifierError(errno.E2BIG, "bpf PROG_LOAD: Argument list too long", "")
    assert prebuilt.complaint("p", error) == "the kernel refused p: bpf PROG_LOAD: Argument list too long"


def test_an_installation_without_the_object_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(probe_source, "directory", lambda: tmp_path)
    with pytest.raises(KernelError, match="No such file") as caught:
        prebuilt.read()
    assert "bpf/build" in caught.value.remedy


def test_an_object_that_lacks_a_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_source, "PROGRAMS", {**probe_source.PROGRAMS, "agentsh_new": 2})
    with pytest.raises(KernelError, match="lacks agentsh_new"):
        prebuilt.read()


def test_a_big_endian_machine_is_sent_to_bcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prebuilt.sys, "byteorder", "big")
    with pytest.raises(KernelError) as caught:
        prebuilt.read()
    assert "bcc" in caught.value.remedy
