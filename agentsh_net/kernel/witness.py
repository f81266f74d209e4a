"""What the planes saw, told as records: read in the daemon's event loop, which never waits for an apply or a sweep.

Where the records come from is ebpf's and nflog's business, who is named in them sightings'; what is enforced is the host's.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from agentsh_net.core.abi.sock_diag import Socket
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import ConnectRecord
from agentsh_net.kernel.bpf.ebpf import Ebpf
from agentsh_net.kernel.nft.nflog import Nflog
from agentsh_net.kernel.sightings import Sighted
from agentsh_net.kernel.sockets import cutter


class Witness:
    """The ears of both planes. `silent` says why the packet plane tells nothing."""

    def __init__(self, sighted: Sighted) -> None:
        self._sighted = sighted
        self._reading = threading.Lock()
        self._ebpf: Ebpf | None = None
        self._nflog: Nflog | None = None
        self.silent = ""

    @property
    def lost(self) -> int:
        """How many packets' records the packet plane had no room for."""
        return self._nflog.lost if self._nflog is not None else 0

    def hear_programs(self, programs: Ebpf | None) -> None:
        """Read what these programs record from now on; None: those that were read are about to be closed."""
        with self._reading:
            self._ebpf = programs

    def hear_packets(self, group: int) -> None:
        """Read what is logged to a group from now on, or say why not. Raises KernelError where netlink is missing."""
        self._nflog = Nflog(group)
        self._listen(self._nflog)

    def hear_again(self) -> None:
        """Try once more to have the group that could not be had."""
        if self.silent and self._nflog is not None:
            with self._reading:  # whoever reads meanwhile would take the kernel's answer
                self._listen(self._nflog)

    def _listen(self, log: Nflog) -> None:
        try:
            log.listen()
        except KernelError as error:
            self.silent = f"no events from this layer: {error} ({error.remedy})"
        else:
            self.silent = ""

    def filenos(self) -> list[int]:
        """Return the descriptors that become readable when `records` has something."""
        return [source.fileno() for source in (self._ebpf, self._nflog) if source is not None]

    def records(self) -> list[ConnectRecord]:
        """Return what was seen since the last call, a batch at most, without waiting. Raises KernelError."""
        if not self._reading.acquire(blocking=False):
            return []  # a sweep tells what it closed; the next call has the rest
        try:
            # In this order: whatever made a packet that was logged by now has its connect record in the ring by now.
            logged = self._nflog.records() if self._nflog else []
            records = self._ebpf.records() if self._ebpf else []
            cutter.cut(records)
            connects = self._sighted.connects(records)
            return connects + self._sighted.packets(logged)
        finally:
            self._reading.release()

    def swept(self, closed: Sequence[Socket], generation: int, *, named: bool) -> list[ConnectRecord]:
        """Return the records of sockets that a sweep closed."""
        with self._reading:
            return self._sighted.swept(closed, generation, named=named)

    def close(self) -> None:
        """Hear nothing more; the programs are closed by whoever has them."""
        with self._reading:
            nflog, self._nflog, self._ebpf = self._nflog, None, None
        if nflog is not None:
            nflog.close()
