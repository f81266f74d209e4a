"""A kernel that prints what it was asked: the daemon's tests read it as text."""

from __future__ import annotations

import os

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.attribution import remote
from agentsh_net.core.network.plane import ConnectRecord, LayerStatus, Plan


class FakeCgroups:
    """Remembers who was moved where; `empty` are the sessions in which nothing runs any more."""

    def __init__(self) -> None:
        self.inside: dict[str, list[int]] = {}
        self.workers: list[int] = []
        self.empty: list[str] = []
        self.senders: dict[int, str | None] = {}  # by their sockets' ports

    def live(self) -> list[str]:
        return sorted(self.inside)

    def begin(self, session_id: str) -> None:
        if self.inside.get(session_id):
            raise KernelError(f"session {session_id} runs already", layer="cgroups")
        self.inside[session_id] = []

    def enter(self, session_id: str, pid: int) -> None:
        self.inside[session_id].append(pid)

    def session_of_process(self, pid: int) -> str:
        return next((session_id for session_id, pids in self.inside.items() if pid in pids), "")

    def session_of_sender(self, packet: Packet) -> str | None:
        return self.senders.get(packet.source_port, "")

    def ended(self) -> list[str]:
        return [s for s in self.live() if s in self.empty or not self.inside[s]]

    def end(self, session_id: str) -> None:
        del self.inside[session_id]

    def employ(self, pid: int) -> None:
        self.workers.append(pid)


class FakeKernel:
    """Holds one plan. `seen` are records to be read, `swept` what the next sweep closes, `broken` fails the next apply."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.plans: list[Plan] = []
        self.tries = 0  # to apply one
        self.seen: list[ConnectRecord] = []
        self.swept: list[ConnectRecord] = []
        self.broken = ""
        self.gone = False  # somebody took the layer away
        self.behind = ""  # what came to the machine
        self.silent = ""  # why it tells no events
        self.lost = 0
        self.touched = False  # somebody did something
        self.reasserted = 0
        self.closed: str | None = None
        self.inherited = False  # an earlier daemon's rules were there
        self.cgroups: FakeCgroups | None = FakeCgroups()
        self._reader, self._writer = os.pipe()

    def apply(self, plan: Plan) -> None:
        self.tries += 1
        if self.broken:
            raise KernelError(self.broken, layer="ebpf", remedy="mend it")
        self.plan, self.gone, self.behind = plan, False, ""
        self.plans.append(plan)

    def reassert(self) -> None:
        if self.broken:
            raise KernelError(self.broken, layer="ebpf", remedy="mend it")
        self.gone, self.behind = False, ""
        self.reasserted += 1

    def sweep(self, plan: Plan) -> list[ConnectRecord]:
        found, self.swept = self.swept, []
        return found

    def filenos(self) -> list[int]:
        return [self._reader]

    def see(self, *records: ConnectRecord) -> None:
        self.seen += records
        os.write(self._writer, b"!")

    def records(self) -> list[ConnectRecord]:
        if self.seen:
            os.read(self._reader, 1)
        found, self.seen = self.seen, []
        return found

    def disturbed(self) -> bool:
        found, self.touched = self.touched, False
        return found

    def status(self) -> list[LayerStatus]:
        in_force = self.plan is not None and not self.gone
        return [
            LayerStatus(
                "ebpf",
                wanted=True,
                in_force=in_force,
                detail="fake",
                reason="taken" if self.gone else "",
                lost=self.lost,
                silent=self.silent,
                behind=self.behind,
            )
        ]

    def close(self, *, remove: bool) -> None:
        self.closed = "removed" if remove else "kept"

    def text(self) -> str:
        """Return the plan in force, a rule a line."""
        rules = self.plan.rules.items() if self.plan else ()
        return "\n".join(
            f"{rule.fate} {remote(e.address, e.port)} {','.join(rule.server_ids)}" for e, rule in rules
        )
