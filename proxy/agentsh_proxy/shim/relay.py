"""The shim's loop: client, server and daemon, each read when there is room for what it says, and a server ended that policy denies.

How a server is started and mourned is `child`'s business, what becomes of its lines `conversation`'s. Light on purpose
(see `shim`).
"""

from __future__ import annotations

import os
import select
import signal
import time

from agentsh_net.core.links.shim_link import STOPPED
from agentsh_proxy.shim.child import NOT_EXECUTABLE, Child
from agentsh_proxy.shim.conversation import Conversation
from agentsh_proxy.shim.daemon import Daemon
from agentsh_proxy.shim.pace import Pace
from agentsh_proxy.shim.refusals import AGAIN

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from typing import Final

_READ: Final = 1 << 16  # what a pipe holds
# A pipe that poll(2) calls writable takes so many bytes without blocking (pipe(7)). The client's end is not made
# non-blocking, because that would be so for every process that shares it.
_WRITE: Final = select.PIPE_BUF

# Seconds after the client closed our input in which a server that says nothing is let be, then asked to end, then killed.
PATIENCE: Final = 60.0
KILL_AFTER: Final = 5.0
DENIED_PATIENCE: Final = 2.0  # seconds for one that policy denies to end by itself
# Seconds of silence after which a dead server's output counts as ended, though a process that it left has it open.
SILENCE: Final = 1.0

# Times that a server is read before the client is written to: who answers eight calls writes eight times, and is at the
# second answer while we look at the first.
_IN_A_ROW: Final = 3

_NEVER: Final = (None, None, None)


class Relay:
    """The loop: client, server and daemon, each read when there is room for what it says."""

    def __init__(self, child: Child, daemon: Daemon, woken: int) -> None:
        self._child = child
        self._daemon = daemon
        self._woken = woken
        self._talk = Conversation(daemon)
        self._pace = Pace()
        self._up, self._down = self._talk.up, self._talk.down
        self._stdin: int | None = 0
        self._stdout: int | None = 1
        runs = child.status is None
        self._child_in: int | None = child.stdin if runs else None
        self._child_out: int | None = child.stdout if runs else None
        self._starting: int | None = child.started if runs else None
        self._fault = 0
        self._ending: float | None = None  # when a server whose input has ended is asked to end, then killed
        self._asked_to_end = False
        self._denied = False  # policy denies the server: it is ended, and asked nothing any more
        self._unanswered = 0  # requests that it left so
        self._signal = False  # told us to end
        self.status: int | None = None  # of a shim that has no server: its own
        self._silent_since = 0.0
        self._poll = select.poll()
        self._ready_to_write = select.poll()
        self._ready_to_write.register(1, select.POLLOUT)
        self._more = select.poll()  # of the server, by now
        if runs:
            self._more.register(child.stdout, select.POLLIN)
        self._watched: dict[int, int] = {}
        self._wants: tuple[int | None, ...] = ()
        self._due: float | None = None  # when something is to be done though nobody says anything

    def run(self) -> int:
        """Relay until the server is dead and all it said is written; return why it could not be started (errno), or 0.

        Where policy denies the server, until the client closes, a signal comes, or policy allows it again.
        """
        while True:
            if self._denied is not self._daemon.denied:
                self._turn()
            if self._left() if self._denied else self._child.status is not None and self._over():
                break
            self._watch()
            for fd, _ in self._poll.poll(self._timeout()):
                self._serve(fd)
            if self._due is not None:
                self._expire(time.monotonic())
            self._write()
            if self._child_out is None and self._stdout is not None and not self._denied and self._down.idle:
                self._end_output()
        if self._denied:
            self._child.kill_all(signal.SIGKILL)  # what it left behind
        return self._fault

    def _turn(self) -> None:
        """Follow a policy that denies the server by now; one that allows it again finds none, and its client has to start it anew."""
        if self._denied:
            if self._stdin is not None:
                self._daemon.say(AGAIN)
                self._leave(NOT_EXECUTABLE)
            return
        self._denied, self.status = True, 0
        self._unanswered = self._talk.deny()
        if self._child.status is not None:
            return
        self._daemon.say(f"the server is ended: {self._daemon.denial}")
        if self._child_in is not None:
            self._close(self._child_in)
            self._child_in = None
        self._ending, self._asked_to_end = time.monotonic() + DENIED_PATIENCE, False

    def _leave(self, status: int) -> None:
        """Hear the client no more, and end once it is answered and the server is dead."""
        self.status = status
        self._stdin = None

    def _left(self) -> bool:
        """Say whether a shim whose server is denied has nothing more to do."""
        if self._child.status is None:
            return False
        asked = self._stdout is not None and (
            self._stdin is not None or not (self._up.idle and self._down.idle)
        )
        return self._signal or not asked

    def _over(self) -> bool:
        """Say whether a server that is dead has nothing more to say."""
        if not self._down.idle or self._starting is not None:
            return False
        return self._child_out is None or time.monotonic() - self._silent_since >= SILENCE

    def _watch(self) -> None:
        """Tell the kernel what we wait for; a descriptor that is not wanted now must not wake us."""
        up, down, link = self._up, self._down, self._daemon.fd
        wants: tuple[int | None, ...]
        if not (up.out or down.out or up.waiting or down.waiting or self._daemon.wants_to_write):
            wants = (self._starting, self._stdin, self._child_out, None, None, link, False)
        else:
            wants = (
                self._starting,
                None if up.full else self._stdin,
                None if down.full else self._child_out,
                self._child_in if up.out and not self._daemon.behind else None,
                self._stdout if down.out else None,
                link,
                self._daemon.wants_to_write,
            )
        if wants == self._wants:
            return
        self._wants = wants
        wanted = dict.fromkeys((self._woken, *(fd for fd in wants[:3] if fd is not None)), select.POLLIN)
        wanted |= dict.fromkeys((fd for fd in wants[3:5] if fd is not None), select.POLLOUT)
        if link is not None:
            wanted[link] = select.POLLIN | (select.POLLOUT if self._daemon.wants_to_write else 0)
        for fd in self._watched.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, events in wanted.items():
            self._poll.register(fd, events)
        self._watched = wanted

    def _timeout(self) -> float | None:
        """Return the milliseconds until something is due, None where nothing is."""
        times = (self._child.deadline, self._daemon.deadline, self._ending)
        dead = self._child.status is not None and not self._denied
        if times == _NEVER and not dead:
            self._due = None
            return None
        due = [moment for moment in times if moment is not None]
        if dead:
            due.append(self._silent_since + SILENCE)
        self._due = min(due)
        return max(0.0, (self._due - time.monotonic()) * 1000 + 1)

    def _serve(self, fd: int) -> None:
        if fd == self._child_out:
            self._read_server(fd)
        elif fd == self._stdin:
            self._read_client(fd)
        elif fd == self._daemon.fd:
            if self._daemon.wants_to_write:
                self._daemon.write()
            if self._daemon.fd is not None:
                self._daemon.read()
        elif fd == self._woken:
            self._signalled()
        elif fd == self._starting:
            self._fault = self._child.fault()
            self._starting = None
            self._close(fd)

    def _read_client(self, fd: int) -> None:
        data = _read(fd)
        if data is None:
            return
        if data:
            self._daemon.hear()
            self._up.feed(data)
            self._pace.keep(self._talk.waiting)
        else:
            self._stdin = None
            self._daemon.hear()
            self._up.end()
            if not self._denied:
                self._ending = time.monotonic() + PATIENCE

    def _read_server(self, fd: int) -> None:
        for _ in range(_IN_A_ROW):
            data = _read(fd)
            if data is None:
                return
            if self._due is not None:  # otherwise nobody counts its silence
                self._silent_since = time.monotonic()
                if self._ending is not None and not self._asked_to_end and not self._denied:
                    self._ending = self._silent_since + PATIENCE
            if not data:
                self._down.end()
                self._close_child_out()
                return
            if self._denied:
                return  # its client hears no more of it
            self._down.feed(data)
            if self._down.full or not self._more.poll(0):
                return

    def _signalled(self) -> None:
        for number in os.read(self._woken, 64):
            if number == signal.SIGCHLD:
                self._reap()
            elif self._denied:
                self._child.kill_all(signal.SIGKILL)
                self._signal = True
                self._leave(128 + number)
            elif self._child.status is not None:
                self._down.out.clear()  # the client wants us gone, and so is the server
                self._close_child_out()
            else:
                self._child.forward(number, time.monotonic())

    def _reap(self) -> None:
        alive = self._child.status is None
        if self._child.reap() and alive:
            self._silent_since = time.monotonic()
            if self._denied:
                self._daemon.report({"ask": STOPPED, "requests": self._unanswered})

    def _expire(self, now: float) -> None:
        """Do what is due."""
        self._child.expire(now)
        self._daemon.expire()
        if self._ending is not None and now >= self._ending:
            end = self._child.kill_all if self._denied else self._child.kill
            end(signal.SIGKILL if self._asked_to_end else signal.SIGTERM)
            self._ending = None if self._denied and self._asked_to_end else now + KILL_AFTER
            self._asked_to_end = True

    def _write(self) -> None:
        """Write what is decided, as much as goes without waiting."""
        told = self._daemon.flush()  # before the server sees it
        up, down = self._up, self._down
        if not (up.out or down.out) and self._stdin is not None:
            return
        if self._child_in is not None and told and not self._to_server(self._child_in):
            self._close(self._child_in)
            self._child_in = None
            if self._stdin is not None:  # the client learns of it as it would without us
                self._close(self._stdin)
                self._stdin = None
        if self._child_in is None:
            up.out.clear()
        if self._stdout is not None and down.out and not self._to_client():
            self._stdout = None
            self._close_child_out()
        if self._stdout is None:
            down.out.clear()

    def _to_server(self, fd: int) -> bool:
        """Write to the server; say whether more can be."""
        out = self._up.out
        try:
            while out:
                _drop(out, os.write(fd, out))
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return self._stdin is not None or not self._up.idle

    def _to_client(self) -> bool:
        out = self._down.out
        try:
            while out and self._ready_to_write.poll(0):
                _drop(out, os.write(1, out if len(out) <= _WRITE else out[:_WRITE]))
        except BlockingIOError:
            return True  # somebody who shares it made it so
        except OSError:
            return False  # the client is gone
        return True

    def _end_output(self) -> None:
        """Let the client hear that the server has closed its output, though it may live on; nothing else gets the number 1."""
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, 1)
        os.close(null)
        self._stdout = None

    def _close_child_out(self) -> None:
        if self._child_out is not None:
            self._close(self._child_out)
            self._child_out = None

    def _close(self, fd: int) -> None:
        if fd in self._watched:
            self._poll.unregister(fd)
            del self._watched[fd]
            self._wants = ()
        os.close(fd)


def _drop(out: bytearray, count: int) -> None:
    """Forget the bytes that were written, as nearly always all of them."""
    if count == len(out):
        out.clear()
    else:
        del out[:count]


def _read(fd: int) -> bytes | None:
    """Return what can be read, nothing at the end, and None where there is nothing yet after all."""
    try:
        return os.read(fd, _READ)
    except BlockingIOError:  # somebody who shares it made it non-blocking, and read what there was
        return None
    except OSError:
        return b""  # a connection that was reset, a terminal that hung up: the end
