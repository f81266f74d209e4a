"""The command of a server that runs under the shim: made from the server's own, recognised, and taken off again.

Where commands are written down is its callers' business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NAME: Final = "agentsh-net"
_FLAGS: Final = frozenset(("--hide-denied", "--fail-closed", "--fail-open"))


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A command that runs a server under the shim. `before` is how many words stand before the server's own."""

    server_id: str
    command: tuple[str, ...]
    before: int


def words(program: Sequence[str], server_id: str) -> list[str]:
    """Return the words to be put before a server's command; `program` is how agentsh-net is called on this machine."""
    return [*program, "shim", "--server", server_id, "--"]


def wrapped(command: Sequence[str]) -> Wrapped | None:
    """Return what is wrapped in a command, or None for one that does not run the shim."""
    at = _after_program(command)
    if at < len(command) and command[at] == "--socket":
        at += 2
    if at == 0 or command[at : at + 1] != ["shim"]:
        return None
    server_id = ""
    at += 1
    while at < len(command) and command[at] != "--":
        if command[at] == "--server" and at + 1 < len(command):
            server_id = command[at + 1]
            at += 2
        elif command[at] in _FLAGS:
            at += 1
        else:
            return None
    own = tuple(command[at + 1 :])
    return Wrapped(server_id, own, at + 1) if server_id and own else None


def _after_program(command: Sequence[str]) -> int:
    """Return where the words after agentsh-net begin; 0 where the command is another one."""
    if command and command[0].rpartition("/")[2] == NAME:
        return 1
    return 3 if list(command[1:3]) == ["-m", "agentsh_net"] else 0
