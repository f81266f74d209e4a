"""The table at the devices follows plan and devices, says where it hangs, and says why where it cannot be had."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.nft import packet_fence as nft_fence
from agentsh_net.kernel.nft import packet_fence
from agentsh_net.kernel.nft.nftables import Nftables

pytestmark = pytest.mark.kernel

DENIES, ALLOWS = plan(1, deny=(at("10.99.0.2"),)), plan(2, tag=(at("10.99.0.2", 443),))


def ip(*steps: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(steps), text=True, check=True)


def opened(wanted: object) -> Nftables:
    table = Nftables(4848)
    table.start(wanted)
    return table


def sets(table: Nftables) -> list[tuple[str, int]]:
    """Return name and handle of each set of the table at the devices."""
    return [(name, handle) for name, handle in table._fence._table.standing().sets if name[0] != "_"]


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


def held(table: Nftables) -> dict[str, set[bytes]]:
    return {name: table._fence._table.elements(name) for name in nft_fence.SETS}


def test_a_policy_that_denies_others_is_added_before_the_old_one_goes_and_nothing_is_made_anew() -> None:
    other = plan(2, deny=(at("10.99.0.3"), at("fd00:99::3")))
    both = plan(3, deny=(at("10.99.0.2"), at("10.99.0.3"), at("fd00:99::3")))

    def inside() -> list[object]:
        box.there()
        table = opened(DENIES)
        made = sets(table)
        due = table.widen(DENIES, other, diff(DENIES, other))
        between = held(table)
        assert due is not None
        table.narrow(due)
        return [between, held(table), sets(table) == made, table.status(other).in_force]

    assert box.in_box(inside) == [nft_fence.keys(both), nft_fence.keys(other), True, True]


def test_what_cannot_be_added_to_is_made_anew() -> None:
    other = plan(2, deny=(at("10.99.0.3"),))

    def inside() -> dict[str, set[bytes]]:
        box.there()
        table = opened(DENIES)

        def refuse(*_: object) -> None:
            raise KernelError("No such file or directory")

        writer = table._fence._writer
        table._fence._writer = SimpleNamespace(replace=writer.replace, run=refuse, remove=writer.remove)
        table.widen(DENIES, other, diff(DENIES, other))
        return held(table)

    assert box.in_box(inside) == nft_fence.keys(other)


def test_a_device_that_comes_is_said_and_taken_in() -> None:
    def inside() -> list[str]:
        box.there()
        table = opened(DENIES)
        before = table.status(DENIES)
        made = sets(table)
        ip("link add late type bridge")
        between = table.status(DENIES)
        table.follow(DENIES)
        after = table.status(DENIES)
        assert sets(table) == made  # and not made anew
        assert before.in_force
        assert between.in_force
        assert after.in_force
        return [before.detail, before.behind, between.behind, after.behind, after.detail]

    before, nothing, behind, settled, after = box.in_box(inside)
    assert "packet sockets stopped at here" in before
    assert (nothing, behind, settled) == ("", "devices +late", "")
    assert "packet sockets stopped at here, late" in after


def test_it_hangs_on_more_devices_than_one_chain_may() -> None:
    def inside() -> tuple[list[str], set[str], str]:
        ip(*(f"link add device{n} type bridge" for n in range(260)))
        table = opened(DENIES)
        reasons = [table.status(DENIES).reason]
        ip("link del device7", "link add late type bridge")
        table.follow(DENIES)
        status = table.status(DENIES)
        return [*reasons, status.reason, status.behind], table._fence._hooked(), status.detail

    reasons, hooked, detail = box.in_box(inside)
    assert reasons == ["", "", ""]
    assert hooked == {"late", *(f"device{n}" for n in range(260) if n != 7)}
    assert detail.endswith("device111 and 244 devices more")


def test_where_it_stood_and_cannot_be_had_any_more_the_layer_is_not_in_force() -> None:
    def inside() -> list[tuple[bool, str]]:
        box.there()
        table = opened(DENIES)

        def refuse(*_: object) -> None:
            raise KernelError("Cannot allocate memory")

        writer = table._fence._writer
        table._fence._writer = SimpleNamespace(replace=refuse, run=refuse, remove=refuse)
        ip("link add late type bridge")
        table.follow(DENIES)
        seen = [table.status(DENIES)]
        table._fence._writer = writer
        table.start(DENIES)
        seen.append(table.status(DENIES))
        return [(status.in_force, status.reason) for status in seen]

    assert box.in_box(inside) == [(False, "Cannot allocate memory"), (True, "")]


def test_a_device_that_goes_while_the_table_is_made_is_left_out() -> None:
    def inside() -> tuple[bool, str]:
        box.there()
        ip("link add brief type bridge")
        table, replace = Nftables(4848), packet_fence.PacketFence._replace

        def slow(fence: packet_fence.PacketFence, wanted: Plan) -> None:
            if "brief" in fence._devices:  # as a kernel before 6.16 says of one that is gone
                subprocess.run(["ip", "link", "del", "brief"], check=False, capture_output=True)
                raise KernelError("No such file or directory")
            replace(fence, wanted)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packet_fence.PacketFence, "_replace", slow)
            table.start(DENIES)
        status = table.status(DENIES)
        return status.in_force, status.detail

    in_force, detail = box.in_box(inside)
    assert in_force
    assert detail.endswith("packet sockets stopped at here")


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
