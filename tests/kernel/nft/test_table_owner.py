"""The process that holds a netlink socket is found by its port, in this network namespace."""

from __future__ import annotations

import os

import pytest
from netns import box

from agentsh_net.kernel.netlink import NETFILTER, SOCK_DIAG, Netlink
from agentsh_net.kernel.nft.table_owner import process_of

pytestmark = pytest.mark.kernel


def found() -> list[int]:
    with Netlink(NETFILTER) as ours, Netlink(SOCK_DIAG) as another:
        here, other = ours.socket.getsockname()[0], another.socket.getsockname()[0]
        elsewhere = box.new_namespace().call(lambda: process_of(here))
        return [process_of(here) - os.getpid(), process_of(other) if other != here else 0, elsewhere]


def test_who_holds_the_port_is_found_and_nobody_for_another_protocol_or_namespace() -> None:
    assert box.in_box(found) == [0, 0, 0]


def test_a_port_that_nobody_has_is_nobodys() -> None:
    assert process_of(0xFFFF_FFFE) == 0
