"""`reload` and `down`: telling a running daemon, and cleaning up after one that is no more."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.main import Daemon
from agentsh_net.control.errors import ControlError
from agentsh_net.core.links.shim_link import beside
from agentsh_net.core.naming.folding import visible

# Seconds: the daemon drains open streams for ten, then ends stdio servers and workers.
_STOP_WITHIN: Final = 40.0
_DIE_WITHIN: Final = 10.0  # seconds after SIGKILL; a process in the middle of a disk write takes its time
_POLL: Final = 0.05


@click.command(
    short_help="Have the daemon read its file again.",
    epilog=examples("agentsh-net policy check policy.yaml && agentsh-net reload"),
)
@click.pass_obj
def reload(daemon: Daemon) -> None:
    """Have the daemon read its file again and ask the servers for their tools; a broken file keeps the old policy and says so."""
    told = daemon.client(timeout=60).call("reload")
    changed = "in force" if told.get("changed", True) else "in force already"
    click.echo(f"{changed}: generation {told.get('generation')}")
    for setting in told.get("pending") or ():
        click.echo(visible(f"waits for the next start: {setting}"))


@click.command(epilog=examples("sudo agentsh-net down", "sudo agentsh-net down --force"))
@click.option("--force", is_flag=True, help="Also end a daemon that does not answer, and remove what any daemon left in the kernel.")  # fmt: skip
@click.pass_obj
def down(daemon: Daemon, force: bool) -> None:
    """Stop the daemon. With --force remove what any daemon left as well: programs, rules, socket."""
    pid = _holder(daemon.socket)
    if pid is None and not force:
        raise Failure(
            f"no daemon answers at {daemon.socket}",
            code=Exit.UNREACHABLE,
            remedy="what an ended one left in the kernel goes with: agentsh-net down --force",
        )
    if pid is not None:
        _stop(daemon, pid, force=force)
        click.echo(f"stopped: agentsh-net, pid {pid}")
        if not force:
            return
    removed = _leftovers(daemon.socket)
    for item in removed:
        click.echo(f"removed: {visible(item)}")
    if not removed:
        click.echo(
            "nothing was left to remove"
            if pid is not None
            else "no daemon runs, and nothing was left to remove"
        )


def _holder(socket: Path) -> int | None:
    from agentsh_net.control.socket_file import holder

    try:
        return holder(socket)
    except PermissionError as error:
        raise Failure(
            f"cannot look at {socket}: {error.strerror}", code=Exit.UNREACHABLE, remedy="use sudo"
        ) from error


def _stop(daemon: Daemon, pid: int, *, force: bool) -> None:
    try:
        # By itself: where it is a container's first process, this one ends with it.
        daemon.client().call("stop", remove=force)
    except ControlError as error:
        if error.kind == "unreachable":  # its socket was removed: it runs all the same, and hears signals
            _signal(pid, signal.SIGTERM)
        elif not force:
            raise
    if _gone(daemon.socket, _STOP_WITHIN if not force else _DIE_WITHIN):
        return
    if not force:
        raise Failure(
            f"the daemon (pid {pid}) has not stopped within {_STOP_WITHIN:g} s",
            code=Exit.UNREACHABLE,
            remedy="wait for its streams to end, or: agentsh-net down --force",
        )
    _signal(pid, signal.SIGKILL)
    if not _gone(daemon.socket, _DIE_WITHIN):
        raise Failure(
            f"the daemon (pid {pid}) cannot be ended",
            code=Exit.ENVIRONMENT,
            remedy=f"see: cat /proc/{pid}/stack",
        )


def _signal(pid: int, number: int) -> None:
    if pid <= 1:  # not written yet, or nonsense: 0 would be our own process group
        raise Failure(
            "the daemon has not said which process it is", code=Exit.ENVIRONMENT, remedy="try again"
        )
    try:
        # It holds the lock or a table, so it lives: the number has not passed to another.
        os.kill(pid, number)
    except PermissionError as error:
        raise Failure(
            f"cannot end pid {pid}: {error.strerror}", code=Exit.ENVIRONMENT, remedy="use sudo"
        ) from error


def _gone(socket: Path, within: float) -> bool:
    deadline = time.monotonic() + within
    while _holder(socket) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _leftovers(socket: Path) -> list[str]:
    from agentsh_net.control.socket_file import remove_stale
    from agentsh_net.kernel import leftovers

    _end_owners()
    removed = leftovers.down()
    try:
        return [*removed, *remove_stale(socket), *remove_stale(Path(beside(str(socket))))]
    except PermissionError as error:
        raise Failure(
            f"cannot remove {socket}: {error.strerror}", code=Exit.ENVIRONMENT, remedy="use sudo"
        ) from error


def _end_owners() -> None:
    """End whoever still enforces here, as a daemon whose socket is gone: it would put back what is removed, or keep us from it."""
    from agentsh_net.kernel import leftovers

    deadline = time.monotonic() + _DIE_WITHIN
    ended: set[int] = set()
    while (owners := set(leftovers.owners())) and time.monotonic() < deadline:
        for pid in sorted(owners - ended):
            _signal(pid, signal.SIGKILL)
            click.echo(f"ended: pid {pid}, a daemon that enforced here")
        ended |= owners
        time.sleep(_POLL)
