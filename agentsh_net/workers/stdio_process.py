"""Processes of stdio servers behind the gateway: who they are, what they inherit, and what they can never gain.

Started from a thread that has given up what `exec` takes from agents: no_new_privs, the capability sets and the bounding set belong
to threads, so a child of it has them from its first instruction, and the supervisor keeps its own. Which servers is not its business.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import BrokenThreadPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentsh_net import privileges
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Server

# What a server inherits of our environment; the rest may hold secrets of ours.
ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_STRANGER: Final = "nobody"  # whom a daemon that is root runs a server as that names no user


@dataclass(frozen=True, slots=True)
class Account:
    """Who a server runs as. `change` says whether that is another than who we are."""

    name: str
    uid: int
    gid: int
    home: str
    change: bool


class Process:
    """A process that was started, in a session of its own."""

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        self.pid = started.pid
        self._started = started
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._watched = os.pidfd_open(started.pid)
        self._loop.add_reader(self._watched, self._reap)

    async def wait(self) -> int:
        """Return its exit status once it is dead; the negative number of the signal that it died of."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        self._loop.remove_reader(self._watched)
        os.close(self._watched)
        self._ended.set_result(self._started.wait())


class Launcher:
    """Starts processes that can gain no privilege."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "stdio-launcher", initializer=_give_up)

    async def launch(self, server: Server, who: Account, pipes: tuple[int, int, int]) -> Process:
        """Start a server on its ends of input, output and errors, which are its from now on. Raises ProtocolError where it cannot be."""
        loop = asyncio.get_running_loop()
        try:
            return Process(await loop.run_in_executor(self._thread, _start, server, who, pipes))
        except BrokenThreadPool as error:
            for end in pipes:
                os.close(end)
            raise ProtocolError("the kernel does not let us give up privileges for it") from error
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ProtocolError(
                f"{server.command}: {why} (as user {who.name}: gateway.servers.<id>.user)"
            ) from error

    def close(self) -> None:
        """Start nothing more."""
        self._thread.shutdown(wait=False)


def account(name: str) -> Account:
    """Return who a server runs as: who we are, but never root. Raises ProtocolError for a user that is not there, or that we cannot become."""
    me = os.geteuid()
    name = name or (_STRANGER if me == 0 else "")
    try:
        entry = pwd.getpwnam(name) if name else pwd.getpwuid(me)
    except KeyError:
        if not name:  # containers run as ids that are in no file
            return Account(str(me), me, os.getegid(), "/", change=False)
        raise ProtocolError(f"there is no user {name} (gateway.servers.<id>.user)") from None
    if entry.pw_uid == 0:
        raise ProtocolError("a server behind the gateway never runs as root")
    if me == 0 and entry.pw_name == privileges.WORKERS:
        raise ProtocolError(f"user {name} is the proxy's own: gateway.servers.<id>.user has to be another")
    if me not in (0, entry.pw_uid):
        raise ProtocolError(f"only a daemon that runs as root can start it as user {name}")
    home = entry.pw_dir if Path(entry.pw_dir).is_dir() else "/"
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, home, change=me == 0)


def environment(server: Server, who: Account, ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: what is declared, who it is, and next to nothing of ours."""
    kept = {name: ours[name] for name in ENVIRONMENT if name in ours}
    own = {"HOME": who.home, "USER": who.name, "LOGNAME": who.name}
    return {"PATH": DEFAULT_PATH} | kept | own | dict(server.env)


def _give_up() -> None:
    """Make whatever this thread starts unable to gain privileges. Raises OSError, which breaks the pool: nothing is started then."""
    privileges.renounce(change_user=os.geteuid() == 0)


def _start(server: Server, who: Account, pipes: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    become: dict[str, Any] = (
        {"user": who.uid, "group": who.gid, "extra_groups": os.getgrouplist(who.name, who.gid)}
        if who.change
        else {}
    )
    try:
        return subprocess.Popen(
            (server.command, *server.args),
            stdin=pipes[0], stdout=pipes[1], stderr=pipes[2],
            env=environment(server, who, os.environ),
            cwd=who.home,
            start_new_session=True,
            umask=0o077,
            **become,
        )  # fmt: skip
    finally:  # here, where nobody can close them too early
        for end in pipes:
            os.close(end)
