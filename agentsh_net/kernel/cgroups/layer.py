"""The cgroups of ours as a layer: why there are none, what hangs on them, and the claim on the hierarchy in which they are.

What is in them is own_cgroups' business; the programs that ask for them are ebpf.py's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agentsh_net.core.abi.sock_diag import Socket
from agentsh_net.core.abi.wire import NO_CGROUPS, OwnIds
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import LayerStatus, Plan, Rule
from agentsh_net.core.nft.sockets import Sockets
from agentsh_net.kernel.cgroups import cgroup, own_cgroups
from agentsh_net.kernel.cgroups.own_cgroups import LAYER, OwnCgroups
from agentsh_net.kernel.claims import Claim, TakenError, claim_hierarchy
from agentsh_net.kernel.limits import may_load_programs


class CgroupLayer:
    """The cgroups of a host, or why it has none. `worker_uid`: a user that only the proxy's workers are."""

    def __init__(self, hierarchy: Path | None, *, wanted: bool, worker_uid: int | None) -> None:
        self.own: OwnCgroups | None = None
        self.taken: TakenError | None = None  # another daemon has this hierarchy
        self._worker_uid = worker_uid
        self._claim: Claim | None = None
        self._why_none = "" if wanted else "network.mode is off"
        if wanted:
            self._make(hierarchy)

    def _make(self, hierarchy: Path | None) -> None:
        if hierarchy is None:
            self._why_none = f"no cgroup v2 hierarchy is mounted ({cgroup.REMEDY})"
            return
        try:
            # Who could put nothing there does not keep others out, nor is kept out by them: a user's own proxy, for one.
            if may_load_programs() or os.access(hierarchy, os.W_OK, effective_ids=True):
                self._claim = claim_hierarchy(hierarchy)
            self.own = OwnCgroups(hierarchy)
        except KernelError as error:
            self.taken = error if isinstance(error, TakenError) else None
            self._why_none = f"{error} ({error.remedy})"

    @property
    def ids(self) -> OwnIds:
        """How programs know them."""
        return self.own.ids if self.own is not None else NO_CGROUPS

    @property
    def claimed(self) -> bool:
        """Say whether the hierarchy is claimed by this process."""
        return self._claim is not None

    def sockets(self) -> Sockets:
        """Return how nftables knows them."""
        found = self.own.sockets() if self.own is not None else Sockets()
        return replace(found, worker_uid=self._worker_uid)

    def present(self, session_ids: tuple[str, ...]) -> tuple[str, ...]:
        """Return those sessions that have a cgroup."""
        return self.own.present(session_ids) if self.own is not None else ()

    def make_again(self) -> None:
        """Make what somebody removed. Raises KernelError."""
        if self.own is not None:
            self.own.make_again()

    def require(self, plan: Plan) -> None:
        """Raise KernelError where a plan cannot do without them."""
        wanted = "network.scope is sessions" if plan.sessions_only else ""
        if plan.egress is not None and not plan.egress.everybody:
            wanted = wanted or "network.egress is about sessions"
        egress, nobody = plan.egress, self._worker_uid is None and self.own is None
        if egress is not None and egress.everybody and egress.refuse and nobody:
            told = f"network.egress is about everybody but our proxy, which cannot be told: {self._why_none}"
            remedy = "add SETUID and SETGID to the container's capabilities, or network.egress.sessions: tag"
            raise KernelError(told, layer=LAYER, remedy=remedy)
        if wanted and self.own is None:
            raise KernelError(
                f"{wanted}, and no session can be told: {self._why_none}",
                layer=LAYER,
                remedy=own_cgroups.REMEDY,
            )

    def concerned(self, plan: Plan) -> Callable[[Rule, Socket], bool]:
        """Return what says whether a socket is one that a rule of the plan concerns."""
        own = self.own
        members = own.members() if own is not None and plan.sessions_only else {}

        def concerns(rule: Rule, found: Socket) -> bool:
            if plan.sessions_only and found.cgroup_id not in members:
                return False
            return not (rule.unless_ours and own is not None and found.cgroup_id == own.ids.workers)

        return concerns

    def judged(self, plan: Plan) -> Callable[[Socket], bool]:
        """Return what says whether a socket is one that reaches only what the plan declares."""
        egress = plan.egress
        if egress is None or not egress.refuse:
            return lambda _: False
        if egress.everybody:
            return lambda found: (
                found.uid != self._worker_uid and found.cgroup_id != (self.ids.workers or None)
            )
        members = self.own.members() if self.own is not None else {}
        return lambda found: found.cgroup_id in members

    def status(self, plan: Plan | None, *, knows_workers: bool) -> list[LayerStatus]:
        """Return the row of our cgroups, where there are any or something hangs on them. `knows_workers`: every plane tells the proxy from others."""
        needs = plan is not None and (
            plan.sessions_only
            or (plan.egress is not None and not plan.egress.everybody)
            or any(r.unless_ours for r in plan.rules.values())
        )
        if self.own is None:
            exempt = needs and knows_workers and not (plan and plan.sessions_only)
            detail = f"the proxy is exempt as uid {self._worker_uid}" if exempt else ""
            reason = "" if detail else self._why_none
            row = LayerStatus(
                LAYER, needs, bool(detail), detail, reason, own_cgroups.REMEDY if reason else ""
            )
            return [row] if needs else []
        if not needs and not self.own.live():
            return []
        reason = self.own.why_not()
        if needs and not reason and not knows_workers:
            reason = "nftables finds no cgroup of ours: cgroup v2 is not mounted below /sys/fs/cgroup"
        return [
            LayerStatus(
                LAYER,
                wanted=needs,
                in_force=not reason,
                detail=self.own.describe(),
                reason=reason,
                remedy="they are made again; where that fails the log says why" if reason else "",
            )
        ]

    def leave_programs(self) -> None:
        """Let others have the hierarchy where there is nothing of ours: no programs are wanted, and no cgroups could be made."""
        if self.own is None:
            self._release()

    def close(self, *, remove: bool) -> None:
        """Let go; with `remove` of every cgroup in which nothing runs."""
        with suppress(KernelError):
            if self.own is not None and remove:
                self.own.remove()
        self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None
