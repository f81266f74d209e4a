"""The probes as a thing to load: where their source is, which programs and maps it defines. Loads nothing itself."""

from __future__ import annotations

from pathlib import Path

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import syscall

# Program -> attach type, and the maps, in the order in which a loader hands their descriptors over.
PROGRAMS = {
    "agentsh_conn4": syscall.CONNECT4,
    "agentsh_conn6": syscall.CONNECT6,
    "agentsh_send4": syscall.SENDMSG4,
    "agentsh_send6": syscall.SENDMSG6,
    "agentsh_egress": syscall.INET_EGRESS,
    "agentsh_make": syscall.INET_SOCK_CREATE,
}
MAPS = ("rules", "prefixes", "sieve", "config", "counters", "makers", "names", "streams", "records")
OBJECT = "connect.bpf.o"  # made by bpf/build

_PACKAGE = Path(__file__).parents[2]


def directory() -> Path:
    """Return the directory with agentsh.h and connect.bpf.c: in the package (a wheel), or beside it (a checkout). Raises KernelError where the installation lacks it."""
    for candidate in (_PACKAGE / "bpf", _PACKAGE.parent / "bpf"):
        if (candidate / "connect.bpf.c").is_file():
            return candidate
    raise KernelError("the probes' source is missing", layer="ebpf", remedy="reinstall agentsh-net")
