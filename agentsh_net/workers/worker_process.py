"""A proxy worker that runs: its process, its link and its journal, whether it is still heard or at least at work, and how it ends.

What it is told, and what takes its place, is the pool's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentsh_net.core.links import link
from agentsh_net.workers.journal import Journal
from agentsh_net.workers.link import WorkerLink

# Words of a worker that did not come, of which there is one every two seconds: when it is told of, and replaced unless it is at work,
# and when another takes its place all the same. The longest body costs six seconds where all of it is JSON in strings and DLP is on;
# 30 were seen on a machine six times too busy.
SILENT: Final = 5
GONE: Final = 60


@dataclass(slots=True)
class WorkerProcess:
    """A process, its link and its journal. `why` says why we killed it, if we did."""

    process: asyncio.subprocess.Process
    link: WorkerLink
    journal: Journal
    why: str = ""
    missed: int = 0
    idle: int = 0  # of these, how many of the last found it asleep
    used: str = ""  # of the processor, when that was looked up last

    async def listen(self) -> None:
        """Count the words that do not come, each by a tick of ours: who was stopped himself has not listened for longer."""
        while True:
            await asyncio.sleep(link.COUNTERS_EVERY)
            heard, at_work = self.link.heard(), self._is_at_work()
            self.missed = 0 if heard else self.missed + 1
            self.idle = 0 if heard or at_work else self.idle + 1
            if self.idle >= SILENT:
                self.kill(
                    f"was not heard for {self.missed * link.COUNTERS_EVERY:g} s, and is stopped or hangs"
                )
            elif self.missed >= GONE:
                self.kill(f"was not heard for {GONE * link.COUNTERS_EVERY:g} s")

    def _is_at_work(self) -> bool:
        """Say whether it used the processor since this was asked last, or waits for it or for a disk; where it cannot be seen, it is."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        state, *fields = text.rpartition(")")[2].split()
        before, self.used = self.used, f"{fields[10]} {fields[11]}"  # utime and stime, proc_pid_stat(5)
        return state in {"R", "D"} or self.used != before

    async def gone(self) -> int:
        """Wait until the process has ended and all that it said is read; return its status."""
        status = await self.process.wait()
        await self.link.closed
        await self.journal.closed
        return status

    def kill(self, why: str) -> None:
        """End the process at once; without CAP_KILL over its user, by the end of its link."""
        self.why = self.why or why
        self.link.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self.process.kill()

    @property
    def silent(self) -> bool:
        """Say whether it is not heard: stopped, or busy without an end."""
        return self.missed >= SILENT

    def why_ended(self, status: int) -> str:
        """Return why a process that ended with a status did."""
        if self.why or status >= 0:
            return self.why or f"exit status {status}"
        try:
            return f"signal {signal.Signals(-status).name}"
        except ValueError:
            return f"signal {-status}"
