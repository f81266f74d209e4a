"""The table in the kernel is the plan: made, changed and replaced in one step, confirmed by the kernel, removed whole."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.core.network.plane import LayerStatus
from agentsh_net.kernel.nft import nftables
from agentsh_net.kernel.nft import table as nft_table
from agentsh_net.kernel.nft.nftables import Nftables
from agentsh_net.kernel.nft.writer import TOO_OLD

pytestmark = pytest.mark.kernel

FIRST = plan(1, deny=(at("10.99.0.2"), at("fd00:99::2")), tag=(at("10.99.0.3", 443),))
SECOND = plan(2, deny=(at("10.99.0.4"), at("10.99.0.3", 443)))


def listed() -> str:
    """Return the ruleset as nft prints it, without the numbers that change by themselves."""
    text = subprocess.run(["nft", "-s", "list", "ruleset"], check=True, capture_output=True, text=True).stdout
    return "\n".join(sorted(text.splitlines()))


def plain() -> Nftables:
    """Return the plane as it is on kernels before Linux 6.9, whose tables root may change."""
    table = Nftables(4848)
    table._writer.plain = TOO_OLD
    return table


def test_a_change_leads_to_the_very_table_that_a_replacement_makes() -> None:
    def inside() -> tuple[str, str]:
        table = Nftables(4848)
        table.start(FIRST)
        table.narrow(table.widen(FIRST, SECOND, diff(FIRST, SECOND)))
        changed = listed()
        table.start(SECOND)
        return changed, listed()

    changed, replaced = box.in_box(inside)
    assert changed == replaced
    assert "10.99.0.4" in changed


def test_starting_twice_makes_one_table_and_leaves_those_of_others_alone() -> None:
    def inside() -> tuple[str, str, str]:
        subprocess.run(
            ["nft", "add table inet filter { set mine { type ipv4_addr; elements = { 1.2.3.4 }; }; }"],
            check=True,
        )
        others = listed()
        table = Nftables(4848)
        table.start(FIRST)
        once = listed()
        table.start(FIRST)
        twice = listed()
        table.close(remove=True)
        return once, twice, listed() == others and others

    once, twice, others = box.in_box(inside)
    assert once == twice
    assert "1.2.3.4" in others


def test_the_kernel_confirms_the_table_and_its_counters() -> None:
    def inside():
        table = Nftables(4848)
        table.start(FIRST)
        return table.status(FIRST)

    status = box.in_box(inside)
    assert (status.in_force, status.reason, status.denied, status.tagged) == (True, "", 0, 0)
    assert "handle" in status.detail


@pytest.mark.parametrize(
    ("tampering", "reason"),
    [
        ("delete table inet agentsh_net", "is not there"),
        ("flush ruleset", "is not there"),
        ("flush chain inet agentsh_net output", "chain output: 0 rules"),
        ("flush chain inet agentsh_net refuse", "chain refuse: 0 rules"),
        (
            "flush chain inet agentsh_net forward; delete chain inet agentsh_net forward",
            "chain forward is missing",
        ),
        ("insert rule inet agentsh_net output accept", "rules, expected"),
    ],
)
def test_tampering_is_seen(tampering: str, reason: str) -> None:
    def inside():
        table = plain()
        table.start(FIRST)
        subprocess.run(["nft", tampering], check=True)
        return table.status(FIRST)

    status = box.in_box(inside)
    assert not status.in_force
    assert reason in status.reason
    assert status.remedy


@pytest.mark.parametrize(
    ("tampering", "reason"),
    [
        ("add table inet agentsh_net { flags dormant; }", "is dormant"),
        ("delete element inet agentsh_net deny4 { 10.99.0.2 }", "set deny4 has 0 elements, 0 of 1"),
        ("add element inet agentsh_net tag4 { 10.99.0.2 }", "set tag4 has 1 elements"),
        ("flush chain inet agentsh_net refuse; " + "add rule inet agentsh_net refuse accept; " * 4, "not those that were made"),
        ("delete table inet agentsh_net; add table inet agentsh_net", "is somebody else's"),
        ("delete table netdev agentsh_net", "table netdev agentsh_net is not there"),
        ("flush chain netdev agentsh_net four", "chain four: 0 rules"),
        ("delete element netdev agentsh_net deny4 { 0x0a630002 }", "set deny4 has 0 elements"),
    ],
)  # fmt: skip
def test_tampering_that_leaves_the_look_of_it_is_seen_too(tampering: str, reason: str) -> None:
    def inside():
        box.there()
        table = plain()
        table.start(FIRST)
        before = table.status(FIRST)
        subprocess.run(["nft", tampering], check=True)
        after = table.status(FIRST)
        table.start(FIRST)
        return before, after, table.status(FIRST)

    before, after, mended = box.in_box(inside)
    assert (before.in_force, mended.in_force, mended.reason) == (True, True, "")
    assert not after.in_force
    assert reason in after.reason


def test_commits_of_others_and_our_own_change_nothing_in_what_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nft_table, "_SHARE", 0)  # every look is due, however long the one before took

    def inside():
        box.there()
        table = Nftables(4848)
        table.start(FIRST)
        subprocess.run(["nft", "add table inet filter"], check=True)
        first = table.status(FIRST)
        table.narrow(table.widen(FIRST, SECOND, diff(FIRST, SECOND)))
        subprocess.run(["nft", "add table inet other"], check=True)
        return first, table.status(SECOND)

    assert [(s.in_force, s.reason, "confirmed" in s.detail) for s in box.in_box(inside)] == [
        (True, "", False)
    ] * 2


def test_a_change_over_a_table_that_was_deleted_makes_it_again() -> None:
    def inside():
        table = plain()
        table.start(FIRST)
        subprocess.run(["nft", "delete table inet agentsh_net"], check=True)
        assert table.widen(FIRST, SECOND, diff(FIRST, SECOND)) is None
        return table.status(SECOND)

    assert box.in_box(inside).in_force


def test_a_policy_that_outgrows_its_sets_has_these_made_anew_and_the_table_stays() -> None:
    many = plan(2, deny=(at("fd00:99::2"), *(at(f"10.98.{n >> 8}.{n & 255}") for n in range(1000))))
    counted = re.compile(r"size [0-9]+")  # the sets have room for what the plan before had

    def inside():
        table = Nftables(4848)
        table.start(FIRST)
        handle = table._table.found().handle
        table.narrow(table.widen(FIRST, many, diff(FIRST, many)))
        status, stays, changed = table.status(many), table._table.found().handle == handle, listed()
        table.start(many)
        return status, stays, [counted.sub("size", text) for text in (changed, listed())]

    status, stays, (changed, replaced) = box.in_box(inside)
    assert (status.in_force, status.reason, stays) == (True, "", True)
    assert changed == replaced
    assert "10.98.3.231" in changed


def test_a_refused_transaction_changes_nothing_and_says_why() -> None:
    def inside() -> tuple[bool, str]:
        table = Nftables(4848)
        table.start(FIRST)
        before = listed()
        try:
            table._writer.run("flush table inet agentsh_net\nadd rule inet agentsh_net nowhere drop")
        except KernelError as error:
            return listed() == before, str(error)
        return False, ""

    unchanged, reason = box.in_box(inside)
    assert unchanged
    assert "nftables refused the ruleset" in reason


def started_and_let_go() -> None:
    table = Nftables(4848)
    table.start(FIRST)
    table.close(remove=False)


def test_a_kernel_that_does_not_answer_is_a_layer_that_is_not_in_force() -> None:
    def inside() -> tuple[LayerStatus, str]:
        plane = Nftables(5)
        plane.start(wanted := plan(deny=(at("10.0.0.1"),)))
        plane._netlink.close()
        with pytest.raises(KernelError) as refused:
            plane.start(wanted)
        return plane.status(wanted), str(refused.value)

    status, said = box.in_box(inside)
    assert (status.in_force, status.remedy) == (False, "restart agentsh-net")
    assert status.reason.startswith("the kernel does not answer: ")
    assert said == "the kernel refuses nftables: Bad file descriptor"


def test_removal_finds_whatever_tables_of_ours_there_are() -> None:
    def inside() -> list[object]:
        nftables.remove_tables()
        started_and_let_go()
        subprocess.run(["nft", "add table inet agentsh_net_bridge"], check=True)
        found: list[object] = [nftables.tables()]
        nftables.remove_tables()
        return [*found, nftables.tables()]

    assert box.in_box(inside) == [["inet agentsh_net", "inet agentsh_net_bridge"], []]


def test_a_bridge_that_a_killed_predecessor_left_is_taken_away_by_the_next_start() -> None:
    def inside() -> list[str]:
        subprocess.run(["nft", "add table inet agentsh_net_bridge"], check=True)
        Nftables(4848).start(FIRST)
        return nftables.tables()

    assert box.in_box(inside) == ["inet agentsh_net"]


def test_without_the_privilege_the_layer_says_so() -> None:
    def inside() -> tuple[str, str]:
        os.setresuid(65534, 65534, 65534)
        try:
            Nftables(4848)
        except KernelError as error:
            return str(error), error.remedy
        return "", ""

    reason, remedy = box.in_box(inside)
    assert "refuses nftables" in reason
    assert "root" in remedy
