"""How soon the shim runs once it is woken: at once for a call or two, after whoever runs where more come together.

Under SCHED_BATCH (sched(7)) the kernel interrupts nobody for us: a server that writes eight answers is read once, not eight
times. A call that has no company would only wait for whoever else is busy on the machine. Light on purpose (see `shim`).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from typing import Final

COMPANY: Final = 4  # requests that wait for their answers; some of a session's never get one


class Pace:
    """The policy that the shim is scheduled by, where it is the client's to choose and a sandbox allows it."""

    def __init__(self) -> None:
        self._patient = False
        try:
            self._ours = os.sched_getscheduler(0) == os.SCHED_OTHER
        except OSError:
            self._ours = False

    def keep(self, waiting: int) -> None:
        """Let others finish first where so many requests wait for their answers that they have company."""
        patient = waiting >= COMPANY
        if patient == self._patient or not self._ours:
            return
        self._patient = patient
        try:
            os.sched_setscheduler(0, os.SCHED_BATCH if patient else os.SCHED_OTHER, os.sched_param(0))
        except OSError:
            self._ours = False
