"""The kernel as the daemon sees it: both planes behind `core.network.plane.Kernel`.

A layer that cannot be had is off, with its reason and remedy in `status`; only `network.required` makes that fatal. The
planes know nothing of each other. Cleaning up after a daemon that is gone is leftovers.py's business (`down`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.egress import is_declared
from agentsh_net.core.network.kernel_plan import Diff, diff, without_providers
from agentsh_net.core.network.packet_part import PacketPart
from agentsh_net.core.network.plane import ConnectRecord, LayerStatus, Plan
from agentsh_net.core.network.shared_endpoints import decided_by_name, told_of
from agentsh_net.kernel import leftovers
from agentsh_net.kernel.bpf import ebpf, loader, streams
from agentsh_net.kernel.bpf.ebpf import Ebpf
from agentsh_net.kernel.cgroups import cgroup
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.cgroups.layer import CgroupLayer
from agentsh_net.kernel.cgroups.own_cgroups import OwnCgroups
from agentsh_net.kernel.claims import Claim, claim_namespace
from agentsh_net.kernel.nft import nftables
from agentsh_net.kernel.nft.alarm import Alarm
from agentsh_net.kernel.nft.nftables import Nftables
from agentsh_net.kernel.process import Processes
from agentsh_net.kernel.readers import wait_for_readers
from agentsh_net.kernel.sightings import Sighted
from agentsh_net.kernel.sockets.sweep import sweep
from agentsh_net.kernel.unwanted import LAYERS, Unwanted
from agentsh_net.kernel.witness import Witness


class Host:
    """The planes of this host. Made by `open_kernel`; nothing is enforced before the first `apply`."""

    def __init__(
        self, hierarchy: Path | None, *, required: bool, cgroups: bool = True, worker_uid: int | None = None
    ) -> None:
        self._required = required
        self._cgroups = CgroupLayer(hierarchy, wanted=cgroups, worker_uid=worker_uid)
        self._claim: Claim | None = None  # on the network namespace
        self._hierarchy = hierarchy
        self._plan: Plan | None = None
        self._wanted: Plan | None = None  # the same, and what no plane can have
        self._packets = Plan()  # the packet plane's part of it
        self._part = PacketPart()
        self._ebpf: Ebpf | None = None
        self._nft: Nftables | None = None
        self._alarm: Alarm | None = None
        self._off: dict[str, KernelError] = {}
        self._unwanted = Unwanted()
        self._changing = threading.Lock()  # the daemon applies and asks from threads
        self._everywhere = True  # other network namespaces are swept too
        self._inherited = False
        self._recognised = self._cgroups.ids  # by the planes
        self._witness = Witness(Sighted(Processes(hierarchy), self._cgroups.own))

    @property
    def cgroups(self) -> OwnCgroups | None:
        """The cgroups of ours, None where none can be had."""
        return self._cgroups.own

    @property
    def inherited(self) -> bool:
        """Say whether something of ours was in the layers before the first plan was."""
        return self._inherited

    def apply(self, plan: Plan) -> None:
        """Make every layer enforce exactly `plan`. Raises KernelError with the old plan in force."""
        self._cgroups.require(plan)
        with self._changing, self._unheard():
            self._wanted = plan
            plan = plan if self._knows_workers() else without_providers(plan)
            if self._plan is None:
                self._start(plan)
            elif plan != self._plan:
                self._change(self._plan, plan)
            else:
                self._assert(plan)
            self._recognise(plan)
            self._plan, self._packets = plan, self._for_packets(plan)

    def reassert(self) -> None:
        """Put back what somebody took away of the plan in force. Raises KernelError."""
        with self._changing:
            if self._plan is not None:
                self._assert(self._plan)
                self._cgroups.make_again()
                self._recognise(self._plan)

    def sweep(self, plan: Plan) -> list[ConnectRecord]:
        """Close established sockets to denied endpoints and return what was closed. Raises KernelError."""
        read = self._ebpf.streams if self._ebpf is not None and decided_by_name(plan) else None
        plan = plan if self._knows_workers() else without_providers(plan)
        closed = sweep(
            plan,
            self._cgroups.concerned(plan),
            read,
            self._cgroups.judged(plan),
            everywhere=self._everywhere,
        )
        found = self._witness.swept(closed, plan.generation, named=read is not None)
        if plan.egress is None:
            return found
        return [replace(r, undeclared=not is_declared(plan, r.address, r.port)) for r in found]

    def filenos(self) -> list[int]:
        """Return the descriptors that become readable when `records` has something."""
        return self._witness.filenos()

    def records(self) -> list[ConnectRecord]:
        """Return what was seen since the last call, a batch at most, without waiting. Raises KernelError."""
        return self._witness.records()

    def disturbed(self) -> bool:
        """Say whether nf_tables or a device changed, or a program of ours was taken away. While a plan is applied, it is we who do it."""
        if not self._changing.acquire(blocking=False):
            return False
        try:
            rang = self._alarm is not None and self._alarm.rang()
            rang = (self._nft is not None and self._nft.rang()) or rang
            return rang or (self._ebpf is not None and self._plan is not None and self._ebpf.detached())
        finally:
            self._changing.release()

    def status(self) -> list[LayerStatus]:
        """Ask the kernel what is in force."""
        self._witness.hear_again()
        with self._changing:
            cgroups = self._cgroups.status(self._wanted, knows_workers=self._knows_workers())
            return [*(self._status(layer) for layer in LAYERS), *cgroups]

    def close(self, *, remove: bool) -> None:
        """Let go of the kernel. Raises KernelError for what could not be removed, after everything was tried."""
        with self._changing:
            self._close(remove=remove)

    def open_layers(self, network: Network, load: Callable[[], loader.Loaded] | None) -> None:
        """Open what `network` asks for. Raises KernelError where a required layer cannot be had, or another daemon enforces there."""
        self._unwanted = Unwanted(network)
        self._everywhere = network.scope != "netns"
        if ebpf.LAYER in self._unwanted:
            self._cgroups.leave_programs()
        elif self._cgroups.taken is not None:
            raise self._cgroups.taken
        if nftables.LAYER not in self._unwanted:
            self._claim = claim_namespace()
        if ebpf.LAYER not in self._unwanted:
            self._try(ebpf.LAYER, lambda: self._open_ebpf(network, load))
        if nftables.LAYER not in self._unwanted:
            self._try(nftables.LAYER, lambda: self._open_nft(network.nflog_group))

    def _open_ebpf(self, network: Network, load: Callable[[], loader.Loaded] | None) -> None:
        if self._hierarchy is None:
            raise KernelError("no cgroup v2 hierarchy is mounted", layer=ebpf.LAYER, remedy=cgroup.REMEDY)
        root = self._hierarchy
        load = load or (lambda: loader.load(network.bpf_loader, streams.of_predecessor(root)))
        self._ebpf = Ebpf(root, load, self._cgroups.ids)
        self._witness.hear_programs(self._ebpf)

    def _open_nft(self, group: int) -> None:
        self._nft = Nftables(group, self._cgroups.sockets(), self._cgroups.present)
        with contextlib.suppress(KernelError):  # then others' doings are noticed at the next look
            self._alarm = Alarm()
        self._witness.hear_packets(group)

    def _try(self, layer: str, action: Callable[[], None]) -> None:
        """Do what a layer needs; on failure the layer is off, which only `required` makes fatal."""
        try:
            action()
        except KernelError as error:
            self._off[layer] = error
            if self._required:
                told = f"the layer {layer}, without which network.required lets nothing start: {error}"
                raise KernelError(told, layer=layer, remedy=error.remedy) from error

    def _unheard(self) -> contextlib.AbstractContextManager[None]:
        """Commit within what the alarm is not to hear."""
        return self._alarm.deaf() if self._alarm is not None else contextlib.nullcontext()

    def _knows_workers(self) -> bool:
        """Say whether every plane can tell our proxy from others, so that what is denied to others does not cut it off."""
        nft_knows = self._nft is None or self._nft.knows_workers
        return nft_knows and (self._ebpf is None or self._cgroups.own is not None)

    def _start(self, plan: Plan) -> None:
        self._inherited = self._predecessor()
        try:
            for plane, layer in ((self._ebpf, ebpf.LAYER), (self._nft, nftables.LAYER)):
                if plane is not None:
                    part = plan if layer == ebpf.LAYER else self._for_packets(plan)
                    self._try(layer, partial(plane.start, part))
        except KernelError:
            # Whoever came before us may have been enforcing: that is not undone.
            self._close(remove=not self._inherited)
            raise
        self._drop_layers_that_are_off()
        self._unwanted.clear(self._hierarchy, claimed=self._cgroups.claimed)

    def _for_packets(self, plan: Plan) -> Plan:
        """Return what the packet plane has to do of a plan: it cannot read names."""
        elsewhere = self._ebpf is not None and ebpf.LAYER not in self._off
        return self._part.of(plan, elsewhere=elsewhere)

    def _predecessor(self) -> bool:
        """Say whether something of ours is in the layers that are opened now."""
        programs = (
            self._ebpf is not None and self._hierarchy is not None and leftovers.programs(self._hierarchy)
        )
        return bool(programs) or (self._nft is not None and bool(nftables.tables()))

    def _close(self, *, remove: bool) -> None:
        problems = []
        self._witness.close()
        for layer in (self._nft, self._ebpf):
            try:
                if layer is not None:
                    layer.close(remove=remove)
            except KernelError as error:
                problems.append(error)
        if self._alarm is not None:
            self._alarm.close()
        self._cgroups.close(remove=remove)
        if self._claim is not None:
            self._claim.release()
        self._ebpf, self._nft, self._alarm, self._claim = None, None, None, None
        if problems:
            raise problems[0]

    def _drop_layers_that_are_off(self) -> None:
        if ebpf.LAYER in self._off and self._ebpf is not None:
            self._witness.hear_programs(None)
            self._ebpf.close(remove=False)
            self._ebpf = None
        if nftables.LAYER in self._off and self._nft is not None:
            self._nft.close(remove=False)
            self._nft = None

    def _change(self, old: Plan, new: Plan) -> None:
        """Add to both planes, wait, delete from both: at no moment is less denied than both plans deny."""
        step = diff(old, new)
        try:
            if self._ebpf is not None:
                self._ebpf.add(new, step)
            due = self._widen(old, new, step)
            if due or step.deletes:
                wait_for_readers()
            if due and self._nft is not None:
                self._nft.narrow(due)
            if self._ebpf is not None:
                self._ebpf.delete(new, step)
        except KernelError as error:
            self._restore(old, error)
            raise

    def _widen(self, old: Plan, new: Plan, step: Diff) -> nftables.Narrowing | None:
        if self._nft is None:
            return None
        before, after = self._for_packets(old), self._for_packets(new)
        whole = before.rules is old.rules and after.rules is new.rules
        return self._nft.widen(before, after, step if whole else diff(before, after))

    def _restore(self, old: Plan, cause: KernelError) -> None:
        try:
            if self._ebpf is not None:
                self._ebpf.restore(old)
            if self._nft is not None:
                self._nft.start(self._for_packets(old))
        except KernelError as error:
            raise KernelError(
                f"{cause}; and the old plan could not be restored: {error}",
                layer=error.layer,
                remedy=error.remedy,
            ) from cause

    def _assert(self, plan: Plan) -> None:
        """Put back what somebody took away. Raises KernelError."""
        if self._ebpf is not None and not self._ebpf.status(plan).in_force:
            self._ebpf.restore(plan)
        if self._nft is not None:
            part = self._for_packets(plan)
            status = self._nft.status(part)
            if not status.in_force:
                self._nft.start(part)
            elif status.behind:
                self._nft.follow(part)

    def _recognise(self, plan: Plan) -> None:
        """Let the planes know our cgroups where they are others than before: somebody removed them, and they were made again."""
        if self._cgroups.ids == self._recognised:
            return
        if self._ebpf is not None:
            self._ebpf.know(self._cgroups.ids, plan)
        if self._nft is not None:
            self._nft.start(self._for_packets(plan))
        self._recognised = self._cgroups.ids

    def _status(self, layer: str) -> LayerStatus:
        if layer in self._unwanted:
            return self._unwanted.status(layer)
        plane = self._ebpf if layer == ebpf.LAYER else self._nft
        if plane is None:
            error = self._off.get(layer, KernelError("closed"))
            return LayerStatus(layer, wanted=True, in_force=False, reason=str(error), remedy=error.remedy)
        if self._plan is None:
            return LayerStatus(layer, wanted=True, in_force=False, reason="no plan was applied yet")
        status = plane.status(self._plan if layer == ebpf.LAYER else self._packets)
        if layer == nftables.LAYER:
            whole = self._packets is self._plan  # nothing is left to who reads names
            names = "" if whole else told_of(self._plan, read_elsewhere=self._ebpf is not None)
            silent = self._witness.silent
            detail = "; ".join(filter(None, (status.detail, names, silent)))
            status = replace(status, detail=detail, silent=silent, lost=self._witness.lost)
        return status


def open_kernel(
    network: Network,
    *,
    load: Callable[[], loader.Loaded] | None = None,
    worker_uid: int | None = None,
) -> Host:
    """Open the layers that `network` asks for. Raises KernelError only where `network.required` and one cannot be had.

    `load` stands in for what `network.bpf_loader` names; `worker_uid` is a user that only the proxy's workers are.
    """
    host = Host(
        hierarchy(),
        required=network.required,
        cgroups=network.mode != "off",
        worker_uid=worker_uid,
    )
    try:
        host.open_layers(network, load)
    except KernelError:
        host.close(remove=False)
        raise
    return host
