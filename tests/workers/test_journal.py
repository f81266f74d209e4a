"""Records that nobody waits for are taken together, in their order, every one of them, and only such as a sound worker writes."""

from __future__ import annotations

import asyncio
import socket
from typing import Self

import pytest
from loopback import until

from agentsh_net.core.audit.events import DaemonStarted, ToolCalled
from agentsh_net.core.links import link
from agentsh_net.workers import journal
from agentsh_net.workers.journal import Journal


class Written:
    """A journal whose worker is the test."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        self.violations: list[str] = []

    async def __aenter__(self) -> Self:
        self.journal = Journal(lambda event: self.tools.append(event.tool_name))
        self.journal.on_violation = self.violations.append
        self.worker = self.journal.attach()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.worker.close()
        await self.journal.closed

    def called(self, *tools: str) -> None:
        for tool in tools:
            self.worker.sendall(
                link.encode(link.Events((ToolCalled(server_id="s", tool_name=tool).to_json(),)))
            )


def bounded(test):
    async def limited(*fixtures):
        async with asyncio.timeout(60):
            await test(*fixtures)

    def run(monkeypatch: pytest.MonkeyPatch) -> None:
        asyncio.run(limited(monkeypatch))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@bounded
async def test_a_record_that_comes_alone_is_taken_at_once_and_those_behind_it_together(monkeypatch):
    monkeypatch.setattr(journal, "PAUSE", 0.5)
    async with Written() as it:
        began = asyncio.get_running_loop().time()
        it.called("first")
        await until(lambda: it.tools)
        assert asyncio.get_running_loop().time() - began < 0.4
        seen = []
        for number in range(20):
            it.called(f"t{number}")
            await asyncio.sleep(0)
            seen.append(len(it.tools))
        assert set(seen) == {1}
        await until(lambda: len(it.tools) > 1)
        assert it.tools == ["first", *(f"t{number}" for number in range(20))]


@bounded
async def test_after_a_quiet_while_a_record_wakes_it_again(monkeypatch):
    monkeypatch.setattr(journal, "PAUSE", 0.01)
    async with Written() as it:
        for number in range(3):
            it.called(f"t{number}")
            await until(lambda number=number: len(it.tools) == number + 1)
            await asyncio.sleep(0.03)  # the pause ends, and nothing is there


@bounded
async def test_what_a_worker_wrote_before_it_died_is_taken_before_it_counts_as_gone(monkeypatch):
    monkeypatch.setattr(journal, "PAUSE", 0.2)
    async with Written() as it:
        it.called("first")
        await until(lambda: it.tools)
        it.called("second", "third")
        it.worker.close()
        await it.journal.closed
        assert it.tools == ["first", "second", "third"]


@bounded
async def test_much_at_once_waits_for_no_pause(monkeypatch):
    monkeypatch.setattr(journal, "PAUSE", 1.0)
    async with Written() as it:
        began = asyncio.get_running_loop().time()
        it.worker.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        record = ToolCalled(server_id="s", tool_name="long", input={"text": "x" * 60_000}).to_json()
        await asyncio.to_thread(it.worker.sendall, link.encode(link.Events((record,) * 12)))
        await until(lambda: len(it.tools) == 12)
        assert asyncio.get_running_loop().time() - began < 5  # of a dozen pauses


@pytest.mark.parametrize(
    "said",
    [
        link.encode(link.Ack(1, 1)),
        link.encode(link.Events((DaemonStarted().to_json(),))),
        link.frame(b'{"kind":"events","events":[{"type":"mcp_tool_called","tool_name":7}]}'),
        b"\xff\xff\xff\xff",
    ],
    ids=["no event", "not a worker's event", "an unsound event", "no frame"],
)
def test_what_no_sound_worker_writes_is_told_and_nothing_after_it_is_taken(said):
    async def main() -> None:
        async with asyncio.timeout(60), Written() as it:
            it.worker.sendall(said)
            await it.journal.closed
            assert it.tools == []
            [why] = it.violations
            assert why.startswith("broke the rules of its journal: ")
            with pytest.raises(BrokenPipeError):
                it.worker.sendall(said)

    asyncio.run(main())
