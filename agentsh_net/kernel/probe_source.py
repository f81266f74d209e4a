"""The probes as a thing to load: where their source is, which programs and maps it defines. Loads nothing itself."""

from __future__ import annotations

from pathlib import Path

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import bpf_syscall

# Program -> attach type, and the maps, in the order in which a loader hands their descriptors over.
PROGRAMS = {
    "agentsh_conn4": bpf_syscall.CONNECT4,
    "agentsh_conn6": bpf_syscall.CONNECT6,
    "agentsh_send4": bpf_syscall.SENDMSG4,
    "agentsh_send6": bpf_syscall.SENDMSG6,
    "agentsh_egress": bpf_syscall.INET_EGRESS,
    "agentsh_make": bpf_syscall.INET_SOCK_CREATE,
}
MAPS = ("rules", "sieve", "config", "counters", "makers", "names", "streams", "blank", "records")
OBJECT = "connect.bpf.o"  # made by bpf/build

_PACKAGE = Path(__file__).parent.parent


def directory() -> Path:
    """Return the directory with agentsh.h and connect.bpf.c: in the package (a wheel), or beside it (a checkout). Raises KernelError where the installation lacks it."""
    for candidate in (_PACKAGE / "bpf", _PACKAGE.parent / "bpf"):
        if (candidate / "connect.bpf.c").is_file():
            return candidate
    raise KernelError("the probes' source is missing", layer="ebpf", remedy="reinstall agentsh-net")
