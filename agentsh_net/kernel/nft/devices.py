"""The devices of this network namespace by which packets leave it, listed anew only where the kernel told of a change."""

from __future__ import annotations

import socket

from agentsh_net.core.nft import packet_fence
from agentsh_net.kernel.netlink import ROUTE
from agentsh_net.kernel.nft.alarm import Alarm

_LINKS = 1  # RTNLGRP_LINK


class Devices:
    """Their names, as they are now. Raises KernelError where the kernel tells no news of them."""

    def __init__(self) -> None:
        self._alarm = Alarm(ROUTE, _LINKS)
        self._names: tuple[str, ...] = ()
        self._stale = True

    def rang(self) -> bool:
        """Say whether one came, went or changed since the last call."""
        heard = self._alarm.rang()
        self._stale = self._stale or heard
        return heard

    def names(self) -> tuple[str, ...]:
        """Return all but loopback, sorted: with 3,000 a list takes a tenth of a second. Raises OSError."""
        self.rang()
        if self._stale:
            self._names, self._stale = packet_fence.devices(socket.if_nameindex()), False
        return self._names

    def close(self) -> None:
        """Listen no more."""
        self._alarm.close()
