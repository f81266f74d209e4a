"""Sessions have cgroups of their own, which a process enters by number, and which go when nothing runs in them."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
from ipaddress import ip_address
from pathlib import Path

import pytest
from few_files import no_file_left
from netns import box

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import TCP
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.cgroups import own_cgroups
from agentsh_net.kernel.cgroups.own_cgroups import OwnCgroups

pytestmark = pytest.mark.kernel

ROOT = Path("/sys/fs/cgroup")


def asleep() -> int:
    child = os.fork()
    if child == 0:
        signal.pause()
    return child


def cgroup_of(pid: int) -> str:
    return next(
        line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::")
    )


def life() -> dict[str, object]:
    own = OwnCgroups(ROOT)
    said: dict[str, object] = {"empty": own.live()}
    own.begin("one")
    child = asleep()
    own.enter("one", child)
    said["inside"] = cgroup_of(child)
    number = (own.sessions / "one.session").stat().st_ino
    (own.sessions / "one.session" / "below").mkdir()
    said["ended while it runs"] = own.ended()
    again = OwnCgroups(ROOT)  # after a crash
    said["adopted"] = again.live(), again.session_of(number)
    try:
        again.begin("one")
    except KernelError as error:
        said["twice"] = str(error)
    box.kill(child)
    said["ended"] = box.await_that(again.ended)
    again.end("one")
    said["gone"] = again.live(), again.session_of(number), own.session_of(number)
    worker = asleep()
    again.employ(worker)
    said["worker"] = cgroup_of(worker)
    said["kept"] = own_cgroups.remove_empty(ROOT)
    box.kill(worker)
    box.await_that(lambda: not own_cgroups.remove_empty(ROOT))
    said["left"] = (ROOT / "agentsh-net").exists()
    return said


def test_a_session_lives_from_its_first_process_to_its_last_whoever_looks_after_it() -> None:
    assert box.in_box(life) == {
        "empty": [],
        "inside": "0::/agentsh-net/sessions/one.session",
        "ended while it runs": [],
        "adopted": (["one"], "one"),
        "twice": "session one runs already",
        "ended": ["one"],
        "gone": ([], "one", "one"),
        "worker": "0::/agentsh-net/workers",
        "kept": ["/agentsh-net/workers", "/agentsh-net"],
        "left": False,
    }


def refused() -> list[str]:
    """Ask for what the kernel does not do."""
    own = OwnCgroups(ROOT)
    own.begin("one")
    child = asleep()
    own.enter("one", child)
    said = []
    for action in (lambda: own.end("one"), lambda: own.enter("nobody", child)):
        with pytest.raises(KernelError) as caught:
            action()
        said.append(str(caught.value).replace(str(child), "CHILD"))
        assert (caught.value.layer, bool(caught.value.remedy)) == (own_cgroups.LAYER, True)
    box.kill(child)
    return said


def test_what_the_kernel_refuses_is_an_error_that_names_what_and_where() -> None:
    sessions = ROOT / "agentsh-net" / "sessions"
    assert box.in_box(refused) == [
        f"cannot remove {sessions}/one.session: Device or resource busy",
        f"cannot move process CHILD into {sessions}/nobody.session: No such file or directory",
    ]


def names() -> list[str]:
    own = OwnCgroups(ROOT)
    for name in ("cgroup.procs", "..x", "a" * 64, "memory.max"):
        own.begin(name)
    return [*own.live(), *own.present(("memory.max", "nobody"))]


def test_a_session_may_be_called_as_a_file_of_cgroupfs_is() -> None:
    assert box.in_box(names) == ["..x", "a" * 64, "cgroup.procs", "memory.max", "memory.max"]


def test_a_path_names_its_session_from_any_depth() -> None:
    def inside() -> list[str]:
        own = OwnCgroups(ROOT)
        paths = [
            "/agentsh-net/sessions/x.session",
            "/agentsh-net/sessions/x.session/a/b",
            "/agentsh-net/workers",
        ]
        return [own.session_of_path(p) for p in [*paths, "/", "/user.slice/agentsh-net/sessions/x.session"]]

    assert box.in_box(inside) == ["x", "x", "", "", ""]


def test_a_process_is_of_the_session_in_whose_cgroup_it_runs() -> None:
    def inside() -> list[str]:
        own = OwnCgroups(ROOT)
        before = own.session_of_process(os.getpid())
        own.begin("mine")
        own.enter("mine", os.getpid())
        (own.sessions / "mine.session" / "below").mkdir()
        within = own.session_of_process(os.getpid())
        (own.sessions / "mine.session" / "below" / "cgroup.procs").write_text(str(os.getpid()))
        return [before, within, own.session_of_process(os.getpid()), own.session_of_process(1 << 22)]

    assert box.in_box(inside) == ["", "mine", "mine", ""]


def test_a_hierarchy_that_may_not_be_written_is_told_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(KernelError) as caught:
        OwnCgroups(tmp_path / "file-system" / "\0".replace("\0", "x" * 300))
    assert caught.value.remedy


def test_a_cgroup_that_somebody_removed_is_missed() -> None:
    def inside() -> list[str]:
        own = OwnCgroups(ROOT)
        before = own.why_not()
        own.sessions.rmdir()
        return [before, own.why_not()]

    before, after = box.in_box(inside)
    assert before == ""
    assert "sessions" in after


def test_what_could_be_made_is_told_without_making_it() -> None:
    def inside() -> tuple[str, bool]:
        return own_cgroups.possible(), (ROOT / "agentsh-net").exists()

    told, made = box.in_box(inside)
    assert told == "/sys/fs/cgroup/agentsh-net, found by nftables at any level: this is a cgroup namespace"
    assert not made


def test_a_hierarchy_that_is_mounted_read_only_is_told() -> None:
    def inside() -> str:
        subprocess.run(["mount", "-o", "remount,ro,bind", "/sys/fs/cgroup"], check=True)
        try:
            return own_cgroups.possible()
        except KernelError as error:
            return f"{error}; {error.remedy}"

    assert "may not be written; run as root" in box.in_box(inside)


def made_again() -> dict[str, object]:
    own = OwnCgroups(ROOT)
    first, gone, worker = own.ids, asleep(), asleep()
    for pid in (gone, worker):
        own.employ(pid)
    said: dict[str, object] = {"at work": own.why_not()}
    (ROOT / "cgroup.procs").write_text(str(worker))
    said["strayed"] = own.why_not() == f"not in {ROOT}/agentsh-net/workers: the proxy's process {worker}"
    box.kill(gone)
    box.await_that(lambda: not own_cgroups.remove_empty(ROOT))
    said["removed"] = own.why_not()
    own.make_again()
    said["again"] = (
        own.why_not(),
        cgroup_of(worker),
        own.ids != first,
        (own.workers / "cgroup.procs").read_text() == f"{worker}\n",
    )
    own.make_again()
    (ROOT / "cgroup.procs").write_text(str(worker))
    own_cgroups.remove_empty(ROOT)
    own.begin("one")
    said["by a session"] = own.live(), cgroup_of(worker)
    box.kill(worker)
    subprocess.run(["umount", "-l", str(ROOT)], check=True)
    try:
        own.make_again()
    except KernelError as error:
        said["unmounted"] = str(error), error.remedy
    return said


def test_what_somebody_removed_is_made_again_with_the_proxy_in_it_and_nobody_else() -> None:
    assert box.in_box(made_again) == {
        "at work": "",
        "strayed": True,
        "removed": f"{ROOT}/agentsh-net/sessions: No such file or directory",
        "again": ("", "0::/agentsh-net/workers", True, True),
        "by a session": (["one"], "0::/agentsh-net/workers"),
        "unmounted": (f"no cgroup v2 at {ROOT} any more", f"mount -t cgroup2 none {ROOT}"),
    }


def of_connections() -> list[str | None]:
    """Whose the connections are of clients outside, in a session, below it, and gone from it."""
    box.there()  # brings `lo` up
    own = OwnCgroups(ROOT)
    own.begin("mine")
    below = own.sessions / "mine.session" / "below"
    listener = socket.create_server(("127.0.0.1", 0))
    port, loopback = listener.getsockname()[1], ip_address("127.0.0.1")
    own.enter("mine", os.getpid())
    below.mkdir()
    said = []
    for cgroup in (ROOT, below.parent, below, ROOT):
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        client = socket.create_connection(("127.0.0.1", port))
        sender = Packet(loopback, loopback, TCP, client.getsockname()[1], port)
        (ROOT / "cgroup.procs").write_text(str(os.getpid()))  # the socket stays what it was
        said += [own.session_of_sender(sender) for _ in range(2)]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    return [*said, own.session_of_sender(sender)]


def test_a_connection_is_of_the_session_in_which_its_clients_socket_was_made() -> None:
    assert box.in_box(of_connections) == ["", "", "mine", "mine", "mine", "mine", "", "", None]


def without_descriptors() -> tuple[list[str], list[str], str]:
    own = OwnCgroups(ROOT)
    own.begin("one")
    child = asleep()
    own.enter("one", child)
    own.live()
    with no_file_left():
        live, ended = own.live(), own.ended()
        try:
            own.enter("one", child)
        except KernelError as error:
            remedy = error.remedy
    box.kill(child)
    return live, ended, remedy


def test_a_moment_without_file_descriptors_ends_no_session_in_which_an_agent_runs() -> None:
    live, ended, remedy = box.in_box(without_descriptors)
    assert (live, ended) == (["one"], [])
    assert "LimitNOFILE=" in remedy
