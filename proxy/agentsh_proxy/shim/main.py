"""A stdio MCP server's wrapper: the bytes of both sides pass as they are, and what policy speaks about is asked of the daemon.

It decides nothing itself but what fail_closed says while the daemon is away.
"""

from __future__ import annotations

import os
import signal
import time

from agentsh_net.core.links.shim_link import OPEN
from agentsh_proxy.shim.child import FORWARDED, NOT_EXECUTABLE, NOT_FOUND, adopt, leave_as, nobody, spawn
from agentsh_proxy.shim.daemon import Daemon
from agentsh_proxy.shim.relay import Relay

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

SESSION: Final = "AGENTSH_NET_SESSION"  # the token of the agent's session; not the server's to know


class Options:
    """What the command line says. `closed`: nothing passes while no daemon has said what its policy wants."""

    __slots__ = ("closed", "command", "hide", "server", "socket")

    def __init__(self, server: str, command: Sequence[str], socket: str, *, hide: bool, closed: bool) -> None:
        self.server = server
        self.command = command
        self.socket = socket
        self.hide = hide
        self.closed = closed


def run(options: Options) -> int:
    """Run the server until it ends, and return its exit status (or die of its signal)."""
    environ = dict(os.environ)
    session = environ.pop(SESSION, "")
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (*FORWARDED, signal.SIGCHLD):
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
            signal.signal(number, _noted)  # the pipe tells of it
    opening = {"ask": OPEN, "server": options.server, "session": session, "hide": options.hide}
    daemon = Daemon(options.socket, opening, closed=options.closed, now=time.monotonic, say=_say)
    known = daemon.connect() and daemon.opened()
    if known and daemon.pins_binary and not daemon.denied:
        from agentsh_proxy.shim.binary import describe

        daemon.reopen({"binary": describe(options.command, environ)})
        if daemon.opened() and daemon.refusal and not daemon.denied:
            _say(f"{options.command[0]!r} is not started: {daemon.refusal}")
            return NOT_EXECUTABLE
    if daemon.denied:
        _say(f"{options.server} is not started: {daemon.refusal}")
    adopt()
    child = nobody() if daemon.denied else spawn(options.command, environ)
    relay = Relay(child, daemon, woken)
    fault = relay.run()
    if relay.status is not None:
        return relay.status
    if fault:
        _say(f"cannot start {options.command[0]!r}: {os.strerror(fault)}")
        return NOT_FOUND if fault == 2 else NOT_EXECUTABLE
    assert child.status is not None  # noqa: S101 - the relay ends with the child
    return leave_as(child.status)


def _noted(number: int, frame: object) -> None:
    """Take a signal: the wake-up pipe has told of it."""


def _say(message: str) -> None:
    try:
        os.write(2, f"agentsh-net shim: {message}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return  # nobody listens
