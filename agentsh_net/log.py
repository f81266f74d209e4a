"""What the daemon says on standard error: one line a fact, as text for people or JSON for collectors.

Not the audit trail (that is the store's), and never a secret: callers log names and counts, not values.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import sys
import threading
from typing import Any, Final, TextIO

from agentsh_net.clock import now_rfc3339
from agentsh_net.core.errors import NO_FILES

LOGGER = "agentsh_net"
MAX_LINES: Final = 1000  # that wait for who reads standard error; what comes beyond is counted
LAST_WORDS: Final = 1.0  # seconds for them at the end
# Seconds in which asyncio's thousands of words that there is no file left are one line.
REPEATED_EVERY: Final = 60.0


# syslog(3)
_PRIORITIES: Final = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}


class _Text(logging.Formatter):
    """`agentsh-net: warning: message`, as Unix daemons speak."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        text = f"agentsh-net: {level}{record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Journal(_Text):
    """The same for systemd's journal, with the priority by which it is found (`journalctl -p warning`; sd-daemon(3))."""

    def format(self, record: logging.LogRecord) -> str:
        priority = _PRIORITIES.get(record.levelno, 3)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "timestamp": now_rfc3339(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class Unwaiting(logging.Handler):
    """Has a thread write the lines. Standard error may be a pipe that nobody reads, and who has something to say must not wait for it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        # Not the stream: its lock would end a process whose thread waits in a write.
        self._descriptor = stream.fileno()
        self._lines: queue.Queue[str] = queue.Queue(MAX_LINES)
        self._lost = 0
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        # Here, and not before the process gave up its privileges: threads keep their own.
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="log", daemon=True)
            self._thread.start()
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._lost += 1

    def flush(self) -> None:
        """Wait until all is written, but not for long."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, LAST_WORDS)

    def _write(self) -> None:
        while True:
            lines = [self._lines.get()]
            if lost := self._lost:
                self._lost -= lost
                why = "%d lines of this log were not written: nobody read it"
                lines.append(
                    self.format(logging.LogRecord(LOGGER, logging.WARNING, "", 0, why, (lost,), None))
                )
            with contextlib.suppress(OSError):  # a full disk, a closed pipe: there is nobody else to tell
                rest = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            self._lines.task_done()


def configure(*, form: str, level: str, stream: TextIO | None = None) -> logging.Logger:
    """Set up and return the daemon's logger; calling it again (a reload) replaces the old settings."""
    logger = logging.getLogger(LOGGER)
    stream = stream or sys.stderr
    handler = Unwaiting(stream)
    text = _Journal if _is_the_journal(stream) else _Text
    handler.setFormatter(_Json() if form == "json" else text())
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    return logger


def _is_the_journal(stream: TextIO) -> bool:
    """Say whether a stream goes to systemd's journal, which names it by device and inode ($JOURNAL_STREAM, systemd.exec(5))."""
    found = os.fstat(stream.fileno())
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def flush() -> None:
    """Have what was said written before the process ends; in vain where nobody reads it."""
    for handler in logging.getLogger(LOGGER).handlers:
        handler.flush()


class Unhandled:
    """Tells what the event loop had nobody to tell: bugs with their traceback, and a lack of file descriptors once a minute."""

    def __init__(self, logger: logging.Logger) -> None:
        self._log = logger
        self._silent_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what asyncio hands to exception handlers."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in NO_FILES:
            self._log.error("%s", context.get("message", "error"), exc_info=error)
        elif loop.time() >= self._silent_until:
            self._silent_until = loop.time() + REPEATED_EVERY
            self._log.error(
                "%s: nobody new is heard; raise the limit on open files (ulimit -Hn, LimitNOFILE=), see who asks: ss -xp",
                error.strerror,
            )
