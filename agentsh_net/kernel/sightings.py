"""Turns what the planes report into ConnectRecords: wall-clock time, the process behind it, one record per connection.

Decides nothing about policy; what a record means is core.network.attribution.attribute's business.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from agentsh_net.core.abi import nflog, wire
from agentsh_net.core.abi.sock_diag import Socket
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.pairing import Sightings
from agentsh_net.core.network.plane import ConnectRecord, Fate, Finding
from agentsh_net.kernel import boot_clock
from agentsh_net.kernel.cgroups.own_cgroups import OwnCgroups
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.process import Process, Processes
from agentsh_net.kernel.sockets.diag import look_up
from agentsh_net.kernel.sockets.owners import SocketOwners

_INET, _INET6 = 2, 10
# Looking for the owner of a logged packet walks /proc: at most this often (seconds), and one part in so many of the time on
# hosts where that takes long.
_OWNERS_EVERY = 0.1
_OWNERS_SHARE = 20


class Sighted:
    """Keeps what is needed from one call to the next: paired connections, known cgroups."""

    def __init__(self, processes: Processes, own: OwnCgroups | None = None) -> None:
        self._processes = processes
        self._own = own
        self._pairs = Sightings()
        self._sockets = SocketOwners(processes)
        self._next_owners = 0.0
        self._ahead = boot_clock.namespace_offset()

    def connects(self, records: Sequence[wire.Record]) -> list[ConnectRecord]:
        """Return the eBPF plane's records."""
        if not records:
            return []
        wall, boot = time.time_ns(), boot_clock.nanoseconds()
        started = wall - (boot - self._ahead)  # when the kernel's clock began
        found = []
        owners = self._sockets.by_cookie({r.socket_cookie for r in records if not r.pid})
        described: dict[tuple[int, int], Process] = {}  # a flood is of few processes
        for record in records:
            who = record.pid or owners.get(record.socket_cookie, 0), record.cgroup_id
            if who not in described:
                described[who] = self._processes.describe(*who)
            if record.fate is Fate.TAG:
                self._pairs.connected(record.address, record.port, record.protocol, boot)
            found.append(self._connect(record, who[0], described[who], time_ns=started + record.boot_ns))
        return found

    def packets(self, logged: Sequence[nflog.Logged]) -> list[ConnectRecord]:
        """Return the packet plane's records; call `connects` first with what eBPF saw meanwhile."""
        now = boot_clock.nanoseconds()
        news = [one for one in logged if one.fate is Fate.DENY or self._pairs.is_news(one.packet, now)]
        owners = self._owners_of(news)
        described: dict[int, tuple[Process, str]] = {}  # a flood is of few processes
        found = []
        for i, one in enumerate(news):
            pid = owners.get(i, 0)
            if pid not in described:
                described[pid] = self._processes.describe(pid), self._processes.comm(pid) if pid else ""
            found.append(self._packet(one, pid, *described[pid]))
        return found

    def swept(
        self, sockets: Sequence[Socket], generation: int, *, named: bool = False
    ) -> list[ConnectRecord]:
        """Return the records of destroyed sockets; their owners still hold the descriptors. `named`: their names were read."""
        owners = self._processes.owners({s.inode for s in sockets})
        now = time.time_ns()
        found = []
        for socket in sockets:
            record = self._swept(socket, owners.get(socket.inode, 0), time_ns=now, generation=generation)
            if named:
                stream = wire.decode_stream(socket.storage)
                sni = "" if stream is None else stream.name
                record = replace(record, finding=Finding.NAMED if sni else Finding.UNSEEN, sni=sni)
            found.append(record)
        return found

    def _session(self, cgroup_id: int, path: str) -> str:
        """Return the session of a record: by what the kernel said at that time, else by where its process is now."""
        if self._own is None:
            return ""
        return self._own.session_of(cgroup_id) or self._own.session_of_path(path)

    def _connect(self, record: wire.Record, pid: int, process: Process, *, time_ns: int) -> ConnectRecord:
        return ConnectRecord(
            layer="ebpf",
            fate=record.fate,
            address=record.address,
            port=record.port,
            protocol=record.protocol,
            family=record.family,
            time_ns=time_ns,
            generation=record.generation,
            pid=pid,
            uid=record.uid,
            comm=record.comm if record.pid or not pid else self._processes.comm(pid),
            exe=process.exe,
            cgroup=process.cgroup,
            container_id=process.container_id,
            observed=record.observed,
            session_id=self._session(record.session, process.cgroup),
            finding=record.finding,
            sni=record.sni,
            undeclared=record.undeclared,
        )

    def _swept(self, socket: Socket, pid: int, *, time_ns: int, generation: int) -> ConnectRecord:
        process = self._processes.describe(pid)
        return ConnectRecord(
            layer="sweep",
            fate=Fate.DENY,
            address=canonical(socket.destination),
            port=socket.destination_port,
            protocol=socket.protocol,
            family=socket.family,
            time_ns=time_ns,
            generation=generation,
            pid=pid,
            uid=socket.uid,
            comm=self._processes.comm(pid),
            exe=process.exe,
            cgroup=process.cgroup,
            container_id=process.container_id,
            session_id=self._session(socket.cgroup_id, process.cgroup),
        )

    def _packet(self, logged: nflog.Logged, pid: int, process: Process, comm: str) -> ConnectRecord:
        packet = logged.packet
        return ConnectRecord(
            layer="nftables",
            fate=logged.fate,
            address=canonical(packet.destination),
            port=packet.destination_port,
            protocol=packet.protocol,
            family=_INET if packet.destination.version == 4 else _INET6,
            time_ns=logged.time_ns or time.time_ns(),
            generation=logged.generation,
            pid=pid,
            uid=logged.uid,
            comm=comm,
            exe=process.exe,
            cgroup=process.cgroup,
            container_id=process.container_id,
            session_id=logged.session_id or self._session(0, process.cgroup),
            undeclared=logged.undeclared,
        )

    def _owners_of(self, logged: Sequence[nflog.Logged]) -> dict[int, int]:
        """Return index -> pid for the packets whose socket still stands. A refused TCP socket does not: its reset came first."""
        began = time.monotonic()
        if not logged or began < self._next_owners:
            return {}
        found = self._look_for_owners(logged)
        took = time.monotonic() - began
        self._next_owners = began + max(_OWNERS_EVERY, took * _OWNERS_SHARE)
        return found

    def _look_for_owners(self, logged: Sequence[nflog.Logged]) -> dict[int, int]:
        inodes: dict[int, int] = {}
        try:
            with Netlink(SOCK_DIAG) as connection:
                for i, one in enumerate(logged):
                    found = look_up(connection, one.packet)
                    if found is not None:
                        inodes[i] = found.inode
        except KernelError:
            return {}  # no sock_diag here: the record stands without its process
        pids = self._processes.owners(set(inodes.values()))
        return {i: pids[inode] for i, inode in inodes.items() if inode in pids}
