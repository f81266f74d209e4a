"""How the packet plane tells whose socket a packet is from: by the cgroup in which the socket was made (`socket cgroupv2`).

Expressions only; where they stand is `ruleset`'s business. A socket that was made elsewhere and handed over is of the cgroup
that it was made in: only the other plane sees who uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Match = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sockets:
    """Where our cgroups are as nft names them (below /sys/fs/cgroup), empty: nowhere.

    `levels`: at which depth they may be; more than one where the kernel may count from the namespace's root or the real one.
    Without cgroups there are none.
    `worker_uid`: a user that nobody but the proxy's workers is, for where there are no cgroups.
    """

    sessions: str = ""
    workers: str = ""
    suffix: str = ""
    levels: tuple[int, ...] = ()
    worker_uid: int | None = None

    @property
    def knows_workers(self) -> bool:
        """Say whether the proxy's own packets can be told from others'."""
        return bool(self.workers) or self.worker_uid is not None

    def of_sessions(self) -> Iterator[Match]:
        """Yield expressions of which one matches what any session's socket sends."""
        yield from self._below(self.sessions, 0)

    def of_session(self, session_id: str) -> Iterator[Match]:
        """Yield expressions of which one matches what this session's sockets send."""
        yield from self._below(f"{self.sessions}/{session_id}{self.suffix}", 1)

    def of_workers(self) -> Iterator[Match]:
        """Yield expressions of which one matches what the proxy's workers send."""
        if self.workers:
            yield from self._below(self.workers, 0)
        elif self.worker_uid is not None:
            yield {"match": {"op": "==", "left": {"meta": {"key": "skuid"}}, "right": self.worker_uid}}

    def _below(self, path: str, deeper: int) -> Iterator[Match]:
        for level in self.levels:
            left = {"socket": {"key": "cgroupv2", "level": level + deeper}}
            yield {"match": {"op": "==", "left": left, "right": path}}


NOWHERE = Sockets()
