"""What names mean is followed from start to stop, and told part by part."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from netns import box

from agentsh_net.core.configuration.settings import Network, Resolve
from agentsh_net.core.network.gap import GapSummary
from agentsh_net.resolution.watch import NameWatch
from agentsh_net.tasks import Tasks

LITERAL = ip_address("192.0.2.1")


class Planes:
    def __init__(self) -> None:
        self.lock, self.taken = asyncio.Lock(), []

    async def readdress(self, addresses: Any, hearsay: Any, confirmed: Callable[[], None]) -> None:
        self.taken.append(addresses)
        confirmed()


def watched(folder: Path, **resolve: Any) -> tuple[dict[str, Any], list[Any], GapSummary]:
    """Watch a name of the hosts file until it has changed, and return what is told."""

    async def script() -> tuple[dict[str, Any], list[Any], GapSummary]:
        tasks = Tasks(lambda _: None, logging.getLogger("t"))
        planes = Planes()
        names = NameWatch(
            Network(resolve=Resolve(**resolve)), folder / "memory.json",
            tasks=tasks, emit=lambda _: None, log=logging.getLogger("t"),
        )  # fmt: skip
        await names.resolver.watch({"a": "name.localhost"})
        await names.start(planes)
        names.resolver._book.given("name.localhost", [LITERAL])
        names.resolver._tell()
        async with asyncio.timeout(60):
            while not planes.taken:
                await asyncio.sleep(0.001)
        told = names.status(), planes.taken, names.gap()
        names.stop()
        await tasks.end()
        return told

    return asyncio.run(script())


def test_a_change_reaches_the_planes_and_is_told(tmp_path: Path) -> None:
    status, taken, gap = watched(tmp_path)
    assert taken == [{"a": (LITERAL,)}]
    (name,) = status["resolver"]["names"]
    assert (name["name"], name["addresses"], name["overheard"]) == ("name.localhost", ["192.0.2.1"], {})
    assert status["snoop"] == {"wanted": False, "in_force": False}
    assert gap == GapSummary()


@pytest.mark.kernel
def test_snooping_is_told_with_what_it_saw(tmp_path: Path) -> None:
    status, _, _ = box.in_box(lambda: watched(tmp_path, snoop_dns=True))
    assert (status["snoop"]["in_force"], status["snoop"]["seen"]) == (True, 0)
