"""The policy file put in force again, at a signal, where it changed or when somebody asks; and what people are told of it.

What a change is made of is `current`'s business; what a file may say is `config`'s.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any, Final

from agentsh_net import briefing, collector
from agentsh_net.config import options
from agentsh_net.config.options import Options
from agentsh_net.config.policy_file import Loaded
from agentsh_net.config.watch import Watch
from agentsh_net.core.audit.events import Event, PolicyRejected, PolicyReloaded
from agentsh_net.core.errors import ConfigError, KernelError
from agentsh_net.current import Current
from agentsh_net.tasks import Tasks

# Seconds after which a policy that the host refused (no memory, no file descriptor left) is tried again: no file changes then.
RETRY: Final = 10.0


class Reloading:
    """Reads what `run` was told to use, again and again."""

    def __init__(
        self,
        wanted: Options,
        current: Current,
        tasks: Tasks,
        *,
        emit: Callable[[Event], None],
        log: logging.Logger,
    ) -> None:
        self._wanted = wanted
        self._current = current
        self._tasks = tasks
        self._emit = emit
        self._log = log
        self._watch: Watch | None = None
        self._refused: list[str] = []  # the problems of the file that was refused last
        self._again: asyncio.TimerHandle | None = None

    def watch(self, loaded: Loaded) -> None:
        """Reload whenever a file changes that `loaded` was read from."""
        if loaded.path is not None:
            self._watch = Watch(loaded.path, asyncio.get_running_loop(), self.soon, read=loaded.read)

    def close(self) -> None:
        """Watch no more."""
        self._forget_retry()
        if self._watch is not None:
            self._watch.close()

    @property
    def refused(self) -> tuple[str, ...]:
        """The problems of the file as it is now; none where it is in force."""
        return tuple(self._refused)

    def soon(self, *, asked: bool = False) -> None:
        """Read the policy file again; what comes of it is told by an event and in the log, to who `asked` though nothing is new."""
        self._tasks.spawn(self._now_and_tell(asked=asked))

    async def now(self) -> dict[str, Any]:
        """Put the policy file as it now is in force. Raises ConfigError or KernelError with the old policy in force."""
        async with self._current.lock:
            self._forget_retry()
            try:
                with collector.waiting():
                    loaded = await asyncio.to_thread(options.load, self._wanted, os.environ)
                changed = loaded.digest != self._current.loaded.digest
                if changed:
                    await self._current.switch(loaded)
                else:  # what is told of the file may be other things
                    self._current.loaded = loaded
            except ConfigError as error:
                self._rejected([str(problem) for problem in error.problems])
                raise
            except KernelError as error:
                self._rejected([f"{error}: {error.remedy}" if error.remedy else str(error)])
                self._again = asyncio.get_running_loop().call_later(RETRY, self.soon)
                raise
            mended, self._refused = bool(self._refused), []
            if self._watch is not None:
                self._watch.follow(loaded.read)
            if changed or mended:
                self._reloaded()
            snapshot = self._current.snapshot
            return {
                "changed": changed,
                "generation": snapshot.generation,
                "digest": snapshot.digest,
                "pending": list(self._current.pending),
            }

    async def _now_and_tell(self, *, asked: bool) -> None:
        refused = self._refused
        try:
            told = await self.now()
        except (ConfigError, KernelError):
            if asked and self._refused is refused:
                self._log_refused()
        else:
            if asked and not told["changed"] and not refused:
                self._log.info("in force already: %s", self._policy_line())

    def _forget_retry(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _policy_line(self) -> str:
        return briefing.policy_line(self._current.snapshot, self._wanted.source)

    def _reloaded(self) -> None:
        snapshot, pending = self._current.snapshot, self._current.pending
        waits = f"waits for the next start: {', '.join(pending)}" if pending else ""
        self._emit(PolicyReloaded(generation=snapshot.generation, digest=snapshot.digest, reason=waits))
        self._log.info("%s%s", self._policy_line(), f"; {waits}" if waits else "")
        for line in self._current.unknown():
            self._log.warning("%s", line)

    def _rejected(self, problems: list[str]) -> None:
        if problems == self._refused:
            return  # the file is as broken as it was when that was told
        self._refused = problems
        snapshot = self._current.snapshot
        self._emit(
            PolicyRejected(
                generation=snapshot.generation,
                digest=snapshot.digest,
                problems=problems,
                reason=f"{self._stays()}: {problems[0]}",
            )
        )
        self._log_refused()

    def _stays(self) -> str:
        return f"generation {self._current.snapshot.generation} stays in force"

    def _log_refused(self) -> None:
        for problem in self._refused:
            self._log.error("policy refused, %s: %s", self._stays(), problem)
