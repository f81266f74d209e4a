"""What the probes know of connections to shared endpoints lies in the sockets themselves: which map a successor takes over.

It is read with the sockets, by sock_diag (sockets/diag.py). The verdicts are the probes' (bpf/stream.h).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agentsh_net.core.abi import wire
from agentsh_net.kernel.bpf import attachment, syscall

MAP = "streams"
_LAYOUT = (syscall.SK_STORAGE, wire.STREAM_SIZE)


def of_predecessor(root: Path) -> dict[str, int]:
    """Return name -> id of the map of the programs that are attached there now, nothing where none could be understood.

    Then connections that stand are unknown: as `network.on_unknown_sni` says, they are cut, and begin anew.
    """
    with contextlib.suppress(OSError):
        cgroup = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            programs = [n for n, kind in attachment.ours(cgroup) if kind == syscall.INET_EGRESS]
            maps = [syscall.maps_of(number).get(MAP, (0,)) for number in programs]
        finally:
            os.close(cgroup)
        known = [number for number, *layout in maps if tuple(layout) == _LAYOUT]
        return {MAP: max(known)} if known else {}
    return {}
