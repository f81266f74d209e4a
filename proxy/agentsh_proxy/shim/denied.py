"""In the place of a server that policy denies: it is not started, and whatever its client asks is refused by the daemon.

As the gateway does. Light on purpose (see `shim`).
"""

from __future__ import annotations

import os
import select

from agentsh_net.core.links.shim_link import CLIENT, MAX_LINE
from agentsh_proxy.shim import refusals
from agentsh_proxy.shim.child import NOT_EXECUTABLE
from agentsh_proxy.shim.daemon import Answer, Daemon

_READ = 1 << 16  # what a pipe holds


def refuse(daemon: Daemon, woken: int) -> int:
    """Answer the client until it closes, or a signal ends us; return the exit status.

    Where policy does not deny the server any more it ends too: who starts it again gets the server.
    """
    rest = b""
    while True:
        ready = select.poll()
        for fd in (0, woken):
            ready.register(fd, select.POLLIN)
        came = [fd for fd, _ in ready.poll()]
        if woken in came:
            return 128 + os.read(woken, 1)[0]
        data = os.read(0, _READ)
        if not data:
            return 0
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > MAX_LINE or not all(_refused(daemon, line) for line in lines if line.strip()):
            return NOT_EXECUTABLE


def _refused(daemon: Daemon, line: bytes) -> bool:
    """Answer one line; False where it would pass."""
    answers: list[Answer | None] = []
    daemon.ask({"ask": CLIENT}, line, answers.append)
    daemon.wait(lambda: bool(answers))
    answer = answers[0]
    if answer is not None and (answer.passes or answer.forward is not None):
        return False
    for reply in refusals.of_calls(line) if answer is None else answer.replies:
        _write(reply + b"\n")
    return True


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
