"""Hears at once that somebody changed something in this network namespace: us, a container engine, or a saboteur.

Says that there is something to look at, never what: what stands is asked of the kernel itself (table.py, devices.py).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import NETFILTER, RECEIVE, Netlink

_SOL_NETLINK, _ADD_MEMBERSHIP, _DROP_MEMBERSHIP = 270, 1, 2
_TABLES = 7  # NFNLGRP_NFTABLES
# Messages read at one time; of more it is enough to know that there are some.
_MOST = 64


class Alarm:
    """A subscription: to what is committed to nf_tables, or to another group. Raises KernelError where it cannot be had."""

    def __init__(self, protocol: int = NETFILTER, group: int = _TABLES) -> None:
        self._netlink, self._group = Netlink(protocol), group
        self._deaf = False  # since the last call of `rang`
        try:
            self._subscribe(_ADD_MEMBERSHIP)
        except KernelError:
            self._netlink.close()
            raise
        self._netlink.socket.setblocking(False)

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Listen to nobody within, and ring once afterwards: whoever committed something may not have been alone.

        Where somebody listens the kernel tells of every element by itself, which takes as long as to add it. Raises KernelError.
        """
        self._subscribe(_DROP_MEMBERSHIP)
        try:
            yield
        finally:
            self._deaf = True
            self._subscribe(_ADD_MEMBERSHIP)

    def rang(self) -> bool:
        """Say whether anything was changed since the last call."""
        heard, self._deaf = self._deaf, False
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

    def _subscribe(self, option: int) -> None:
        try:
            self._netlink.socket.setsockopt(_SOL_NETLINK, option, self._group)
        except OSError as error:
            raise KernelError(f"no news of the kernel's: {error.strerror}") from error
