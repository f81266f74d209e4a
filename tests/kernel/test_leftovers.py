"""Whatever is left of us in the kernel is found and removed by name, from any state; nothing of others is touched."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from netns import box
from netns.scene import BOTH, at, opened, plan

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import syscall
from agentsh_net.kernel.bpf.probe_source import PROGRAMS
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.leftovers import down, leftovers, programs, remove

BAD = plan(1, deny=(at("10.99.0.2"),))


@pytest.mark.kernel
@pytest.mark.parametrize("layers", [("ebpf",), ("nftables",), BOTH], ids="+".join)
def test_down_cleans_whatever_state_there_is_and_says_what_it_was(layers: tuple[str, ...]) -> None:
    def inside() -> tuple[int, list[str], list[str]]:
        opened(BAD, *layers)
        return len(down()), leftovers(), down()

    found, left, again = box.in_box(inside)
    assert found == {("ebpf",): len(PROGRAMS), ("nftables",): 1, BOTH: len(PROGRAMS) + 1}[layers]
    assert left == again == []


@pytest.mark.kernel
def test_without_privilege_the_leftovers_cannot_be_told_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> list[int]:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(syscall, "attached", refuse)
    with pytest.raises(KernelError) as caught:
        leftovers(Path("/"))
    assert caught.value.remedy == "run as root"


@pytest.mark.kernel
def test_one_layer_is_removed_without_the_other() -> None:
    def inside() -> tuple[list[int], int]:
        opened(BAD)
        remove("ebpf", hierarchy())
        return programs(hierarchy()), len(leftovers())

    assert box.in_box(inside) == ([], 1)


@pytest.mark.kernel
def test_down_leaves_the_tables_of_others_alone() -> None:
    def inside() -> str:
        subprocess.run(["nft", "add table inet filter"], check=True)
        opened(BAD)
        down()
        return subprocess.run(["nft", "list", "tables"], check=True, capture_output=True, text=True).stdout

    assert box.in_box(inside) == "table inet filter\n"


@pytest.mark.kernel
def test_a_host_without_cgroup2_has_a_table_at_most() -> None:
    def inside() -> tuple[object, list[str]]:
        opened(BAD, "nftables")
        subprocess.run(["umount", "-l", "/sys/fs/cgroup"], check=True)
        return hierarchy(), down()

    assert box.in_box(inside) == (None, ["nftables table inet agentsh_net"])


def of_another_version() -> list[str]:
    root = hierarchy()
    cgroup = os.open(root, os.O_RDONLY)
    code = bytes.fromhex("b700000001000000 9500000000000000")
    release = 34  # BPF_CGROUP_INET_SOCK_RELEASE, which this version does not use
    for name in ("agentsh_old", "theirs"):
        program = syscall.load_program(name, syscall.CGROUP_SOCK, release, code=code, licence="GPL")
        syscall.attach(cgroup, program, release)
    down()
    return [syscall.program_info(syscall.program_fd(n))[1] for n in syscall.attached(cgroup, release)]


@pytest.mark.kernel
def test_a_program_of_another_version_is_found_where_this_one_has_none_and_others_programs_stay() -> None:
    assert box.in_box(of_another_version) == ["theirs"]
