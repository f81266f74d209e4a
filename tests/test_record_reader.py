"""A flood of records costs a share of the loop's time, whatever is read is told, and trouble is told and tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest
from fake_kernel import FakeKernel
from loopback import until

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import ConnectRecord
from agentsh_net.record_reader import REST, RecordReader

LOG = logging.getLogger("test")


class Flooded(FakeKernel):
    """Is always readable; each batch takes `cost` of the clock's seconds."""

    def __init__(self, cost: float) -> None:
        super().__init__()
        self.cost = cost
        self.now = 0.0
        self.calls = 0
        self.see()

    def records(self) -> list[ConnectRecord]:
        self.calls += 1
        self.now += self.cost
        return []


def test_a_batch_is_followed_by_a_rest_so_many_times_as_long() -> None:
    kernel = Flooded(cost=0.02)

    async def flood() -> float:
        loop = asyncio.get_running_loop()
        reader = RecordReader(kernel, lambda _: None, LOG, lambda: kernel.now)
        began = loop.time()
        reader.start(loop)
        await until(lambda: kernel.calls >= 4)
        reader.stop()
        return loop.time() - began

    assert asyncio.run(flood()) >= 3 * 0.02 * REST


def test_what_comes_later_is_told_too() -> None:
    kernel = FakeKernel()
    told: list[Sequence[ConnectRecord]] = []

    async def twice() -> None:
        reader = RecordReader(kernel, told.append, LOG)
        reader.start(asyncio.get_running_loop())
        for word in ("first", "second"):
            kernel.see(word)  # type: ignore[arg-type]
            await until(lambda w=word: [w] in told)
        reader.stop()

    asyncio.run(twice())
    assert [found for found in told if found] == [["first"], ["second"]]


def test_after_a_stop_nothing_is_read() -> None:
    kernel = Flooded(cost=0)

    async def stopped() -> int:
        reader = RecordReader(kernel, lambda _: None, LOG)
        reader.start(asyncio.get_running_loop())
        await until(lambda: kernel.calls >= 2)
        reader.stop()
        seen = kernel.calls
        await asyncio.sleep(0.02)
        return kernel.calls - seen

    assert asyncio.run(stopped()) == 0


def test_a_kernel_that_breaks_is_told_and_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Flooded):
        def records(self) -> list[ConnectRecord]:
            super().records()
            if self.calls == 1:
                raise KernelError("the log group broke", layer="nftables", remedy="mend it")
            return []

    kernel = Broken(cost=0)

    async def again() -> None:
        reader = RecordReader(kernel, lambda _: None, LOG)
        reader.start(asyncio.get_running_loop())
        await until(lambda: kernel.calls >= 2)
        reader.stop()

    asyncio.run(again())
    assert "the log group broke (mend it)" in caplog.text
