"""An answer to somebody else reaches the resolver and is measured; what cannot be read has us ask; a lost socket is told."""

from __future__ import annotations

import asyncio
import logging
import os
import struct
import time
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import dns.flags
import dns.message
import dns.rrset
import pytest

from agentsh_net.core.audit.events import Event, LayerStateChanged
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.dns_message import Ascribed, wire_name
from agentsh_net.kernel.names.dns_capture import Captured
from agentsh_net.resolution import snoop
from agentsh_net.resolution.snoop import DnsSnoop

EVIL = wire_name("evil.test")
SERVER, CLIENT = ip_address("10.0.0.53"), ip_address("10.0.0.1")


def packet(message: bytes) -> bytes:
    head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(message), 1, 0, 64, 17, 0)
    return head + SERVER.packed + CLIENT.packed + struct.pack(">HHHH", 53, 999, 8 + len(message), 0) + message


def answer(name: str, *addresses: str, truncated: bool = False) -> bytes:
    made = dns.message.make_response(dns.message.make_query(name, "A"))
    if addresses:
        made.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "A", *addresses))
    if truncated:
        made.flags |= dns.flags.TC
    return packet(made.to_wire())


class Resolver:
    """Watches evil.test, and finds every address new but 10.0.0.1."""

    unheard = 0

    def __init__(self) -> None:
        self.heard: list[tuple[Any, Any]] = []
        self.asked: list[Any] = []

    def wire_names(self) -> set[bytes]:
        return {EVIL}

    def overheard(self, said: Mapping[bytes, Ascribed], sender: Any) -> bool:
        self.heard += [(str(a), str(sender)) for given in said.values() for a in given.addresses]
        return any(str(a) != "10.0.0.1" for given in said.values() for a in given.addresses)

    def ask_soon(self, names: Any) -> None:
        self.asked += names


class Capture:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.waiting: list[bytes] = []
        self.seen, self.broken, self.gone, self.closed = 0, "", "", False

    def fileno(self) -> int:
        return self.reader

    def send(self, *data: bytes) -> None:
        self.waiting += data
        os.write(self.writer, b"!")

    def packets(self) -> list[Captured]:
        os.read(self.reader, 1)
        if self.broken:
            raise KernelError(self.broken, remedy="mend it")
        found, self.waiting = self.waiting, []
        self.seen += len(found)
        return [Captured(time.time_ns() - 5_000_000, data) for data in found]

    def count_lost(self) -> int:
        if self.gone:
            raise KernelError(self.gone, remedy="mend it")
        return 3

    def close(self) -> None:
        self.closed = True


class Stage:
    def __init__(self, *, confirmed: bool = True) -> None:
        self.resolver, self.capture = Resolver(), Capture()
        self.events: list[Event] = []
        self.confirmed = confirmed
        self.closed = False  # the capture, while it was still wanted
        self.snoop = DnsSnoop(
            self.resolver,
            self.readdress,
            self.events.append,
            logging.getLogger("t"),
            opened=lambda: self.capture,
        )  # type: ignore[arg-type]

    def readdress(self) -> asyncio.Future[bool]:
        done = asyncio.get_running_loop().create_future()
        done.set_result(self.confirmed)
        return done

    def play(self, *packets: bytes) -> dict[str, Any]:
        async def script() -> dict[str, Any]:
            self.snoop.start()
            if packets:
                self.capture.send(*packets)
            for _ in range(10):
                await asyncio.sleep(0.001)
            status = self.snoop.status()
            self.closed = self.capture.closed
            self.snoop.stop()
            return status

        return asyncio.run(script())


def test_an_answer_to_a_watched_name_is_heard_applied_and_measured() -> None:
    stage = Stage()
    status = stage.play(answer("other.test", "10.9.9.9"), answer("EVIL.test", "10.0.0.7", "10.0.0.8"))
    assert sorted(stage.resolver.heard) == [("10.0.0.7", "10.0.0.53"), ("10.0.0.8", "10.0.0.53")]
    assert stage.resolver.asked == [EVIL]  # and our own question follows at once
    assert (status["in_force"], status["seen"], status["lost"], status["changes"]) == (True, 2, 3, 1)
    assert status["gap"]["count"] == 1
    assert 0.005 <= status["gap"]["p50"] < 5


def test_what_is_known_already_is_no_change_and_no_gap() -> None:
    stage = Stage()
    status = stage.play(answer("evil.test", "10.0.0.1"))
    assert (status["changes"], status["gap"]["count"], stage.resolver.asked) == (0, 0, [])


def test_addresses_that_find_no_room_are_told_and_not_with_every_answer() -> None:
    stage = Stage()

    def overheard(said: Mapping[bytes, Ascribed], sender: Any) -> bool:
        stage.resolver.unheard += sum(
            str(a) == "10.0.0.9" for given in said.values() for a in given.addresses
        )
        return False

    stage.resolver.overheard = overheard  # type: ignore[method-assign]
    stage.play(answer("evil.test", "10.0.0.1"), *[answer("evil.test", "10.0.0.9")] * 3)
    (event,) = stage.events
    assert (event.layer, event.state) == ("dns", "out of room")
    assert str(SERVER) in event.reason


def test_a_change_that_the_planes_did_not_confirm_is_not_measured() -> None:
    assert Stage(confirmed=False).play(answer("evil.test", "10.0.0.7"))["gap"]["count"] == 0


@pytest.mark.parametrize(
    "data",
    [answer("evil.test", truncated=True), answer("evil.test", "10.0.0.1")[:-2]],
    ids=["marked as cut", "cut"],
)
def test_an_answer_that_cannot_be_read_whole_has_us_ask(data: bytes) -> None:
    stage = Stage()
    stage.play(data)
    assert stage.resolver.asked == [EVIL]


def test_what_is_no_answer_is_counted() -> None:
    assert Stage().play(packet(b"\0" * 30))["unreadable"] == 1


@pytest.mark.parametrize("how", ["broken", "gone"])
def test_a_capture_that_breaks_or_is_gone_is_told_once_with_its_remedy_and_closed(how: str) -> None:
    stage = Stage()
    setattr(stage.capture, how, "lost")
    status = stage.play(b"")
    assert (status["in_force"], status["reason"], status["remedy"]) == (False, "lost", "mend it")
    assert stage.events == [
        LayerStateChanged(layer="dns", state="not in force", reason="lost", remedy="mend it")
    ]
    assert stage.closed


def test_a_capture_that_cannot_be_had_is_told_and_nothing_else_fails() -> None:
    stage = Stage()

    def refuse() -> Capture:
        raise KernelError("no privilege", remedy="run as root")

    stage.snoop._open = refuse
    status = stage.play()
    assert (status["wanted"], status["in_force"], status["reason"]) == (True, False, "no privilege")
    assert [event.reason for event in stage.events] == ["no privilege"]


def test_who_listens_no_more_reads_no_more() -> None:
    stage = Stage()

    async def script() -> None:
        stage.snoop.start()
        stage.snoop.stop()
        stage.snoop._go_on()  # as after a pause that began before
        assert not asyncio.get_running_loop().remove_reader(stage.capture.reader)

    asyncio.run(script())
    assert stage.capture.closed


def test_a_flood_takes_a_bounded_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snoop, "SHARE", 0.0)
    stage = Stage()

    async def script() -> int:
        stage.snoop.start()
        stage.capture.send(*[answer("x.test", "10.0.0.1")] * 2)
        async with asyncio.timeout(60):
            while stage.capture.seen < 2:
                await asyncio.sleep(0)
            stage.capture.send(answer("x.test", "10.0.0.1"))
            await asyncio.sleep(0.02)
            paused = stage.capture.seen
            while stage.capture.seen == paused:
                await asyncio.sleep(0.01)
        stage.snoop.stop()
        return paused

    assert asyncio.run(script()) == 2
    assert stage.capture.seen == 3
