"""Exit codes, and how an error becomes a line for people: what happened, then what mends it.

0 ok; 1 a check failed or something is denied; 2 usage or configuration; 3 the environment lacks something; 4 no daemon; 130 Ctrl-C.
"""

from __future__ import annotations

from enum import IntEnum
from typing import IO, Any

import click

from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, KernelError, ProtocolError, StoreError

OurError = ConfigError | ControlError | KernelError | ProtocolError | StoreError


class Exit(IntEnum):
    """What the process says to its caller."""

    OK = 0
    DENIED = 1
    USAGE = 2
    ENVIRONMENT = 3
    UNREACHABLE = 4
    INTERRUPTED = 130  # what shells expect of a command that ended by Ctrl-C


_KINDS = {
    "unreachable": Exit.UNREACHABLE,
    "timeout": Exit.UNREACHABLE,
    "forbidden": Exit.UNREACHABLE,
    "busy": Exit.UNREACHABLE,  # while it starts, or with too many at once: it is asked again in a moment
    "stopping": Exit.UNREACHABLE,
    "config": Exit.USAGE,
    "request": Exit.USAGE,
    "unknown_call": Exit.USAGE,
    "already_running": Exit.USAGE,
    "kernel": Exit.ENVIRONMENT,
    "store": Exit.ENVIRONMENT,
}


class Failure(click.ClickException):
    """An error for people, with its remedy and its exit code."""

    def __init__(self, message: str, *, code: Exit, remedy: str = "") -> None:
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc] # click declares it per class and reads it per instance
        self.remedy = remedy

    def show(self, file: IO[Any] | None = None) -> None:
        """Print to standard error, a line each: the error, then the remedy."""
        from agentsh_net.core.naming.folding import visible

        for line in self.message.splitlines() or [""]:
            click.echo(f"error: {visible(line)}", file=file, err=file is None)
        if self.remedy:
            click.echo(f"  fix: {visible(self.remedy)}", file=file, err=file is None)


def failure(error: OurError) -> Failure:
    """Return what one of our errors is at the command line."""
    match error:
        case ControlError():
            return Failure(str(error), code=_KINDS.get(error.kind, Exit.DENIED), remedy=error.remedy)
        case KernelError():
            return Failure(str(error), code=Exit.ENVIRONMENT, remedy=error.remedy)
        case StoreError():
            # As at the start of the daemon: the place that was named is wrong, or what is there.
            code = Exit.USAGE if isinstance(error.__cause__, OSError) else Exit.ENVIRONMENT
            return Failure(str(error), code=code, remedy=error.remedy)
        case _:
            return Failure(str(error), code=Exit.USAGE)
