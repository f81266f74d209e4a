"""Starts the processes that read what the network sends: who they become, and what they inherit.

What such a process does first is `agentsh_proxy.launching`'s business; keeping it alive is its owner's.
"""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import pwd
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from agentsh_net.kernel.limits import may_change_user
from agentsh_net.privileges import WORKERS

# Of what systemd gives to services without an account (systemd.exec(5), DynamicUser=). `nobody` is for others: whoever else is it
# could end them.
_WITHOUT_ACCOUNT: Final = range(65519, 61183, -1)
# What they inherit of the environment; the rest may hold secrets that a parser of hostile bytes need not have.
_ENVIRONMENT: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "LD_LIBRARY_PATH",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who such a process becomes when the supervisor is root."""

    uid: int
    gid: int


def identity() -> Identity:
    """Return the user `agentsh-net` where there is one, else one that no account has."""
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(WORKERS)
        return Identity(entry.pw_uid, entry.pw_gid)
    number = next(number for number in _WITHOUT_ACCOUNT if _is_free(number))
    return Identity(number, number)


def _is_free(number: int) -> bool:
    for look_up in (pwd.getpwuid, grp.getgrgid):
        with contextlib.suppress(KeyError):
            look_up(number)
            return False
    return True


async def start(*words: str, passing: Mapping[str, socket.socket | BinaryIO]) -> Process:
    """Start `python -m agentsh_proxy WORDS`, and pass it each socket or file under its option. They stay the caller's to close."""
    who = identity()
    fds = {option: each.fileno() for option, each in passing.items()}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agentsh_proxy", *words,
        *(word for option, fd in fds.items() for word in (option, str(fd))),
        "--uid", str(who.uid), "--gid", str(who.gid), *([] if may_change_user() else ["--keep-user"]),
        "--supervisor", str(os.getpid()),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=tuple(fds.values()),
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    )  # fmt: skip
