"""The server behind a shim: started as the client would have started it, signalled as the shim is, and mourned by its own status.

What it says is not its business. Light on purpose (see `shim`).
"""

from __future__ import annotations

import contextlib
import os
import signal

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final, NoReturn

NOT_FOUND: Final = 127  # as shells say it (POSIX, 2.8.2)
NOT_EXECUTABLE: Final = 126

# What a client, a terminal or an init may send to the process that it takes for the server.
FORWARDED: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
# A signal to the whole process group reached the server already: it has so many seconds to die of that one, which many take for
# their clean-up. Clients that signal the shim alone wait 2 s before they kill it.
GRACE: Final = 0.5
_TWICE: Final = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_PR_SET_CHILD_SUBREAPER: Final = 36


class Child:
    """A running server. `stdin` and `stdout` are our ends of its pipes; `started` is readable (empty) once it runs."""

    __slots__ = ("_due", "pid", "started", "status", "stdin", "stdout")

    def __init__(self, pid: int, stdin: int, stdout: int, started: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.started = started
        self.status: int | None = None  # as waitpid(2) tells it, once it is dead
        self._due: list[tuple[float, int]] = []  # signals to send, and when

    @property
    def deadline(self) -> float | None:
        """When the next signal is to be sent."""
        return self._due[0][0] if self._due else None

    def forward(self, number: int, now: float) -> None:
        """Pass on a signal that came to the shim."""
        if number in _TWICE:
            self._due.append((now + GRACE, number))
        else:
            self.kill(number)

    def expire(self, now: float) -> None:
        """Send the signals that are due."""
        while self._due and self._due[0][0] <= now:
            self.kill(self._due.pop(0)[1])

    def kill(self, number: int) -> None:
        """Send a signal, if there is somebody to get it."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_all(self, number: int) -> None:
        """Send a signal to it and to all that it started: launchers (npx, uvx, a shell) do not always pass one on."""
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def reap(self) -> bool:
        """Say whether it is dead, and keep its status; what it left to us is buried too."""
        with contextlib.suppress(ChildProcessError):
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                if dead[0] == self.pid:
                    self.status = dead[1]
                    self._due = []
        return self.status is not None

    def fault(self) -> int:
        """Return why it could not be started (errno), once `started` is readable; 0 where it runs."""
        told = os.read(self.started, 8)
        return int(told) if told else 0


def spawn(command: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start a server with pipes for its input and output; all else is ours: stderr, directory, limits, process group."""
    stdin, our_stdin = os.pipe2(os.O_CLOEXEC)
    our_stdout, stdout = os.pipe2(os.O_CLOEXEC)
    started, tell = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(command, environ, (stdin, stdout, tell), parent)
    for theirs in (stdin, stdout, tell):
        os.close(theirs)
    os.set_blocking(our_stdin, False)
    return Child(pid, our_stdin, our_stdout, started)


def adopt() -> None:
    """Be the parent, from now on, of what a server starts and leaves behind, so that `Child.kill_all` finds that too."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def nobody() -> Child:
    """Return a server that is none: it was never started, and is dead."""
    child = Child(0, -1, -1, -1)
    child.status = 0
    return child


def leave_as(status: int) -> int:
    """End as the server ended: die of its signal, or return its exit status."""
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the server's core is the one that tells something
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number  # where it is blocked, as shells say it


def _become(
    command: Sequence[str], environ: Mapping[str, str], ends: tuple[int, int, int], parent: int
) -> NoReturn:
    """Be the server. Runs in the forked child."""
    stdin, stdout, tell = ends
    try:
        _die_with(parent)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and exec would pass that on
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(command[0], list(command), dict(environ))  # noqa: S606 - running it is what a shim is for
    except OSError as error:
        os.write(tell, str(error.errno).encode())
    finally:
        os._exit(NOT_FOUND)


def _descendants(ancestor: int) -> list[int]:
    """Return the processes that a process started, and those that they did (proc_pid_stat(5))."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs a start
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = [ancestor]
    for known in found:
        found += [pid for pid, parent in parents.items() if parent == known]
    return found[1:]


def _die_with(parent: int) -> None:
    """Have the kernel kill us when the shim is killed: nobody would be between client and server any more."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_FOUND)


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value)
