"""Ends connections whose ClientHello was refused (SOCK_DESTROY), so that their clients are told instead of waiting for minutes.

Best effort: nothing that such a client sends leaves anyhow. What is refused is the probes' business (bpf/stream.h).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from agentsh_net.core.abi import sock_diag, wire
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate
from agentsh_net.kernel import net_namespaces
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.sockets.diag import destroy


def cut(records: Iterable[wire.Record]) -> None:
    """End the connections that these records tell of, in our network namespace or their processes'.

    Nobody is looked for: whoever has a thousand namespaces and closes what was refused would have the caller search them all.
    """
    refused = [r for r in records if r.source and r.fate is Fate.DENY and not r.observed]
    if not refused:
        return
    with contextlib.suppress(KernelError), Netlink(SOCK_DIAG) as connection:
        refused = [record for record in refused if not _cut(connection, record)]
    for record in refused:
        path = net_namespaces.of(record.tid, record.pid)
        if path is not None:
            with (
                contextlib.suppress(KernelError, OSError),  # gone meanwhile, or may not be entered
                net_namespaces.within(path, lambda: Netlink(SOCK_DIAG)) as connection,
            ):
                _cut(connection, record)


def _cut(connection: Netlink, record: wire.Record) -> bool:
    """Destroy the socket that a record tells of; say whether the connection's namespace had it."""
    source, port = record.source or (record.address, 0)
    request = sock_diag.connection(source, port, record.address, record.port, record.socket_cookie)
    try:
        return destroy(connection, request)
    except OSError:  # a kernel without CONFIG_INET_DIAG_DESTROY; the sweep says so
        return False
