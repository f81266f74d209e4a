"""Hears at once that somebody committed something to nf_tables in this network namespace: us, a container engine, or a saboteur.

Says that there is something to look at, never what: what stands is asked of the kernel itself (table.py).
"""

from __future__ import annotations

import socket

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import NETFILTER, RECEIVE, Netlink

_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_GROUP = 7  # NFNLGRP_NFTABLES
# Messages read at one time; of more it is enough to know that there are some.
_MOST = 64


class Alarm:
    """A subscription. Raises KernelError where it cannot be had."""

    def __init__(self) -> None:
        self._netlink = Netlink(NETFILTER)
        try:
            self._netlink.socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP)
        except OSError as error:
            self._netlink.close()
            raise KernelError(f"no news of nf_tables: {error.strerror}") from error
        self._netlink.socket.setblocking(False)

    def rang(self) -> bool:
        """Say whether anything was committed since the last call."""
        heard = False
        for _ in range(_MOST):
            try:
                self._netlink.socket.recv(RECEIVE, socket.MSG_TRUNC)
            except BlockingIOError:
                break
            except OSError:  # ENOBUFS: there was more than the socket could keep
                return True
            heard = True
        return heard

    def close(self) -> None:
        """End the subscription."""
        self._netlink.close()
