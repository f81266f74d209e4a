"""The standard streams as commands need them: there, able to spell everything, and an output that ends early is no crash.

What is printed is not its business (`output`); the shim and the agent under `exec` have the streams of their callers as they are.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from typing import Final, TextIO, cast

from agentsh_net.cli.failures import Exit, Failure

# As shells tell of a command that SIGPIPE ended: `agentsh-net mcp events | head -1` has read all that it wanted.
CLOSED: Final = 141

# What write(2) says of an output that takes no more; a file that cannot be read has a name, and says so elsewhere.
_OF_OUTPUT: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def prepare() -> None:
    """Give Python the streams that its caller closed (`>&-`, `__main__` has opened them), and let none of them fail on a letter."""
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "w" if descriptor else "r", closefd=False))  # noqa: SIM115 - a descriptor, and for good
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding shows what it cannot spell as an escape; it does not end the command.
        cast("TextIO", stream).reconfigure(errors="backslashreplace")  # type: ignore[attr-defined] # both are TextIOWrapper


def of_output(error: OSError) -> bool:
    """Say whether an error is that of an output: one that takes no more, or that the caller closed (`__main__` reads from it)."""
    if error.errno == errno.EBADF:
        return fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    return error.errno in _OF_OUTPUT and error.filename is None


def ended(error: OSError) -> int | Failure:
    """Return what becomes of a command whose output cannot be written: the exit code where nobody reads it, else the failure."""
    _abandon()
    if isinstance(error, BrokenPipeError):
        return CLOSED
    return Failure(
        f"standard output cannot be written: {error.strerror}",
        code=Exit.ENVIRONMENT,
        remedy="free space there, or write elsewhere",
    )


def _abandon() -> None:
    """Let what still waits to be written go nowhere: Python would fail on it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
