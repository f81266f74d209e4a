"""The table at the devices follows plan and devices, says where it hangs, and says why where it cannot be had."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.kernel.nft.nftables import Nftables

pytestmark = pytest.mark.kernel

DENIES, ALLOWS = plan(1, deny=(at("10.99.0.2"),)), plan(2, tag=(at("10.99.0.2", 443),))


def opened(wanted: object) -> Nftables:
    table = Nftables(4848)
    table.start(wanted)
    return table


def listed() -> str:
    return subprocess.run(["nft", "list", "tables"], check=True, capture_output=True, text=True).stdout


def test_it_is_there_only_while_something_is_denied() -> None:
    def inside() -> list[bool]:
        box.there()
        table, seen = opened(ALLOWS), []
        for old, new in ((ALLOWS, DENIES), (DENIES, ALLOWS)):
            seen.append("netdev" in listed())
            due = table.widen(old, new, diff(old, new))
            if due:
                table.narrow(due)
        return [*seen, "netdev" in listed(), table.status(ALLOWS).in_force]

    assert box.in_box(inside) == [False, True, False, True]


def test_a_device_that_comes_is_said_and_taken_in() -> None:
    def inside() -> list[str]:
        box.there()
        table = opened(DENIES)
        before = table.status(DENIES)
        subprocess.run(["ip", "link", "add", "late", "type", "bridge"], check=True)
        between = table.status(DENIES)
        table.follow(DENIES)
        after = table.status(DENIES)
        assert before.in_force
        assert between.in_force
        assert after.in_force
        return [before.detail, before.behind, between.behind, after.behind, after.detail]

    before, nothing, behind, settled, after = box.in_box(inside)
    assert "packet sockets stopped at here" in before
    assert (nothing, behind, settled) == ("", "devices +late", "")
    assert "packet sockets stopped at here, late" in after


def test_a_device_that_goes_takes_nothing_else_with_it() -> None:
    def inside() -> tuple[bool, str, str]:
        box.there()
        subprocess.run(["ip", "link", "add", "early", "type", "bridge"], check=True)
        table = opened(DENIES)
        subprocess.run(["ip", "link", "del", "early"], check=True)
        subprocess.run(["nft", "add table inet filter"], check=True)
        status = table.status(DENIES)
        table.follow(DENIES)
        return status.in_force, status.behind, table.status(DENIES).detail

    in_force, behind, detail = box.in_box(inside)
    assert (in_force, behind) == (True, "devices -early")
    assert detail.endswith("packet sockets stopped at here")


def test_a_host_without_devices_has_nothing_to_hang_it_on() -> None:
    def inside() -> tuple[bool, str]:
        status = opened(DENIES).status(DENIES)
        return status.in_force, status.detail

    in_force, detail = box.in_box(inside)
    assert in_force
    assert "packet sockets stopped at no device" in detail


def test_a_kernel_without_the_hook_is_said_and_the_rest_of_the_plane_stands() -> None:
    def inside() -> tuple[bool, str]:
        box.there()
        table = Nftables(4848)

        def refuse(*_: object) -> None:
            raise KernelError("Operation not supported")

        table._fence._writer = SimpleNamespace(replace=refuse, run=refuse, remove=refuse)
        table.start(DENIES)
        due = table.widen(DENIES, ALLOWS, diff(DENIES, ALLOWS))
        table.narrow(due)
        status = table.status(ALLOWS)
        return status.in_force, status.detail

    in_force, detail = box.in_box(inside)
    assert in_force
    assert "packet sockets are not stopped: Operation not supported (needs Linux 5.16" in detail


def test_a_chain_that_somebody_took_off_a_device_is_seen() -> None:
    def inside() -> str:
        box.there()
        table = opened(DENIES)
        subprocess.run(["ip", "link", "add", "other", "type", "bridge"], check=True)
        table._fence._devices = ("here", "other")  # as if it had been made for both, and taken off one
        return table.status(DENIES).reason

    assert box.in_box(inside) == "taken away from other"
