"""What the daemon says on standard error: one line a fact, as text for people or JSON for collectors.

Not the audit trail (that is the store's), and never a secret: callers log names and counts, not values.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import sys
from typing import Any, Final, TextIO

from agentsh_net.clock import now_rfc3339

LOGGER = "agentsh_net"
REPEATED_EVERY: Final = (
    60.0  # seconds in which asyncio's thousands of words that there is no file left are one line
)
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE}


class _Text(logging.Formatter):
    """`agentsh-net: warning: message`, as Unix daemons speak."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        text = f"agentsh-net: {level}{record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


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


def configure(*, form: str, level: str, stream: TextIO | None = None) -> logging.Logger:
    """Set up and return the daemon's logger; calling it again (a reload) replaces the old settings."""
    logger = logging.getLogger(LOGGER)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    return logger


class Unhandled:
    """Tells what the event loop had nobody to tell: bugs with their traceback, and a lack of file descriptors once a minute."""

    def __init__(self, logger: logging.Logger) -> None:
        self._log = logger
        self._silent_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what asyncio hands to exception handlers."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
            self._log.error("%s", context.get("message", "error"), exc_info=error)
        elif loop.time() >= self._silent_until:
            self._silent_until = loop.time() + REPEATED_EVERY
            self._log.error(
                "%s: nobody new is heard; raise the limit on open files (ulimit -Hn, LimitNOFILE=), see who asks: ss -xp",
                error.strerror,
            )
