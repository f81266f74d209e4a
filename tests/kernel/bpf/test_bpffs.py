"""Pins go only where they outlive the daemon and nobody else can take them away; what is not ours is neither used nor removed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from netns import box

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import bpffs

pytestmark = pytest.mark.kernel

ROOT = Path("/sys/fs/cgroup")
BASE = Path(box.BPFFS)


def why_not(asked: str = box.BPFFS) -> str:
    os.environ[bpffs.VARIABLE] = asked
    try:
        bpffs.make(bpffs.directory(ROOT) / "1")
    except KernelError as error:
        return str(error)
    return ""


def refused(spoil: str) -> str:
    box.mount_bpffs()
    subprocess.run(spoil, shell=True, check=True, cwd=BASE)
    return why_not()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("true", ""),
        ("ln -s /tmp agentsh-net", "/sys/fs/bpf/agentsh-net is no directory"),
        ("mkdir -m 700 agentsh-net && chown 65534 agentsh-net", "/sys/fs/bpf/agentsh-net is another user's, or open to others"),
        ("mkdir -m 755 agentsh-net", "/sys/fs/bpf/agentsh-net is another user's, or open to others"),
        ("mkdir -m 700 agentsh-net && ln -s /tmp agentsh-net/$(stat -c %i /sys/fs/cgroup)", "is no directory"),
        ("chmod 777 .", "others may remove what lies in /sys/fs/bpf"),
        ("chown 65534 .", "others may remove what lies in /sys/fs/bpf"),
        ("mount -o remount,ro .", "/sys/fs/bpf is mounted read-only"),
    ],
    ids=["nothing", "a symbolic link", "another's", "open", "a link below", "writable", "a user's", "read-only"],
)  # fmt: skip
def test_a_place_that_is_not_ours_alone_is_refused(spoil: str, reason: str) -> None:
    said = box.in_box(refused, spoil)
    assert (reason in said) if reason else said == ""


def test_the_variable_says_where_or_that_nothing_is_pinned() -> None:
    def inside() -> list[str]:
        return [why_not("none"), why_not("/tmp"), why_not("/nowhere"), why_not("")]

    none, no_bpffs, nowhere, default = box.in_box(inside)
    assert (none, no_bpffs) == ("AGENTSH_NET_BPFFS is none", "no bpffs at /tmp")
    assert nowhere == "/nowhere: No such file or directory"
    assert default.startswith(("no bpffs at /sys/fs/bpf", "the cgroup root", "/sys/fs/bpf may be"))


def host(tmp_path: Path, *, names: str = "kthreadd") -> Path:
    """Make a /proc of a host whose first process has a directory /bpf."""
    (tmp_path / "proc/2").mkdir(parents=True)
    (tmp_path / "proc/2/comm").write_text(f"{names}\n")
    (tmp_path / "proc/1").mkdir()
    (tmp_path / "proc/1/root").symlink_to("/")
    return tmp_path / "proc"


def test_the_first_process_s_own_bpffs_with_the_whole_hierarchy_outlives_us(tmp_path: Path) -> None:
    assert bpffs._why_mortal(tmp_path, tmp_path, host(tmp_path)) == ""


def test_a_container_s_processes_bpffs_or_cgroups_may_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part/cgroup.events").write_text("populated 1\n")
    proc = host(tmp_path)
    assert "the cgroup root" in bpffs._why_mortal(tmp_path, tmp_path / "part", proc)
    (tmp_path / "elsewhere").mkdir()
    (proc / "1/root").unlink()
    (proc / "1/root").symlink_to(tmp_path / "elsewhere")
    assert "the host's cannot be seen" in bpffs._why_mortal(tmp_path, tmp_path, proc)
    theirs = tmp_path / "elsewhere" / tmp_path.relative_to("/")
    theirs.mkdir(parents=True)
    assert bpffs._why_mortal(tmp_path, tmp_path, proc) == f"{tmp_path} is not the host's"
    (proc / "2/comm").write_text("a container's\n")
    assert "processes cannot be seen" in bpffs._why_mortal(tmp_path, tmp_path, proc)


def cleared() -> tuple[list[Path], list[str], list[str]]:
    box.mount_bpffs()
    place = bpffs.directory(ROOT)
    for name in ("1", "2"):
        bpffs.make(place / name)
    (BASE / "theirs").mkdir()
    another = BASE / "agentsh-net/another"
    another.mkdir()
    left = bpffs.left(ROOT.stat().st_ino)
    bpffs.clear(place, keep={"2"})
    kept = sorted(bpffs.inodes(place))
    bpffs.clear(place, keep=set())
    return (
        left == [place],
        kept,
        sorted(p.name for p in (*BASE.iterdir(), *another.parent.iterdir()) if p.is_dir()),
    )


def test_of_what_is_left_only_this_hierarchy_s_is_removed() -> None:
    found, kept, stays = box.in_box(cleared)
    assert (found, kept) == (True, ["2"])
    assert stays == ["agentsh-net", "another", "theirs"]


def not_cleared(spoil: str) -> bool:
    box.mount_bpffs()
    victim = BASE / "victim" / str(ROOT.stat().st_ino) / "1"
    victim.mkdir(parents=True)
    subprocess.run(spoil, shell=True, check=True, cwd=BASE)
    for place in bpffs.left(ROOT.stat().st_ino):
        bpffs.clear(place, keep=set())
    return victim.exists()


def test_nothing_is_removed_through_a_link_of_somebody_s() -> None:
    assert box.in_box(not_cleared, "ln -s victim agentsh-net")


def test_the_host_s_own_directory_is_used_where_the_first_process_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def inside() -> str:
        box.mount_bpffs()
        del os.environ[bpffs.VARIABLE]
        monkeypatch.setattr(bpffs, "_why_mortal", lambda *_: "")
        return str(bpffs.directory(ROOT))

    assert box.in_box(inside).startswith("/sys/fs/bpf/agentsh-net/")
