"""A worker is told things in order, believed only where it is sound, and never waited for without end."""

from __future__ import annotations

import asyncio
import socket

import pytest
from loopback import until

from agentsh_net.core.audit.events import DaemonStarted, ToolCallIntercepted
from agentsh_net.core.links import link
from agentsh_net.workers.link import WorkerLink


class Wire:
    """A link whose worker is the test."""

    def __init__(self, *, discovers: bool = True) -> None:
        self.events, self.reports, self.violations = [], [], []
        self._discovers = discovers

    async def __aenter__(self):
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        reports = self.reports.append if self._discovers else None
        _, self.link = await loop.create_unix_connection(
            lambda: WorkerLink(self.events.append, reports), sock=ours
        )
        self.link.on_violation = self.violations.append
        self.reader, self.writer = await asyncio.open_unix_connection(sock=theirs)
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        self.link.close()
        await self.link.closed

    def say(self, message) -> None:
        self.writer.write(link.encode(message))


def bounded(test):
    def run():
        async def limited():
            async with asyncio.timeout(60):
                await test()

        asyncio.run(limited())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@bounded
async def test_telling_returns_when_the_last_message_is_acknowledged():
    async with Wire() as wire:
        telling = asyncio.ensure_future(wire.link.tell([link.Sessions(1, {}), link.Drain(2, 1.0)], 10))
        framer, got = link.Framer(1 << 20), []
        while len(got) < 2:
            got += framer.feed(await wire.reader.read(4096))
        assert [link.decode_to_worker(g) for g in got] == [link.Sessions(1, {}), link.Drain(2, 1.0)]
        wire.say(link.Ack(1, 0))
        await asyncio.sleep(0)
        assert not telling.done()
        wire.say(link.Ack(2, 0))
        assert await telling is True


@bounded
async def test_a_worker_that_does_not_acknowledge_or_is_gone_is_told_apart():
    async with Wire() as wire:
        assert await wire.link.tell([link.Drain(1, 1.0)], 0.05) is False
        telling = asyncio.ensure_future(wire.link.tell([link.Drain(2, 1.0)], 600))
        await asyncio.sleep(0)
        wire.writer.close()
        assert await telling is False
        assert await wire.link.tell([link.Drain(3, 1.0)], 600) is False
        wire.link.send(link.Drain(4, 1.0))  # as nobody waits for an answer, nobody is told


@bounded
async def test_a_worker_is_heard_while_it_says_anything_and_hears_when_the_link_is_closed():
    async with Wire() as wire:
        assert not wire.link.heard()
        wire.say(link.Counters({"requests": 1}))
        await until(lambda: wire.link.counters)
        assert wire.link.heard()
        assert not wire.link.heard()
        wire.link.close()
        assert await wire.reader.read() == b""


@bounded
async def test_a_worker_that_acknowledges_twice_is_still_read():
    async with Wire() as wire:
        telling = asyncio.ensure_future(wire.link.tell([link.Drain(1, 1.0)], 600))
        await asyncio.sleep(0)
        wire.writer.write(link.encode(link.Ack(1, 0)) * 2)
        assert await telling is True
        wire.say(link.Counters({"requests": 1}))
        await until(lambda: wire.link.counters)


@bounded
async def test_what_a_worker_reports_is_handed_on():
    async with Wire() as wire:
        event = ToolCallIntercepted(tool_name="t")
        wire.say(link.Events((event.to_json(),)))
        wire.say(link.Counters({"requests": 3}))
        wire.say(link.Report({"server_id": "s", "ok": True}))
        await until(lambda: wire.reports)
        assert wire.events == [event]
        assert wire.link.counters == {"requests": 3}
        assert wire.violations == []


UNSOUND = {
    "no JSON": link.frame(b"nonsense"),
    "too long": (link.MAX_FROM_WORKER + 1).to_bytes(4, "big"),
    "an event of the daemon's": link.encode(link.Events((DaemonStarted().to_json(),))),
    "a command": link.encode(link.Drain(1, 1.0)),
    "a report it was not asked for": link.encode(link.Report({"server_id": "s", "ok": True})),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_a_sound_worker_cannot_say_is_a_violation(name):
    @bounded
    async def case():
        async with Wire(discovers=False) as wire:
            wire.writer.write(UNSOUND[name])
            await until(lambda: wire.violations)
            assert wire.violations[0].startswith("broke the rules of its link: ")
            assert wire.events == []

    case()
