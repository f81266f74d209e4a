"""The shim's loop: client, server and daemon, each read when there is room for what it says, and lines given to who decides.

How a server is started and mourned is `child`'s business, what fail_closed says `refusals`'. Light on purpose
(see `shim`).
"""

from __future__ import annotations

import os
import select
import signal
import time

from agentsh_net.core.links.shim_link import CLIENT, LONG, SERVER
from agentsh_net.core.mcp import bursts
from agentsh_net.core.mcp.glance import INSPECTED, id_of, plain_call
from agentsh_net.core.mcp.skim import Skim
from agentsh_proxy.shim import refusals
from agentsh_proxy.shim.child import Child
from agentsh_proxy.shim.daemon import Answer, Daemon
from agentsh_proxy.shim.traffic import Traffic, calls, read
from agentsh_proxy.shim.way import Held, Way

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
        self._skim = Skim()
        self._traffic = Traffic(self._skim)
        self._up = Way(self._from_client, self._calls, self._long_from_client, self._lost_from_client)
        self._down = Way(self._from_server, self._results, self._long_from_server, self._lost_from_server)
        self._stdin: int | None = 0
        self._stdout: int | None = 1
        self._child_in: int | None = child.stdin
        self._child_out: int | None = child.stdout
        self._starting: int | None = child.started
        self._fault = 0
        self._ending: float | None = None  # when a server whose input has ended is asked to end, then killed
        self._asked_to_end = False
        self._silent_since = 0.0
        self._poll = select.poll()
        self._ready_to_write = select.poll()
        self._ready_to_write.register(1, select.POLLOUT)
        self._more = select.poll()  # of the server, by now
        self._more.register(child.stdout, select.POLLIN)
        self._watched: dict[int, int] = {}
        self._wants: tuple[int | None, ...] = ()
        self._due: float | None = None  # when something is to be done though nobody says anything

    def run(self) -> int:
        """Relay until the server is dead and all it said is written; return why it could not be started (errno), or 0."""
        while self._child.status is None or not self._over():
            self._watch()
            for fd, _ in self._poll.poll(self._timeout()):
                self._serve(fd)
            if self._due is not None:
                self._expire(time.monotonic())
            self._write()
            if self._child_out is None and self._stdout is not None and self._down.idle:
                self._end_output()
        return self._fault

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
        if times == _NEVER and self._child.status is None:
            self._due = None
            return None
        due = [moment for moment in times if moment is not None]
        if self._child.status is not None:
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
        else:
            self._stdin = None
            self._daemon.hear()
            self._up.end()
            self._ending = time.monotonic() + PATIENCE

    def _read_server(self, fd: int) -> None:
        for _ in range(_IN_A_ROW):
            data = _read(fd)
            if data is None:
                return
            if self._due is not None:  # otherwise nobody counts its silence
                self._silent_since = time.monotonic()
                if self._ending is not None and not self._asked_to_end:
                    self._ending = self._silent_since + PATIENCE
            if not data:
                self._down.end()
                self._close_child_out()
                return
            self._down.feed(data)
            if self._down.full or not self._more.poll(0):
                return

    def _signalled(self) -> None:
        for number in os.read(self._woken, 64):
            if number == signal.SIGCHLD:
                if self._child.reap():
                    self._silent_since = time.monotonic()
            elif self._child.status is not None:
                self._down.out.clear()  # the client wants us gone, and so is the server
                self._close_child_out()
            else:
                self._child.forward(number, time.monotonic())

    def _expire(self, now: float) -> None:
        """Do what is due."""
        self._child.expire(now)
        self._daemon.expire()
        if self._ending is not None and now >= self._ending:
            self._child.kill(signal.SIGKILL if self._asked_to_end else signal.SIGTERM)
            self._asked_to_end = True
            self._ending = now + KILL_AFTER

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

    # Lines, and what becomes of them.

    def _calls(self, lines: bytes) -> bool:
        """Let calls pass whose verdicts stand, where there is nothing else on the lines."""
        found = bursts.calls(_text(lines)) if self._daemon.lets_pass else []
        if not found:
            return False
        tools = [groups[1] for groups in found]
        if not self._daemon.stands(*tools) or not self._daemon.tell(lines[:-1], len(found)):
            return False
        self._traffic.called(bursts.ids_of(found), tools, results=self._daemon.results)
        return True

    def _results(self, lines: bytes) -> bool:
        """Let answers pass that nobody has to look at, where there is nothing else on the lines."""
        found = bursts.results(_text(lines))
        return bool(found) and self._traffic.settle(found)

    def _from_client(self, line: bytes) -> None:
        denied = self._daemon.denied  # then the daemon refuses whatever is asked
        seen = None if denied else self._skim.of_client(line)
        if seen is not None:
            id_, tool = seen
            if not tool or (self._daemon.stands(tool) and self._daemon.tell(line)):
                self._traffic.skimmed(id_, tool, results=self._daemon.results)
                self._up.forward(line)
                return
        found = read(line) if line.strip() else []
        if found is not None and not calls(found) and not denied:
            self._traffic.sent(found, results=self._daemon.results)
            self._up.forward(line)
            return
        found = found or []
        tool = plain_call(found)
        if tool and self._daemon.stands(tool) and self._daemon.tell(line):
            self._traffic.sent(found, results=self._daemon.results)
            self._up.forward(line)
            return
        held = self._up.hold(line)

        def decided(answer: Answer | None) -> None:
            if answer is None and self._daemon.closed:
                answer = Answer(passes=False, replies=tuple(refusals.of_calls(line)))
            elif answer is None:
                self._daemon.unjudged += refusals.count_calls(line)
                answer = Answer(passes=True)
            if answer.stands:
                self._daemon.stand(tool)
            forward = line if answer.passes else answer.forward
            if forward is not None:
                self._traffic.sent(found, results=self._daemon.results)
            self._up.release(held, forward)
            for reply in answer.replies:
                self._down.insert(reply)

        self._daemon.ask({"ask": CLIENT}, line, decided)

    def _from_server(self, line: bytes) -> None:
        why = self._traffic.matters(line, results=self._daemon.results) if line.strip() else None
        if why is None:
            self._down.forward(line)
            return
        held = self._down.hold(line)

        def decided(answer: Answer | None) -> None:
            if answer is None and self._daemon.closed:
                results = [id_ for _, id_, method, *_ in why["asked"] if method in INSPECTED]
                forward, replies = refusals.of_server(line, results, notes=self._daemon.results)
                answer = Answer(passes=False, forward=forward, replies=tuple(replies))
            forward = line if answer is None or answer.passes else answer.forward
            self._down.release(held, forward)
            for reply in answer.replies if answer is not None else ():
                self._up.insert(reply)

        self._daemon.ask({"ask": SERVER, **why}, line, decided)

    def _long_from_client(self, held: Held) -> None:
        self._long("client", self._up, held)

    def _long_from_server(self, held: Held) -> None:
        self._long("server", self._down, held)

    def _long(self, sender: str, way: Way, held: Held) -> None:
        def decided(answer: Answer | None) -> None:
            if answer is None and not self._daemon.closed:
                self._daemon.unjudged += sender == "client"
            if answer.passes if answer is not None else not self._daemon.closed:
                way.release_long(held)
            else:
                way.cut(held)

        self._daemon.ask({"ask": LONG, "sender": sender}, b"", decided)

    def _lost_from_client(self, head: bytes, tail: bytes) -> None:
        answers = b'"result"' in head and b'"method"' not in head + tail
        self._refuse_long(self._up if answers else self._down, head, tail)

    def _lost_from_server(self, head: bytes, tail: bytes) -> None:
        self._refuse_long(self._down, head, tail)

    def _refuse_long(self, way: Way, head: bytes, tail: bytes) -> None:
        """Tell whoever waits for an answer: to a message of the client, the server's or, where it asked for that one, the client's."""
        way.insert(refusals.error(id_of(head, tail), refusals.UNREADABLE, refusals.TOO_LONG))


def _drop(out: bytearray, count: int) -> None:
    """Forget the bytes that were written, as nearly always all of them."""
    if count == len(out):
        out.clear()
    else:
        del out[:count]


def _text(lines: bytes) -> str:
    """Return what a burst says; nothing for one that is to be read line by line."""
    if len(lines) > bursts.MAX_BURST:
        return ""
    try:
        return lines.decode()
    except UnicodeDecodeError:
        return ""


def _read(fd: int) -> bytes | None:
    """Return what can be read, nothing at the end, and None where there is nothing yet after all."""
    try:
        return os.read(fd, _READ)
    except BlockingIOError:  # somebody who shares it made it non-blocking, and read what there was
        return None
    except OSError:
        return b""  # a connection that was reset, a terminal that hung up: the end
