"""Who waits for the planes is told when they have what was known when he began to wait, and changes do not pile up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agentsh_net.resolution.readdressing import Readdressing


class Planes:
    """A `Current` that takes what the resolver says, and notes it."""

    def __init__(self, *, works: bool = True) -> None:
        self.lock = asyncio.Lock()
        self.works, self.taken = works, []

    async def readdress(self, addresses: Any, hearsay: Any, confirmed: Callable[[], None]) -> None:
        await asyncio.sleep(0)
        self.taken.append((addresses, hearsay))
        if self.works:
            confirmed()


class Names:
    known = 0

    def addresses(self) -> int:
        return self.known

    def hearsay(self) -> int:
        return -self.known


def made(planes: Planes, names: Names) -> tuple[Readdressing, set[asyncio.Task[None]]]:
    tasks: set[asyncio.Task[None]] = set()
    return Readdressing(planes, names, lambda work: tasks.add(asyncio.ensure_future(work))), tasks


def test_requests_that_come_while_one_waits_are_done_at_once_and_with_the_newest() -> None:
    async def script() -> tuple[list[bool], list[Any]]:
        planes, names = Planes(), Names()
        readdressing, _tasks = made(planes, names)
        async with planes.lock:  # somebody else is changing something
            waiting = []
            for names.known in (1, 2, 3):
                waiting.append(readdressing.soon())
                await asyncio.sleep(0)
        return await asyncio.gather(*waiting), planes.taken

    assert asyncio.run(script()) == ([True] * 3, [(3, -3)])


def test_one_that_comes_while_a_change_is_made_waits_for_the_next() -> None:
    async def script() -> list[Any]:
        planes, names = Planes(), Names()
        readdressing, _tasks = made(planes, names)
        names.known = 1
        first = readdressing.soon()
        while not planes.lock.locked():
            await asyncio.sleep(0)
        names.known = 2
        second = readdressing.soon()
        assert second is not first
        assert await asyncio.gather(first, second) == [True, True]
        return planes.taken

    assert asyncio.run(script())[-1] == (2, -2)


def test_a_change_that_failed_is_not_confirmed() -> None:
    async def script() -> bool:
        planes = Planes(works=False)
        readdressing, _tasks = made(planes, Names())
        return await readdressing.soon()

    assert asyncio.run(script()) is False
