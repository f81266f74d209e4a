"""What fails in a task is told; what stands is begun again, and all of it ends with the daemon."""

from __future__ import annotations

import asyncio
import logging

import pytest

from agentsh_net import tasks
from agentsh_net.core.audit.events import Event, LayerStateChanged
from agentsh_net.tasks import Tasks


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PAUSE", 0.0)


def made() -> tuple[Tasks, list[Event]]:
    told: list[Event] = []
    return Tasks(told.append, logging.getLogger("test")), told


def test_what_stands_is_begun_again_after_a_failure_which_is_an_event_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept, told = made()
    begun: list[int] = []

    async def inside() -> None:
        third = asyncio.Event()

        async def work() -> None:
            begun.append(len(begun))
            if len(begun) < 3:
                raise KeyError("cgroups")
            third.set()
            await asyncio.sleep(3600)

        kept.keep("watch", work)
        await third.wait()
        await kept.end()

    asyncio.run(inside())
    assert begun == [0, 1, 2]
    assert [(e.layer, e.state) for e in told if isinstance(e, LayerStateChanged)] == [
        ("watch", "degraded")
    ] * 2
    assert caplog.text.count("which is a bug") == 2
    assert "Traceback" in caplog.text


def test_what_fails_in_every_turn_is_begun_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PAUSE", 3600.0)
    kept, told = made()

    async def fail() -> None:
        raise ValueError

    async def inside() -> None:
        kept.keep("watch", fail)
        for _ in range(20):
            await asyncio.sleep(0)
        await kept.end()

    asyncio.run(inside())
    assert len(told) == 1


def test_what_ends_by_itself_is_not_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    kept, told = made()
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    async def inside() -> None:
        kept.keep("watch", work)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await kept.end()

    asyncio.run(inside())
    assert (begun, told, caplog.text) == ([1], [], "")


def test_a_failure_of_what_ends_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    kept, _ = made()

    async def fail() -> None:
        raise ValueError("once")

    async def inside() -> None:
        kept.spawn(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(inside())
    assert "ValueError: once" in caplog.text


def test_the_end_cancels_and_waits_and_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    kept, _ = made()
    ended: list[str] = []

    async def stand() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")

    async def inside() -> None:
        kept.spawn(stand())
        await asyncio.sleep(0)
        await kept.end()
        assert ended == ["cancelled"]
        await asyncio.sleep(0)

    asyncio.run(inside())
    assert caplog.text == ""


def test_what_ends_by_itself_can_be_waited_for_with_what_it_starts() -> None:
    kept, told = made()
    ended: list[str] = []

    async def work(name: str) -> None:
        await asyncio.sleep(0)
        if name == "first":
            kept.spawn(work("second"))
        ended.append(name)

    async def inside() -> None:
        kept.spawn(work("first"))
        await kept.ended()

    asyncio.run(inside())
    assert (ended, told) == (["first", "second"], [])
