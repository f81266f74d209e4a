"""Tables are nobody else's while we live, outlive us, are taken over without a gap from any state, and plain where that cannot be had."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.errors import KernelError
from agentsh_net.core.nft import batch as nft_batch
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.kernel.nft import nftables
from agentsh_net.kernel.nft import writer as nft_writer
from agentsh_net.kernel.nft.library import Library
from agentsh_net.kernel.nft.nftables import Nftables
from agentsh_net.kernel.nft.writer import NO_SOCKET, TOO_OLD, Writer

pytestmark = pytest.mark.kernel

PLAN = plan(1, deny=(at("10.99.0.2"), at("fd00:99::2")), tag=(at("10.99.0.3", 443),))


def run(command: str) -> tuple[int, str]:
    done = subprocess.run(["nft", command], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def has_owned_tables() -> bool:
    table = Nftables(0)
    try:
        return not table.why_plain()
    finally:
        table.close(remove=False)


@pytest.fixture
def _owned() -> None:
    if not box.in_box(has_owned_tables):
        pytest.skip(f"this kernel ({os.uname().release}) has no tables that stay when their owner dies")


OWNED = pytest.mark.usefixtures("_owned")

TAMPERING = [
    "delete table inet agentsh_net",
    "delete table netdev agentsh_net",
    "flush table inet agentsh_net",
    "flush chain inet agentsh_net output",
    "insert rule inet agentsh_net output accept",
    "delete element inet agentsh_net deny4 { 10.99.0.2 }",
    "flush set netdev agentsh_net deny4",
    "add table inet agentsh_net { flags dormant; }",
    "add chain inet agentsh_net mine",
]


def tampered() -> tuple[dict[str, tuple[int, str]], tuple[int, str], Any, Any]:
    box.there()
    table = Nftables(4848)
    table.start(PLAN)
    before = table.status(PLAN)
    refused = {command: run(command) for command in TAMPERING}
    return refused, run("flush ruleset"), before, table.status(PLAN)


@OWNED
def test_root_cannot_change_the_tables_of_a_process_that_lives_and_a_flush_passes_them_by() -> None:
    refused, flushed, before, after = box.in_box(tampered)
    for command, (code, said) in refused.items():
        assert (command, code) == (command, 1)
        assert "Operation not permitted" in said
    assert flushed == (0, "")
    assert (after.in_force, after.detail) == (True, before.detail)
    assert "owned: nobody but this daemon can change it" in after.detail


def in_child(action: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)  # as SIGKILL: nothing is given back but what the kernel takes back
    os.waitpid(child, 0)


def adopted() -> tuple[list[str], bool, str]:
    box.there()
    in_child(lambda: Nftables(4848).start(PLAN))
    orphans = nftables.tables()
    table = Nftables(4848)
    table.start(PLAN)
    return orphans, table.status(PLAN).in_force, run("delete table inet agentsh_net")[1]


@OWNED
def test_they_stand_when_their_owner_has_died_and_are_the_next_ones_then() -> None:
    orphans, in_force, said = box.in_box(adopted)
    assert orphans == ["inet agentsh_net", "netdev agentsh_net"]
    assert in_force
    assert "Operation not permitted" in said


def of_another() -> tuple[str, str, list[int], int, list[str], list[str]]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        table = Nftables(4848)
        table.start(PLAN)
        os.write(writer, b"x")
        while True:
            signal.pause()
    os.read(reader, 1)
    said = []
    for attempt in (lambda: Nftables(4849).start(PLAN), nftables.remove_tables):
        try:
            attempt()
        except KernelError as error:
            said.append(f"{error} ({error.remedy})")
    owners, stood = nftables.owners(), nftables.tables()
    box.kill(child)
    box.await_that(lambda: not nftables.owners())
    nftables.remove_tables()
    return said[0], said[1], owners, child, stood, nftables.tables()


@OWNED
def test_a_second_one_is_told_whose_they_are_and_takes_nothing_away() -> None:
    started, removed, owners, pid, stood, after = box.in_box(of_another)
    told = f"table inet agentsh_net belongs to process {pid} (end it first: sudo kill {pid})"
    assert (started, removed) == (told, told)
    assert owners == [pid]
    assert stood == ["inet agentsh_net"]
    assert after == []


def old_kernel(table: Nftables) -> None:
    """Answer as a kernel that has no such tables."""
    batch = table._writer._batch

    def refuse(data: bytes) -> int:
        owned = nft_batch.OWNED.to_bytes(4, "big")
        return errno.EOPNOTSUPP if owned in data else batch(data)

    table._writer._batch = refuse
    table._writer.why_plain = lambda: TOO_OLD


def on_an_old_kernel() -> tuple[bool, str, int]:
    box.there()
    table = Nftables(4848)
    old_kernel(table)
    table.start(PLAN)
    status = table.status(PLAN)
    return status.in_force, status.detail, run("delete table inet agentsh_net")[0]


def test_an_older_kernel_has_plain_tables_and_that_is_said() -> None:
    in_force, detail, deleted = box.in_box(on_an_old_kernel)
    assert in_force
    assert f"not owned: {TOO_OLD}" in detail
    assert deleted == 0


def without_a_socket() -> tuple[bool, str, str]:
    table = Nftables(4848)
    table._writer._library._fd = None
    table._writer = Writer(table._writer._library, table._writer._commits)
    table.start(PLAN)
    return table.status(PLAN).in_force, table.status(PLAN).detail, table.why_plain()


def test_where_the_socket_of_the_library_is_not_known_tables_are_plain() -> None:
    in_force, detail, why = box.in_box(without_a_socket)
    assert in_force
    assert f"not owned: {NO_SOCKET}" in detail
    assert why == NO_SOCKET


def plain() -> None:
    table = Nftables(4848)
    table._writer.plain = TOO_OLD
    table.start(PLAN)
    table.close(remove=False)


def orphan() -> None:
    table = Nftables(4848)
    table.start(PLAN)
    table.close(remove=False)


def filled(name: str) -> None:
    Library().commit(nft_ruleset.fill(PLAN, nflog_group=4848, table=name))


def died_between_making_and_filling() -> None:
    orphan()
    run("add table inet agentsh_net_bridge")
    filled("agentsh_net_bridge")
    run("delete table inet agentsh_net; add table inet agentsh_net")


def died_after_making_the_bridge() -> None:
    plain()
    run("add table inet agentsh_net_bridge")


def died_before_taking_the_bridge_away() -> None:
    died_after_making_the_bridge()
    filled("agentsh_net_bridge")


STATES = [
    plain,
    orphan,
    died_between_making_and_filling,
    died_after_making_the_bridge,
    died_before_taking_the_bridge_away,
]


def taken_over(state: Callable[[], None], *, to_plain: bool) -> tuple[list[bool], list[str], bool, int]:
    state()
    table = Nftables(4848)
    if to_plain:
        table._writer.plain = TOO_OLD
    held: list[bool] = []
    commits, ours = table._writer._commits, table._writer._commits.ours

    def watched() -> object:
        held.append(table._table.stands() or table._bridge.stands())
        return ours()

    commits.ours = watched
    table.start(PLAN)
    held.append(table._table.stands())
    commits.ours = ours
    return held, nftables.tables(), table.status(PLAN).in_force, run("delete table inet agentsh_net")[0]


@pytest.mark.parametrize("to_plain", [False, True], ids=["to owned", "to plain"])
@pytest.mark.parametrize("state", STATES)
def test_whatever_a_predecessor_left_one_fence_stands_at_every_moment_of_the_takeover(
    state: Callable[[], None], to_plain: bool, request: pytest.FixtureRequest
) -> None:
    if not to_plain:
        request.getfixturevalue("_owned")
    held, tables, in_force, deleted = box.in_box(lambda: taken_over(state, to_plain=to_plain))
    assert len(held) >= 4
    assert all(held)
    assert tables == ["inet agentsh_net"]
    assert in_force
    assert deleted == (0 if to_plain else 1)


def broken() -> tuple[list[str], list[str], bool]:
    """Fill with what the kernel refuses, first where nothing stands, then over a table that does."""
    table = Nftables(4848)

    def refused(name: str) -> str:
        return f"add rule inet {name} nowhere drop"

    left = []
    for _ in range(2):
        try:
            table._writer.replace(table._table, table._bridge, refused)
        except KernelError as error:
            left.append(f"{error}"[:32])
        left.append(str(nftables.tables()))
        table.start(PLAN)
    return left, nftables.tables(), table.status(PLAN).in_force


def test_what_cannot_be_filled_leaves_what_stood_and_nothing_else() -> None:
    left, tables, in_force = box.in_box(broken)
    said = "nftables refused the ruleset: Er"
    assert left == [said, "[]", said, "['inet agentsh_net']"]
    assert (tables, in_force) == (["inet agentsh_net"], True)


def asked() -> tuple[str, int]:
    table = Nftables(0)
    before = table._table.generation()
    return table.why_plain(), table._table.generation() - before


@OWNED
def test_asking_changes_nothing() -> None:
    assert box.in_box(asked) == ("", 0)


def vanishing() -> bool:
    """Somebody deletes the table between the look and the batch."""
    table = Nftables(4848)
    run("add table inet agentsh_net")
    sent = nft_writer.sent

    def after_a_deletion(connection: Any, data: bytes) -> int:
        run("delete table inet agentsh_net")
        return sent(connection, data)

    nft_writer.sent = after_a_deletion
    table._writer._anew(table._table)
    nft_writer.sent = sent
    return table._table.found() is not None


def test_a_table_that_somebody_deletes_meanwhile_is_made_all_the_same() -> None:
    assert box.in_box(vanishing)
