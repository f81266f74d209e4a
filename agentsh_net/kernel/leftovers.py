"""What of ours is in the kernel now, whoever put it there, and how it is removed: from any state, by nothing but names.

How a running daemon lets go of what is its own is `host`'s business.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import claims
from agentsh_net.kernel.bpf import attachment, bpffs, ebpf
from agentsh_net.kernel.cgroups import cgroup, own_cgroups
from agentsh_net.kernel.nft import nftables


def leftovers(cgroup_root: Path | None = None) -> list[str]:
    """Return what of ours is in the kernel now. Raises KernelError where the kernel does not say."""
    root = cgroup_root or cgroup.hierarchy()
    attached = programs(root) if root is not None else []
    pinned = bpffs.left(root.stat().st_ino) if root is not None else []
    return [
        *(f"eBPF program {number} at {root}" for number in attached),
        *(f"pins in {path}" for path in pinned),
        *(f"nftables table {name}" for name in nftables.tables()),
    ]


def down() -> list[str]:
    """Remove everything of ours from the kernel, in any state, and return what it was. Raises KernelError."""
    found, root = leftovers(), cgroup.hierarchy()
    for layer in (ebpf.LAYER, nftables.LAYER):
        remove(layer, root)
    if root is not None:
        own_cgroups.remove_empty(root)  # a session in which an agent runs goes with it
    return found


def owners() -> list[int]:
    """Return the daemons that live and enforce here: what `down` removes they would put back, or it is refused. Raises KernelError."""
    root = cgroup.hierarchy()
    claimed = {claims.namespace_holder(), claims.hierarchy_holder(root) if root is not None else None}
    return sorted({pid for pid in (*nftables.owners(), *claimed) if pid})


def remove(layer: str, root: Path | None) -> None:
    """Remove everything of ours from one layer. Raises KernelError."""
    if layer == nftables.LAYER:
        nftables.remove_tables()
    elif root is not None:
        with _opened(root) as descriptor:
            attachment.detach_ours(descriptor, keep=set())
            attachment.clear_pins(os.fstat(descriptor).st_ino, keep=set())


def programs(root: Path) -> list[int]:
    """Return the ids of our programs at a cgroup. Raises KernelError."""
    with _opened(root) as descriptor:
        return [number for number, _ in attachment.ours(descriptor)]


@contextlib.contextmanager
def _opened(root: Path) -> Iterator[int]:
    """Open a cgroup; what the kernel refuses meanwhile is a KernelError."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise KernelError(
            f"the kernel does not answer for {root}: {error.strerror}", layer=ebpf.LAYER, remedy="run as root"
        ) from error
