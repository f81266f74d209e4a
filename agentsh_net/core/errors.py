"""Whose fault it is: the operator's (config), the peer's (protocol), the host's (kernel), the disk's (store).

Every error says where it is and what to do next. Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

# The process, or the host, has no file descriptor left: nothing is wrong with what was to be opened.
NO_FILES: Final = frozenset((errno.EMFILE, errno.ENFILE))
MORE_FILES: Final = (
    "raise the limit of open files (ulimit -n, LimitNOFILE=), or see who holds them: ls /proc/PID/fd"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a configuration: where it stands, what was found, what was expected. `line` 0: not known."""

    path: str
    found: str
    expected: str
    line: int = 0

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        return f"{self.path or '(top level)'}: found {self.found}; expected {self.expected}{line}"

    def within(self, file: str) -> str:
        """Return the line that tells of it as a problem of a file, named once where it is one of the whole file; of an option by itself."""
        return str(self) if self.path == file or self.path.startswith("--") else f"{file}: {self}"


class ConfigError(Exception):
    """The operator's configuration is wrong; `problems` holds all of them."""

    def __init__(self, problems: tuple[Problem, ...] | list[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class ProtocolError(Exception):
    """A peer sent what its protocol does not allow; `status` is what an HTTP shell should answer."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


class KernelError(Exception):
    """The host cannot do what was asked; `remedy` is the command or step that mends it."""

    def __init__(self, message: str, *, layer: str = "", remedy: str = "") -> None:
        self.layer = layer
        self.remedy = remedy
        super().__init__(message)


class StoreError(Exception):
    """The audit store cannot be used as it is; `remedy` is the way to move on without losing it."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(message)
