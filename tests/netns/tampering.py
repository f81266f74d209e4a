"""What root does to our tables: with nft, as anybody would, and, where they belong to the daemon, by the daemon's own socket."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.kernel.netlink import NETFILTER, Netlink
from agentsh_net.kernel.nft.library import Library
from agentsh_net.kernel.nft.table import Table
from agentsh_net.kernel.nft.table_owner import process_of
from netns.syscalls import pidfd_getfd


def nft(command: str) -> str:
    """Run nft and return what it complains of."""
    return subprocess.run(["nft", command], capture_output=True, text=True, check=False).stderr


def owner() -> int:
    """Return the port of the socket to which our table belongs, 0 where it is a plain one."""
    with Netlink(NETFILTER) as connection:
        found = Table(connection, nft_dump.INET, nft_ruleset.TABLE).found()
        return 0 if found is None else found.owner


def nft_as_owner(command: str) -> None:
    """Run nft's command by the very socket that the table belongs to, taken out of the daemon (pidfd_getfd(2))."""
    port = owner()
    library = Library()
    if port:
        stolen = _taken(process_of(port), port)
        os.dup2(stolen.fileno(), library._fd)
        stolen.close()
    library.commit(command)
    library.close()


def _taken(pid: int, port: int) -> socket.socket:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        if not os.readlink(entry).startswith("socket:"):
            continue
        taken = pidfd_getfd(pid, int(entry.name))
        if (taken.family, taken.proto) == (socket.AF_NETLINK, NETFILTER) and taken.getsockname()[0] == port:
            return taken
        taken.close()
    raise AssertionError(f"process {pid} has no netfilter socket of port {port}")
