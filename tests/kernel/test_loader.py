"""The loader child hands over every program and map and is gone; what it says when it fails reaches the caller."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from netns import box

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import loader
from agentsh_net.kernel.probe_source import MAPS, PROGRAMS


def child_saying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(loader.sys, "executable", str(fake))


@pytest.mark.kernel
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
    with pytest.raises(KernelError) as caught:
        loader.load_with_bcc()
    assert caught.value.remedy == remedy


def test_a_child_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loader, "TIMEOUT", 0.2)
    child_saying(monkeypatch, tmp_path, "exec sleep 60")
    with pytest.raises(KernelError, match="ended with -9"):
        loader.load_with_bcc()
