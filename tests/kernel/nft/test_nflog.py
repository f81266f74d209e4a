"""Every logged packet arrives or is counted as lost, exactly; a group that somebody else reads is said, not shared."""

from __future__ import annotations

import os
import select
import socket
import struct

import pytest
from netns import box
from netns.scene import at, attempt, plan

from agentsh_net.core.abi import netlink
from agentsh_net.core.abi import nflog as messages
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate
from agentsh_net.kernel.nft import nflog
from agentsh_net.kernel.nft.nflog import Nflog
from agentsh_net.kernel.nft.nftables import Nftables

GROUP = 4848


def listening() -> Nflog:
    reader = Nflog(GROUP)
    reader.listen()
    return reader


def everything(reader: Nflog) -> list[messages.Logged]:
    found: list[messages.Logged] = []
    while select.select([reader], [], [], 0.3)[0]:
        found += reader.records()
    return found


@pytest.mark.kernel
def test_a_refused_packet_is_logged_with_its_fate_generation_and_user() -> None:
    def inside() -> list[messages.Logged]:
        box.there()
        Nftables(GROUP).start(plan(9, deny=(at("10.99.0.2"),)))
        reader = listening()
        assert attempt("10.99.0.2") == "ECONNREFUSED"
        return everything(reader)

    (logged,) = box.in_box(inside)
    assert (logged.fate, logged.generation, logged.uid) == (Fate.DENY, 9, 0)
    assert (str(logged.packet.destination), logged.packet.destination_port) == ("10.99.0.2", 443)


@pytest.mark.kernel
def test_records_and_losses_add_up_to_what_was_refused_when_nobody_reads_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nflog, "SOCKET_BUFFER", 4096)

    def inside() -> tuple[int, int, int]:
        box.there()
        table = Nftables(GROUP)
        wanted = plan(1, deny=(at("10.99.0.2"),))
        table.start(wanted)
        reader = listening()
        for _ in range(2000):
            attempt("10.99.0.2")
        found = everything(reader)
        # A last one tells, by its number, what was lost at the end.
        attempt("10.99.0.2")
        found += everything(reader)
        return len(found), reader.lost, table.status(wanted).denied

    seen, lost, denied = box.in_box(inside)
    assert denied == 2001
    assert lost > 0
    assert seen + lost == denied


@pytest.mark.kernel
def test_one_call_reads_a_batch_and_leaves_the_rest_of_a_flood_for_the_next() -> None:
    def inside() -> tuple[int, int]:
        box.there()
        Nftables(GROUP).start(plan(1, deny=(at("10.99.0.2"),)))
        reader = listening()
        for _ in range(1000):
            attempt("10.99.0.2")
        select.select([reader], [], [], 1)
        return len(reader.records()), len(everything(reader))

    first, rest = box.in_box(inside)
    assert 0 < first < 300
    assert first + rest == 1000


@pytest.mark.kernel
def test_a_group_that_is_read_already_is_refused_with_the_setting_to_change_and_had_once_it_is_free() -> None:
    def inside() -> tuple[str, int, list[messages.Logged]]:
        box.there()
        Nftables(GROUP).start(plan(1, deny=(at("10.99.0.2"),)))
        first, second = listening(), Nflog(GROUP)
        told, descriptor = "", second.fileno()
        try:
            second.listen()
        except KernelError as error:
            told = error.remedy
        first.close()
        second.listen()
        attempt("10.99.0.2")
        return told, second.fileno() - descriptor, everything(second)

    told, moved, heard = box.in_box(inside)
    assert "network.nflog_group" in told
    assert moved == 0, "whoever waits for the descriptor would wait for nothing"
    assert [str(logged.packet.destination) for logged in heard] == ["10.99.0.2"]


@pytest.mark.kernel
def test_to_ask_for_a_group_that_one_has_changes_nothing() -> None:
    def inside() -> int:
        box.there()
        Nftables(GROUP).start(plan(1, deny=(at("10.99.0.2"),)))
        reader = listening()
        reader.listen()
        attempt("10.99.0.2")
        return len(everything(reader))

    assert box.in_box(inside) == 1


@pytest.mark.kernel
def test_whoever_reads_a_group_is_named_and_where_nobody_does_nobody() -> None:
    def inside() -> tuple[list[int | None], int]:
        before = nflog.reader_of(GROUP)
        reader = listening()
        during, other = nflog.reader_of(GROUP), nflog.reader_of(GROUP + 1)
        reader.close()
        return [before, during, other, nflog.reader_of(GROUP)], os.getpid()

    found, pid = box.in_box(inside)
    assert found == [None, pid, None, None]


class Fed(Nflog):
    """A reader whose kernel is a socket pair."""

    def __init__(self) -> None:
        self.kernel, mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        mine.setblocking(False)
        self._netlink = type("Connection", (), {"socket": mine})()
        self._sequence, self.lost = None, 0

    def feed(self, *sequences: int) -> None:
        for number in sequences:
            body = struct.pack(">BBH", 2, 0, GROUP) + netlink.attribute(12, struct.pack(">I", number))
            self.kernel.send(netlink.message(messages.PACKET, 0, 0, body))


@pytest.mark.parametrize(
    ("sequences", "lost"),
    [
        ((0, 1, 2), 0),
        ((0, 3), 2),
        ((5,), 5),
        ((0xFFFFFFFE, 0xFFFFFFFF, 0, 1), 0xFFFFFFFE),
        ((0, 1, 1000, 1001), 998),
    ],
)
def test_gaps_in_the_numbers_are_losses(sequences: tuple[int, ...], lost: int) -> None:
    reader = Fed()
    reader.feed(*sequences)
    assert reader.records() == []
    assert reader.lost == lost


def test_a_broken_datagram_is_lost_and_the_next_is_read() -> None:
    reader = Fed()
    reader.kernel.send(b"\xff" * 40)
    reader.feed(0)
    reader.records()
    assert reader.lost == 1


def test_a_call_reads_a_batch_and_leaves_the_rest() -> None:
    reader = Fed()
    reader.kernel.setblocking(False)
    sent = 0
    try:
        while sent < 1000:
            reader.feed(sent)
            sent += 1
    except BlockingIOError:
        assert sent > 0
    rounds = 0
    while reader._sequence != sent - 1:
        reader.records()
        rounds += 1
    assert rounds == -(-sent // 16)
