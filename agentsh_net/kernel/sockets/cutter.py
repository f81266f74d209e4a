"""Ends connections whose ClientHello was refused (SOCK_DESTROY), so that their clients are told instead of waiting for minutes.

Best effort: nothing that such a client sends leaves anyhow. What is refused is the probes' business (bpf/stream.h).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable

from agentsh_net.core.abi import sock_diag, wire
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate
from agentsh_net.kernel import net_namespaces
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.sockets.diag import destroy

# Looking into other namespaces walks /proc: at most this often (seconds), however many connections are refused.
_ELSEWHERE_EVERY = 0.1
# Connections of other namespaces that wait for it; the sweep ends what is beyond.
_MOST_WAITING = 1024


class Cutter:
    """Remembers whom it did not find in this namespace. May be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._looked_at = 0.0

    def cut(self, records: Iterable[wire.Record]) -> None:
        """End the connections that these records tell of, and those that had to wait."""
        requests = [_request(r) for r in records if r.source and r.fate is Fate.DENY and not r.observed]
        if not requests and not self._waiting:
            return
        with self._lock:
            if requests:
                with contextlib.suppress(KernelError), Netlink(SOCK_DIAG) as connection:
                    requests = _left(connection, requests)
                self._waiting = [*self._waiting, *requests][:_MOST_WAITING]
            now = time.monotonic()
            if self._waiting and now - self._looked_at >= _ELSEWHERE_EVERY:
                self._looked_at = now
                self._look_elsewhere()

    def _look_elsewhere(self) -> None:
        waiting, self._waiting = self._waiting, []
        for path in net_namespaces.others():
            with (
                contextlib.suppress(KernelError, OSError),  # gone meanwhile, or may not be entered
                net_namespaces.within(path, lambda: Netlink(SOCK_DIAG)) as connection,
            ):
                waiting = _left(connection, waiting)
            if not waiting:
                return


def _request(record: wire.Record) -> bytes:
    source, port = record.source or (record.address, 0)
    return sock_diag.connection(source, port, record.address, record.port, record.socket_cookie)


def _left(connection: Netlink, requests: list[bytes]) -> list[bytes]:
    """Destroy the sockets of the connection's namespace, and return the requests for those that it does not have."""
    return [request for request in requests if not _destroyed(connection, request)]


def _destroyed(connection: Netlink, request: bytes) -> bool:
    try:
        return destroy(connection, request)
    except OSError:  # a kernel without CONFIG_INET_DIAG_DESTROY; the sweep says so
        return False
