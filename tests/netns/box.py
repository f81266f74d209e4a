"""A private corner of the kernel for one test: own cgroup, mounts and network namespaces, gone when the test is.

`in_box(function)` runs the function in a forked child whose cgroup v2 root and network are its own. Linux of two network
namespaces joined by a veth pair: HERE (10.99.0.1, fd00:99::1) and THERE (10.99.0.2 and more, fd00:99::2 and more).
Needs root and a cgroup v2 mount; nothing outside the box is attached to, filtered or sent to.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import select
import signal
import socket
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentsh_net.kernel import net_namespaces

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | 0x40000
MNT_DETACH = 2

HERE_V4, HERE_V6 = "10.99.0.1", "fd00:99::1"
THERE_V4 = tuple(f"10.99.0.{n}" for n in range(2, 7))
THERE_V6 = tuple(f"fd00:99::{n}" for n in range(2, 7))

BPFFS = "/sys/fs/bpf"

# An emulated machine (tests/vm) takes this many times as long for the same.
SLOWNESS = 12 if "AGENTSH_NET_VM" in os.environ else 1

_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """Say why no box can be had here; empty when one can."""
    if os.geteuid() != 0:
        return "needs root"
    if _machine_cgroup2() is None:
        return "no cgroup v2 mount"
    return ""


def in_box(function: Callable[..., Any], *args: Any, timeout: float = 240) -> Any:
    """Run `function(*args)` in a fresh box and return what it returned; its exception is raised here with its traceback."""
    timeout *= SLOWNESS
    with _cgroup() as cgroup:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _be_the_box(cgroup, writer, function, args)
        os.close(writer)
        try:
            answer = _read_all(reader, timeout)
        finally:
            os.close(reader)
            (cgroup / "cgroup.kill").write_text("1")
            os.waitpid(child, 0)
    if not answer:
        raise AssertionError(f"the box said nothing within {timeout} s, or died")
    kind, value = pickle.loads(answer)
    if kind == "error":
        raise AssertionError(f"in the box:\n{value}")
    return value


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace by an open descriptor of it."""

    fd: int

    def socket(self, family: int, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> socket.socket:
        """Return a socket that belongs to this namespace, whoever uses it."""
        return self.call(lambda: socket.socket(family, kind, protocol))

    def call(self, function: Callable[[], Any]) -> Any:
        """Run `function` in a thread that lives in this namespace."""
        result: list[Any] = []
        failure: list[BaseException] = []

        def inside() -> None:
            try:
                _check(_libc.setns(self.fd, CLONE_NEWNET), "setns")
                result.append(function())
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return result[0]


def there(namespace: Namespace | None = None) -> Namespace:
    """Join a second network namespace (a new one, if none is given) to this one by a veth pair, and return it."""
    namespace = namespace or new_namespace()
    _ip(
        "link add here type veth peer name there",
        f"link set there netns /proc/self/fd/{namespace.fd}",
        *(f"addr add {HERE_V4}/24 dev here", f"addr add {HERE_V6}/64 dev here nodad", "link set here up"),
        pass_fds=(namespace.fd,),
    )
    addresses = [f"addr add {address}/24 dev there" for address in THERE_V4]
    addresses += [f"addr add {address}/64 dev there nodad" for address in THERE_V6]
    namespace.call(lambda: _ip("link set lo up", *addresses, "link set there up"))
    return namespace


def new_namespace() -> Namespace:
    """Make a network namespace that lives as long as its descriptor."""
    opened: list[int] = []

    def inside() -> None:
        _check(_libc.unshare(CLONE_NEWNET), "unshare")
        opened.append(os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    return Namespace(opened[0])


def await_that(claim: Callable[[], Any], *, within: float = 120) -> Any:
    """Return the first true value of `claim`, asked again and again; fails after `within` seconds."""
    within *= SLOWNESS
    deadline = time.monotonic() + within
    while not (value := claim()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {within} s: {claim}")
        select.select([], [], [], 0.005)
    return value


def keep_to_its_own_namespaces() -> None:
    """Have the product of this process look into this box's network namespaces only: in others, tests run at the same time."""
    everybodys = net_namespaces.others
    net_namespaces.others = lambda *proc: (path for path in everybodys(*proc) if _in_this_box(path))


def _in_this_box(namespace: Path) -> bool:
    """Say whether the process of a path /proc/PID/ns/net is below this box's cgroup root."""
    try:
        cgroups = (namespace.parents[1] / "cgroup").read_text()
    except OSError:  # it ended meanwhile
        return False
    return re.search("^0::/(?!\\.\\.)", cgroups, re.MULTILINE) is not None


def mount_bpffs(kind: str = "links") -> None:
    """Give this box a bpffs of its own, and have the product use it: kernel objects are pinned then; another kind: they are not."""
    os.environ["AGENTSH_NET_BPFFS"] = "none"
    if kind == "links":
        _mount("bpf", BPFFS, "bpf", 0)
        os.environ["AGENTSH_NET_BPFFS"] = BPFFS


def _be_the_box(cgroup: Path, writer: int, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        _check(_libc.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWCGROUP), "unshare")
        _mount(None, "/", None, MS_REC_PRIVATE)
        _cover_cgroupfs()
        _ip("link set lo up")
        keep_to_its_own_namespaces()
        answer = pickle.dumps(("value", function(*args)))
    except BaseException:
        answer = pickle.dumps(("error", traceback.format_exc()))
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(answer)
    os._exit(0)


def _cover_cgroupfs() -> None:
    """Make /sys/fs/cgroup this box's own cgroup v2 root, and the only one that is mounted."""
    for point in reversed(
        re.findall(
            r"^\S+ \S+ \S+ \S+ (/sys/fs/cgroup\S*) ", Path("/proc/self/mountinfo").read_text(), re.MULTILINE
        )
    ):
        _check(_libc.umount2(point.encode(), MNT_DETACH), f"umount {point}")
    _mount("none", "/sys/fs/cgroup", "cgroup2", 0)


def _machine_cgroup2() -> Path | None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            return Path(fields[4])
    return None


@contextlib.contextmanager
def _cgroup() -> Iterator[Path]:
    root = _machine_cgroup2()
    assert root is not None
    cgroup = root / f"agentsh-test-{os.getpid()}-{time.monotonic_ns()}"
    cgroup.mkdir()
    try:
        yield cgroup
    finally:
        await_that(lambda: _removed(cgroup))


def _removed(cgroup: Path) -> bool:
    """Say whether the tree is gone; a cgroup stays busy for a moment after its last process was killed."""
    try:
        for folder, _, _ in os.walk(cgroup, topdown=False):
            os.rmdir(folder)
    except OSError:
        (cgroup / "cgroup.kill").write_text("1")
        return False
    return not cgroup.exists()


def _read_all(reader: int, timeout: float) -> bytes:
    deadline, chunks = time.monotonic() + timeout, []
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _ip(*commands: str, pass_fds: tuple[int, ...] = ()) -> None:
    """Run `ip` once for all commands: an emulated machine takes a third of a second for each start of it."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True, pass_fds=pass_fds)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    _check(_libc.mount(encoded(source), target.encode(), encoded(kind), flags, None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def kill(pid: int) -> None:
    """Kill a child of ours at once, as a crash would, and reap it."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
