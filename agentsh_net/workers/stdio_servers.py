"""Starting stdio servers for the gateway: the worker asks for a declared server by its id, and gets the pipes of a new process.

The worker parses what comes from the network and may run nothing; the supervisor reads nothing of what a server says. A
server runs as `gateway.servers.<id>.user`, else as who runs the daemon, or as nobody where that is root (see `stdio_process`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentsh_net.core.configuration.settings import GatewayServer
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.tasks import Tasks
from agentsh_net.workers.descendants import Descendants
from agentsh_net.workers.stdio_process import Account, Launcher, Process, account

MAX_QUESTION: Final = 4096  # bytes: a number and an id
MAX_PROCESSES: Final = 64  # of one server: each client session of an older revision has its own
# Seconds after the end of its input until a server is asked to end, and then until it is killed.
GRACE: Final = (2.0, 3.0)


class StdioServers:
    """Starts the declared stdio servers of the snapshot in force, for one worker at a time."""

    def __init__(self, snapshot: Callable[[], Snapshot], log: Callable[[str], None], tasks: Tasks) -> None:
        self._snapshot = snapshot
        self._log = log
        self._ours: socket.socket | None = None
        self._starting: dict[int, str] = {}  # server ids, by number
        self._running: dict[int, _Running] = {}
        self._tasks = tasks
        self._launcher = Launcher()

    def attach(self) -> socket.socket:
        """Return a new conversation for a worker; what the one before had started is ended."""
        self._detach()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._ours = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)
        return theirs

    async def close(self) -> None:
        """End every server and wait until it is dead (a few seconds at most)."""
        self._detach()
        await self._tasks.ended()
        self._launcher.close()

    def follow(self) -> None:
        """Look at what servers have started that policy denies by now, before a worker ends them: later nobody knows whose it was."""
        for running in self._running.values():
            if self._snapshot().judge_server(running.server_id).blocked:
                running.deny()

    @property
    def pids(self) -> list[int]:
        """The processes that are running."""
        return [running.process.pid for running in self._running.values()]

    def _detach(self) -> None:
        ours, self._ours = self._ours, None
        if ours is not None:
            asyncio.get_running_loop().remove_reader(ours)
            ours.close()
        for running in self._running.values():
            running.end()

    def _hear(self) -> None:
        """Take a question. Nothing but sound ones is answered: a worker that breaks the rules gets no more processes."""
        assert self._ours is not None  # noqa: S101 - it is read only while it is there
        try:
            question = self._ours.recv(MAX_QUESTION)
        except BlockingIOError:
            return
        except OSError:
            question = b""
        try:
            match json.loads(question) if question else None:
                case {"start": int(number), "server": str(server_id)} if (
                    number not in self._running and number not in self._starting
                ):
                    self._starting[number] = fold(server_id)
                    self._tasks.spawn(self._start(self._ours, number, server_id))
                case {"end": int(number)}:
                    if number in self._running:
                        self._running[number].end()
                case _:
                    self._detach()
        except ValueError:
            self._detach()

    async def _start(self, link: socket.socket, number: int, server_id: str) -> None:
        try:
            server, settings = self._declared(server_id)
            running = await self._launch(server, account(settings.user))
        except ProtocolError as error:
            self._log(f"{visible(server_id)}: not started for the gateway: {error}")
            _say(link, {"failed": number, "error": str(error)})
            return
        finally:
            del self._starting[number]
        self._running[number] = running
        _say(link, {"started": number}, running.take_pipes())
        if link is not self._ours:  # the worker is gone meanwhile
            running.end()
        status = await running.ended()
        del self._running[number]
        _say(link, {"ended": number, "status": status})

    def _declared(self, server_id: str) -> tuple[Server, GatewayServer]:
        """Return the server that may be started. Raises ProtocolError."""
        snapshot = self._snapshot()
        server = snapshot.registry.server(server_id)
        if server is None or server.transport is not Transport.STDIO:
            raise ProtocolError("no stdio server of this id is declared")
        denied = snapshot.judge_server(server.id)
        if denied.blocked:
            raise ProtocolError(f"denied by policy: {denied.reason}")
        same = sum(1 for running in self._running.values() if running.server_id == server.id)
        if same + sum(1 for folded in self._starting.values() if folded == fold(server.id)) > MAX_PROCESSES:
            raise ProtocolError(f"{MAX_PROCESSES} processes of this server are running already")
        servers = snapshot.config.gateway.servers
        settings = next((s for name, s in servers.items() if fold(name) == fold(server.id)), GatewayServer())
        return server, settings

    async def _launch(self, server: Server, who: Account) -> _Running:
        """Start a process. Raises ProtocolError where it cannot be."""
        ours, theirs = _pipes()
        try:
            process = await self._launcher.launch(server, who, theirs)
        except BaseException:
            _close(ours)
            raise
        return _Running(server.id, process, ours)


class _Running:
    """One process of a server, in a session of its own."""

    def __init__(self, server_id: str, process: Process, pipes: tuple[int, ...]) -> None:
        self.server_id = server_id
        self.process = process
        self._pipes = pipes
        self._ending: asyncio.Task[None] | None = None
        self._descendants = Descendants(process.pid)
        self._denied = False

    def take_pipes(self) -> tuple[int, ...]:
        """Return our ends of its pipes, to be closed by who takes them."""
        pipes, self._pipes = self._pipes, ()
        return pipes

    def deny(self) -> None:
        """Have it end with all that it started, in whatever process group that is."""
        self._denied = True
        self._descendants.look()

    def end(self) -> None:
        """Let it end by itself, now that its input has ended; then ask, then kill it and what it left behind."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        for number, patience in zip((signal.SIGTERM, signal.SIGKILL), GRACE, strict=True):
            if self._denied:
                self._descendants.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self.process.wait()
                    return
            self._signal(number)

    async def ended(self) -> str:
        """Wait until it is dead; return how it ended. What it left running in its group is killed."""
        status = await self.process.wait()
        self._signal(signal.SIGKILL)
        if self._ending is not None:
            await self._ending
        self._descendants.kill()
        return f"signal {-status}" if status < 0 else f"exit status {status}"

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return our ends and theirs of input, output and errors."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    return (in_write, out_read, err_read), (in_read, out_write, err_write)


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _say(link: socket.socket, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send an answer; a worker that is gone or does not read learns nothing."""
    with contextlib.suppress(OSError):
        socket.send_fds(link, [json.dumps(message).encode()[:MAX_QUESTION]], descriptors)
    _close(descriptors)
