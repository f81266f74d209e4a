"""The prebuilt probes come first and BCC is their fallback; either hands over all there is, or says all that went wrong."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from netns import box

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import distribution
from agentsh_net.kernel.bpf import loader, prebuilt
from agentsh_net.kernel.bpf.probe_source import MAPS, PROGRAMS


def child_saying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(loader.sys, "executable", str(fake))


@pytest.mark.kernel
@pytest.mark.alone
@pytest.mark.bcc
def test_the_child_hands_over_programs_and_maps_and_the_compiler_stays_out_of_this_process() -> None:
    def inside() -> tuple[set[str], set[str], str, bool, bool, list[int]]:
        loaded = loader.load_with_bcc()
        inheritable = [
            fd for fd in (*loaded.programs.values(), *loaded.maps.values()) if os.get_inheritable(fd)
        ]
        maps = Path("/proc/self/maps").read_text()
        try:
            os.waitpid(-1, os.WNOHANG)
            childless = False
        except ChildProcessError:
            childless = True
        return set(loaded.programs), set(loaded.maps), loaded.how, "libbcc" in maps, childless, inheritable

    programs, maps, how, compiler_here, childless, inheritable = box.in_box(inside)
    assert (programs, maps) == (set(PROGRAMS), set(MAPS))
    assert how.startswith("bcc with ")
    assert not compiler_here
    assert childless
    assert inheritable == []


@pytest.mark.kernel
@pytest.mark.parametrize("which", ["auto", "prebuilt"])
def test_the_prebuilt_probes_are_loaded_without_a_child_or_a_compiler(which: str) -> None:
    def inside() -> tuple[set[str], set[str], str]:
        def never(*_: object, **__: object) -> None:
            raise AssertionError("a child was started")

        loader.subprocess.Popen = never
        loaded = loader.load(which)
        return set(loaded.programs), set(loaded.maps), loaded.how

    programs, maps, how = box.in_box(inside)
    assert (programs, maps) == (set(PROGRAMS), set(MAPS))
    assert how.startswith("prebuilt by ")


def unusable(monkeypatch: pytest.MonkeyPatch, reason: str, cause: OSError | None = None) -> None:
    """Make the prebuilt probes fail for a reason."""

    def refuse(_kept: object) -> loader.Loaded:
        raise KernelError(reason, layer="ebpf", remedy="mend it") from cause

    monkeypatch.setattr(loader, "load_prebuilt", refuse)


def test_auto_falls_back_on_bcc_and_says_why_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    unusable(monkeypatch, "the kernel refused p: R2 !read_ok\nthe whole log")
    monkeypatch.setattr(loader, "load_with_bcc", lambda: loader.Loaded({}, {}, "bcc with stand-ins"))
    assert loader.load("auto").how == "bcc with stand-ins, because the kernel refused p: R2 !read_ok"


def test_where_both_fail_both_are_told_with_what_mends_either(monkeypatch: pytest.MonkeyPatch) -> None:
    unusable(monkeypatch, "the kernel refused p: R2 !read_ok\nthe whole log")

    def no_bcc() -> loader.Loaded:
        raise KernelError("python3-bpfcc is not installed", remedy=loader.REMEDY)

    monkeypatch.setattr(loader, "load_with_bcc", no_bcc)
    with pytest.raises(KernelError) as caught:
        loader.load("auto")
    said = str(caught.value)
    assert said.startswith("the kernel refused p: R2 !read_ok\nthe whole log\n")
    assert said.endswith("python3-bpfcc is not installed")
    assert caught.value.remedy == f"mend it; or {loader.REMEDY}"


def never(*_: object) -> loader.Loaded:
    raise AssertionError("this one was not asked for")


def test_who_may_not_load_does_not_wait_for_a_compiler_first(monkeypatch: pytest.MonkeyPatch) -> None:
    unusable(monkeypatch, "cannot create map rules", PermissionError(errno.EPERM, "Operation not permitted"))
    monkeypatch.setattr(loader, "load_with_bcc", never)
    with pytest.raises(KernelError, match="cannot create map rules"):
        loader.load("auto")


def test_prebuilt_alone_does_not_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    unusable(monkeypatch, "no object")
    monkeypatch.setattr(loader, "load_with_bcc", never)
    with pytest.raises(KernelError, match="no object"):
        loader.load("prebuilt")


def test_bcc_alone_does_not_try_the_prebuilt_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prebuilt, "read", never)
    monkeypatch.setattr(loader, "load_with_bcc", lambda: loader.Loaded({}, {}, "bcc"))
    assert loader.load("bcc").how == "bcc"


def test_what_the_compiler_says_is_told_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child_saying(monkeypatch, tmp_path, "echo 'error: unknown type'; echo 'at line 3' >&2; exit 1")
    with pytest.raises(KernelError) as caught:
        loader.load_with_bcc()
    assert "error: unknown type" in str(caught.value)
    assert "at line 3" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'bcc'", "sudo apt install python3-bpfcc"),
        ("could not open bpf map: rules, error: Operation not permitted", "run as root"),
    ],
)
def test_a_known_failure_names_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, remedy: str
) -> None:
    child_saying(monkeypatch, tmp_path, f'echo "{said}" >&2; exit 1')
    monkeypatch.setattr(distribution, "PLACE", tmp_path)
    with pytest.raises(KernelError) as caught:
        loader.load_with_bcc()
    assert caught.value.remedy == remedy


def test_a_child_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loader, "TIMEOUT", 0.2)
    child_saying(monkeypatch, tmp_path, "exec sleep 60")
    with pytest.raises(KernelError, match="and is not through"):
        loader.load_with_bcc()
