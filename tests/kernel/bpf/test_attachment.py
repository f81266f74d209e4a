"""Programs are held by pinned links or by the cgroup itself; whoever dies or meddles when, what was refused stays refused."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from few_files import no_file_left
from netns import box
from netns.scene import at, attempt, listening, opened, plan, trying

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import attachment, bpffs, links, syscall
from agentsh_net.kernel.bpf.attachment import detach_ours, ours
from agentsh_net.kernel.bpf.ebpf import Ebpf
from agentsh_net.kernel.bpf.loader import load_with_bcc
from agentsh_net.kernel.bpf.map_contents import MapContents
from agentsh_net.kernel.bpf.probe_source import MAPS, PROGRAMS
from agentsh_net.kernel.leftovers import down, leftovers

pytestmark = pytest.mark.kernel

ROOT = Path("/sys/fs/cgroup")
BAD = plan(1, deny=(at("10.99.0.2"),))
KINDS = ("links", "attach")
# Of the system calls before which a process is killed: all of them in `./dev soak`, some in CI.
STRIDE = 1 if "AGENTSH_NET_SOAK" in os.environ else 9 * min(box.SLOWNESS, 4)


def started(kind: str) -> Ebpf:
    os.environ[bpffs.VARIABLE] = box.BPFFS if kind == "links" else "none"
    plane = Ebpf(ROOT)
    plane.start(BAD)
    return plane


def pins() -> list[Path]:
    """Return what is pinned by us, as paths."""
    return sorted(path for path in Path(box.BPFFS).glob("agentsh-net/*/*/*"))


def folders() -> list[Path]:
    return sorted(Path(box.BPFFS).glob("agentsh-net/*/*"))


def in_stage(function: Callable[..., object], *args: object) -> object:
    """Run it in a box with a bpffs and a server that would answer."""

    def inside() -> object:
        box.mount_bpffs()
        with listening(box.there(), "10.99.0.2"):
            return function(*args)

    return box.in_box(inside)


def test_what_is_pinned_outlives_its_owner_and_is_whole() -> None:
    def inside() -> tuple[object, ...]:
        plane = started("links")
        said = plane.status(BAD)
        plane.close(remove=False)
        names = {path.name for path in pins()}
        rules = links.pinned(folders()[0] / "rules")
        held = len(MapContents({"rules": rules}).rules())
        modes = {path.stat().st_mode & 0o777 for path in (*folders(), folders()[0].parent)}
        return said.in_force, said.attachment, str(folders()[0]), names, held, modes, attempt("10.99.0.2")

    in_force, said, folder, names, held, modes, outcome = in_stage(inside)
    assert (in_force, said) == (True, f"links pinned in {folder}")
    assert names == {*MAPS, *PROGRAMS, *(f"link_{name.removeprefix('agentsh_')}" for name in PROGRAMS)}
    assert (held, modes, outcome) == (1, {0o700}, "EPERM")


def test_without_a_bpffs_they_are_attached_to_the_cgroup_and_that_is_said() -> None:
    def inside() -> tuple[str, list[Path]]:
        os.environ[bpffs.VARIABLE] = "/tmp"
        with listening(box.there(), "10.99.0.2"):
            plane = Ebpf(ROOT)
            plane.start(BAD)
            return plane.status(BAD).attachment, attempt("10.99.0.2"), pins()

    assert box.in_box(inside) == ("programs attached to the cgroup (no bpffs at /tmp)", "EPERM", [])


def others_and_ours(kind: str) -> list[str]:
    stranger = foreign_program()
    cgroup = os.open(ROOT, os.O_RDONLY)
    syscall.attach(cgroup, stranger, syscall.CONNECT4)
    plane = started(kind)
    attached = syscall.attached(cgroup, syscall.CONNECT4)
    plane.close(remove=True)
    names = [syscall.program_info(syscall.program_fd(n))[1] for n in attached[:1]]
    return [*names, str(len(attached)), str(len(syscall.attached(cgroup, syscall.CONNECT4)))]


@pytest.mark.parametrize("kind", KINDS)
def test_ours_stand_behind_the_programs_of_others_which_stay(kind: str) -> None:
    assert in_stage(others_and_ours, kind) == ["stranger", "2", "1"]


def foreign_program() -> int:
    """Load `return 1` for cgroup/connect4 under another's name."""
    code = bytes.fromhex("b700000001000000 9500000000000000")
    return syscall.load_program(
        "stranger", syscall.CGROUP_SOCK_ADDR, syscall.CONNECT4, code=code, licence="GPL"
    )


def dies_after(steps: int, deed: Callable[[], object]) -> bool:
    """Do it in a child that is killed after so many system calls of it; say whether it came to its end."""
    child = os.fork()
    if child == 0:
        left = count(steps, -1)

        def counted(function: Callable[..., object]) -> Callable[..., object]:
            def stepping(*args: object, **named: object) -> object:
                if next(left) <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **named)

            return stepping

        syscall.call = links.call = counted(syscall.call)
        for name in ("unlink", "rmdir", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        try:
            deed()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def killed_at_every_step(before: str, after: str) -> tuple[Counter[str], int, set[tuple[int, int]], int]:
    """A successor is killed after one system call, after two, and so on, each time over a predecessor that stands."""
    first = started(before)
    os.environ[bpffs.VARIABLE] = box.BPFFS if after == "links" else "none"
    second = Ebpf(ROOT)
    cgroup = os.open(ROOT, os.O_RDONLY)
    found = set()
    with trying("10.99.0.2") as outcomes:
        for steps in count(0, STRIDE):
            if dies_after(steps, lambda: second.start(BAD)):
                break
            first.restore(BAD)
            found.add((len(ours(cgroup)), len(folders())))
    first.close(remove=True)
    second.close(remove=False)
    down()
    return outcomes, steps, found, len(leftovers())


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_a_successor_that_is_killed_at_any_step_leaves_it_refused_and_nothing_that_is_not_cleaned_up(
    before: str, after: str
) -> None:
    outcomes, steps, found, left = in_stage(killed_at_every_step, before, after)
    assert outcomes.keys() == {"EPERM"}
    assert steps >= 36
    assert found == {(len(PROGRAMS), 1 if before == "links" else 0)}
    assert left == 0


def taken_over(before: str, after: str) -> tuple[Counter[str], int, int, bool]:
    cgroup = os.open(ROOT, os.O_RDONLY)
    plane = started(before)
    with trying("10.99.0.2") as outcomes:
        for kind in (after, before, after):
            successor = started(kind)
            plane.close(remove=False)
            plane = successor
    state = len(ours(cgroup)), len(folders()), plane.status(BAD).in_force
    plane.close(remove=True)
    return outcomes, *state, leftovers()


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_one_takes_over_from_the_other_without_a_gap(before: str, after: str) -> None:
    outcomes, attached, places, in_force, left = in_stage(taken_over, before, after)
    assert outcomes.keys() == {"EPERM"}
    assert (attached, places, in_force, left) == (len(PROGRAMS), int(after == "links"), True, [])


def older_version_over_links() -> tuple[str, int, int, list[str]]:
    """A version that knows no links attaches beside them, and detaches what it can: programs by themselves."""
    new = started("links")
    new.close(remove=False)
    cgroup = os.open(ROOT, os.O_RDONLY)
    old = started_without_knowing_links()
    beside = len(ours(cgroup))
    said = attempt("10.99.0.2")
    started("links")
    old.close(remove=False)
    return said, beside, len(ours(cgroup)), attempt("10.99.0.2")


def started_without_knowing_links() -> Ebpf:
    knows = attachment._detach_links, attachment.clear_pins
    attachment._detach_links = attachment.clear_pins = lambda *_, **__: None
    plane = started("attach")
    attachment._detach_links, attachment.clear_pins = knows
    return plane


def test_what_an_older_version_cannot_detach_is_in_force_beside_it_and_goes_with_the_next_start() -> None:
    assert in_stage(older_version_over_links) == ("EPERM", 2 * len(PROGRAMS), len(PROGRAMS), "EPERM")


def down_killed_at_every_step(kind: str) -> tuple[set[str], int, list[str], list[Path]]:
    said = set()
    for steps in count(0, 4 * STRIDE):
        started(kind).close(remove=False)
        done = dies_after(steps, down)
        said.add("removed" if not leftovers() else "some left")
        down()
        assert attempt("10.99.0.2") == "connected"
        if done:
            return said, steps, leftovers(), pins()
    raise AssertionError


@pytest.mark.parametrize("kind", KINDS)
def test_a_removal_that_is_broken_off_is_finished_by_the_next(kind: str) -> None:
    said, steps, left, pinned = in_stage(down_killed_at_every_step, kind)
    assert said == {"some left", "removed"}
    assert steps > 30
    assert (left, pinned) == ([], [])


def link_of(name: str) -> int:
    return links.pinned(folders()[0] / f"link_{name}")


def detached() -> None:
    links.detach(link_of("conn4"))


def turned() -> None:
    """Have a link of ours hold a program of somebody's (LINK_UPDATE)."""
    syscall.call(29, struct.pack("=IIII", link_of("conn4"), foreign_program(), 0, 0), "LINK_UPDATE")


def unpinned() -> None:
    shutil.rmtree(folders()[0])


def one_unpinned() -> None:
    (folders()[0] / "link_egress").unlink()


def a_map_unpinned() -> None:
    (folders()[0] / "rules").unlink()


def replaced() -> None:
    """Pin something else under our name."""
    path = folders()[0] / "link_make"
    path.unlink()
    links.pin(path, foreign_program())


def forgotten() -> None:
    """Remove everything of the project's, as who believes that the daemon is gone."""
    cgroup = os.open(ROOT, os.O_RDONLY)
    detach_ours(cgroup, keep=set())
    attachment.clear_pins(ROOT.stat().st_ino, keep=set())


DEEDS = {
    detached: "detached: agentsh_conn4 (at /sys/fs/cgroup)",
    turned: "detached: agentsh_conn4 (at /sys/fs/cgroup)",
    unpinned: "no longer pinned",
    one_unpinned: "no longer pinned",
    a_map_unpinned: "no longer pinned",
    replaced: "no longer pinned",
    forgotten: "detached: agentsh_conn4, agentsh_conn6,",
}


def meddled(deed: Callable[[], None]) -> tuple[object, ...]:
    plane = started("links")
    whole = len(pins())
    deed()
    heard, before = plane.detached(), plane.status(BAD)
    # Who tries while only the packets are refused waits for 5 s.
    meanwhile = attempt("10.99.0.2") if before.reason.startswith("no longer pinned") else ""
    plane.restore(BAD)
    after = plane.status(BAD)
    plane.close(remove=False)  # from here on the pins alone hold
    cgroup = os.open(ROOT, os.O_RDONLY)
    counts = len(pins()) == whole, len(ours(cgroup)), attempt("10.99.0.2")
    return heard, before.in_force, before.reason, before.attachment, meanwhile, after.in_force, *counts


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_what_root_does_to_links_and_pins_is_seen_and_mended(deed: Callable[[], None]) -> None:
    heard, in_force, reason, held, meanwhile, mended, whole, attached, then = in_stage(meddled, deed)
    assert (heard, in_force, held) == (True, False, "")
    assert reason.startswith(DEEDS[deed])
    if reason.startswith("no longer pinned"):
        assert meanwhile == "EPERM"  # a pin that is gone opens nothing while the daemon lives
    assert (mended, whole, attached, then) == (True, True, len(PROGRAMS), "EPERM")


def out_of_files() -> tuple[object, ...]:
    plane = started("links")
    with no_file_left():
        meanwhile = plane.status(BAD).reason
        with pytest.raises(KernelError, match="Too many open files") as refused:
            plane.restore(BAD)
        assert "LimitNOFILE=" in refused.value.remedy
    after = plane.status(BAD)
    return meanwhile, attempt("10.99.0.2"), after.in_force, after.attachment.partition(" in ")[0]


def test_a_moment_without_file_descriptors_neither_is_taken_for_lost_pins_nor_loses_them() -> None:
    meanwhile, there, in_force, held = in_stage(out_of_files)
    assert meanwhile.startswith("the kernel does not answer: [Errno 24] Too many open files")
    assert there == "EPERM"
    assert (in_force, held) == (True, "links pinned")


def bpffs_taken_away(how: str) -> tuple[Counter[str], str, int, bool]:
    plane = started("links")
    with trying("10.99.0.2") as outcomes:
        if how == "unmounted":
            while os.path.ismount(box.BPFFS):  # the machine's own may be below
                subprocess.run(["umount", "-l", box.BPFFS], check=True)
        else:
            shutil.rmtree(folders()[0])
            subprocess.run(["mount", "-o", "remount,ro", box.BPFFS], check=True)
        lost = plane.detached()
        plane.restore(BAD)
    status = plane.status(BAD)
    plane.close(remove=False)
    cgroup = os.open(ROOT, os.O_RDONLY)
    return outcomes, status.attachment, len(ours(cgroup)), lost and status.in_force, attempt("10.99.0.2")


@pytest.mark.parametrize("how", ["unmounted", "read-only"])
def test_where_nothing_can_be_pinned_any_more_the_cgroup_itself_holds_them_without_a_gap(how: str) -> None:
    outcomes, said, attached, mended, then = in_stage(bpffs_taken_away, how)
    assert outcomes.keys() == {"EPERM"}
    assert said.startswith("programs attached to the cgroup (")
    assert (attached, mended, then) == (len(PROGRAMS), True, "EPERM")


def test_links_that_cannot_be_pinned_at_the_start_are_given_up_for_the_cgroup_itself() -> None:
    def inside() -> tuple[str, int, list[Path], str]:
        plane = Ebpf(ROOT)
        links.pin = refuse  # as a security module may
        plane.start(BAD)
        cgroup = os.open(ROOT, os.O_RDONLY)
        said = plane.status(BAD).attachment
        plane.close(remove=False)
        return said, len(ours(cgroup)), pins(), attempt("10.99.0.2")

    said, attached, pinned, outcome = in_stage(inside)
    assert said == "programs attached to the cgroup ([Errno 13] no)"
    assert (attached, pinned, outcome) == (len(PROGRAMS), [], "EPERM")


def somebody_is_in_the_way(caplog: pytest.LogCaptureFixture) -> tuple[object, ...]:
    theirs = Path(box.BPFFS, "agentsh-net")
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 0)
    plane = started("links")
    refused = attempt("10.99.0.2")
    said, warned = plane.status(BAD).attachment, caplog.text
    plane.close(remove=True)
    down()
    return said, warned, refused, theirs.stat().st_uid


def test_a_directory_of_somebody_s_is_left_alone_and_told(caplog: pytest.LogCaptureFixture) -> None:
    said, warned, outcome, owner = in_stage(somebody_is_in_the_way, caplog)
    assert (
        said
        == "programs attached to the cgroup (/sys/fs/bpf/agentsh-net is another user's, or open to others)"
    )
    assert "rm -r /sys/fs/bpf/agentsh-net" in warned
    assert (outcome, owner) == ("EPERM", 65534)


@pytest.mark.bcc
def test_programs_that_bcc_compiled_are_held_by_links_too() -> None:
    def inside() -> tuple[str, str, int]:
        plane = Ebpf(ROOT, load_with_bcc)
        plane.start(BAD)
        plane.close(remove=False)
        cgroup = os.open(ROOT, os.O_RDONLY)
        return attempt("10.99.0.2"), pins()[-1].name, len(ours(cgroup))

    assert in_stage(inside) == ("EPERM", "streams", len(PROGRAMS))


def refuse(*_: object) -> None:
    raise PermissionError(13, "no")


def test_stale_pins_without_a_daemon_are_told_and_removed() -> None:
    def inside() -> tuple[bool, list[str], list[Path]]:
        opened(BAD, "ebpf").close(remove=False)
        cgroup = os.open(ROOT, os.O_RDONLY)
        detach_ours(cgroup, keep=set())
        told = leftovers()
        return told == [f"pins in {folders()[0].parent}"], down() == told, leftovers(), pins()

    assert in_stage(inside) == (True, True, [], [])


def a_cgroup_comes_again() -> tuple[int, int, int]:
    """Two hierarchies share a bpffs; one goes, and comes again under another id."""
    below = ROOT / "below"
    counts = []
    for _ in range(2):
        below.mkdir()
        plane = Ebpf(below)
        plane.start(BAD)
        counts.append(len(folders()))
        plane.close(remove=False)
        below.rmdir()
        # The kernel detaches what was at a cgroup some time after it is gone.
        box.await_that(lambda: links.look(links.pinned(pins()[0].parent / "link_make")).cgroup_id == 0)
    started("links")
    return (*counts, len(folders()))


def test_pins_of_a_cgroup_that_is_gone_go_with_the_next_start() -> None:
    assert in_stage(a_cgroup_comes_again) == (1, 1, 1)
