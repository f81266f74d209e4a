"""How the daemon tells its starter that it is ready, and that it lives: systemd's notify socket and a ready file.

`sd_notify(3)`: a datagram to $NOTIFY_SOCKET; an address that starts with `@` is in the abstract namespace.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from agentsh_net.control import socket_file
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, Problem

_LONGEST = 65_536  # bytes: what a daemon writes has some 300, and the paths that it was given


def sd_notify(state: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send `state` (`READY=1`, `STOPPING=1`, ...) to the service manager; False where there is none, or none that can be told."""
    if not environ.get("NOTIFY_SOCKET"):
        return False
    with suppress(OSError), _datagrams() as sock:  # no descriptor is left: nobody fails for want of that word
        return _sent(sock, state, environ)
    return False


async def say_alive(environ: Mapping[str, str] = os.environ) -> None:
    """Tell the service manager again and again that the event loop turns, where it asks for that (sd_watchdog_enabled(3))."""
    interval = environ.get("WATCHDOG_USEC", "")
    if not interval.isdecimal() or environ.get("WATCHDOG_PID") not in {None, str(os.getpid())}:
        return
    with _datagrams() as sock:  # kept: a daemon that can open nothing more is alive all the same
        while True:
            _sent(sock, "WATCHDOG=1", environ)
            await asyncio.sleep(int(interval) / 1e6 / 2)


def _datagrams() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)


def _sent(sock: socket.socket, state: str, environ: Mapping[str, str]) -> bool:
    address = environ.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        sock.sendto(state.encode(), address)
    except OSError:  # a variable that was passed on to where its socket is not
        return False
    return True


def claim_ready_file(path: Path, control: str) -> None:
    """Remove what a daemon that was killed left there; `control` is our own control socket.

    Raises ControlError where the file is of a daemon that runs, at another control socket; ConfigError where none can be there.
    """
    facts = read_ready_file(path)
    theirs = facts.get("control")
    if isinstance(theirs, str) and theirs != control:
        with suppress(OSError):  # no daemon's: one may look at one's own
            if (pid := socket_file.holder(Path(theirs))) in {0, facts.get("pid")}:
                raise ControlError(
                    f"the ready file {path} is of a daemon that runs{f', pid {pid}' if pid else ''}",
                    kind="already_running",
                    remedy="give this one another --ready-file, or end that one: agentsh-net down",
                )
    remove_ready_file(path)
    with _told(path), _begun(path):  # what cannot be written is told now, not when all is in force
        _scratch(path).unlink()


def write_ready_file(path: Path, facts: Mapping[str, Any]) -> None:
    """Write `facts` as JSON in one step: who waits for the file never reads half of it. Raises ConfigError."""
    with _told(path):
        _refuse_what_is_no_file(path)
        with _begun(path) as file:
            file.write(json.dumps(facts, indent=1) + "\n")
        _scratch(path).rename(path)


def remove_ready_file(path: Path) -> None:
    """Remove the file: it speaks of a daemon that is not ready yet, or no more. Raises ConfigError where none can be."""
    with _told(path):
        _refuse_what_is_no_file(path)
        path.unlink(missing_ok=True)
        path.parent.stat()


def read_ready_file(path: Path) -> Mapping[str, Any]:
    """Return the facts of a file that a daemon of this user wrote; empty where there is none, or something else."""
    try:
        with open(path, "rb", opener=_open_quickly) as file:
            facts = json.loads(file.read(_LONGEST)) if _is_own_file(file.fileno()) else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _scratch(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _begun(path: Path) -> TextIO:
    """Open what will be the file. Made by us: in a directory like /tmp somebody else may have put a link there."""
    _scratch(path).unlink(missing_ok=True)
    return _scratch(path).open("x", encoding="ascii")


def _open_quickly(path: str, flags: int) -> int:
    # Without O_NONBLOCK a pipe would be waited for until somebody writes to it.
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _is_own_file(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _refuse_what_is_no_file(path: Path) -> None:
    """Root may replace a device, and /dev/null would be gone for everybody."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, "a directory" if stat.S_ISDIR(mode) else "no regular file")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        found = f"{path} ({error.strerror})"
        raise ConfigError(
            [Problem("--ready-file", found, "a file in a directory that may be written")]
        ) from error
