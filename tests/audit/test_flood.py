"""What one server causes cannot push out what others did: past its burst and rate events are counted, and the count is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentsh_net.audit import flood
from agentsh_net.audit.flood import TOLD_EVERY, Flood
from agentsh_net.core.audit.events import Event, ToolsListChanged


class Scene:
    def __init__(self, burst: int = 3, rate: float = 1.0) -> None:
        self.now = 100.0
        self.events: list[dict[str, Any]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.flood = Flood(
            self._emit, "evil", layer="gateway", session_id="s1", burst=burst, rate=rate,
            clock=lambda: self.now, later=lambda seconds, call: self.timers.append((self.now + seconds, call)),
        )  # fmt: skip

    def _emit(self, event: Event) -> None:
        self.events.append(event.to_json())

    def cause(self, count: int) -> None:
        for _ in range(count):
            self.flood.tell(ToolsListChanged(server_id="evil"))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self.timers if at <= self.now]
        self.timers = [(at, call) for at, call in self.timers if at > self.now]
        for call in due:
            call()

    @property
    def lost(self) -> list[int]:
        return [event["lost"] for event in self.events if event["type"] == "events_lost"]


def test_a_burst_is_told_and_the_first_that_is_kept_back_too() -> None:
    scene = Scene()
    scene.cause(1000)
    assert [e["type"] for e in scene.events] == ["mcp_tools_list_changed"] * 3 + ["events_lost"]
    assert (scene.events[-1]["layer"], scene.events[-1]["session_id"]) == ("gateway", "s1")
    assert "evil causes more than 1 events a second" in scene.events[-1]["reason"]


def test_what_is_kept_back_at_the_end_is_told_once() -> None:
    scene = Scene()
    scene.cause(1000)
    scene.flood.finish()
    assert scene.lost == [1, 996]
    scene.flood.finish()
    scene.wait(TOLD_EVERY)
    assert scene.lost == [1, 996]


def test_the_last_count_is_told_without_another_event() -> None:
    scene = Scene()
    scene.cause(1000)
    scene.wait(TOLD_EVERY)
    assert scene.lost == [1, 996]
    scene.wait(TOLD_EVERY)
    assert scene.lost == [1, 996] and not scene.timers


def test_a_second_flood_is_told_of_at_once() -> None:
    scene = Scene()
    scene.cause(4)
    scene.wait(TOLD_EVERY)
    scene.cause(4)
    assert scene.lost == [1, 1] and len(scene.timers) == 1


def test_a_flood_that_goes_on_is_told_of_now_and_then() -> None:
    scene = Scene(burst=1, rate=0.0001)
    for _ in range(4):
        scene.cause(10)
        scene.wait(TOLD_EVERY / 2)
    assert scene.lost == [1, 18, 20]


def test_the_running_loop_is_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def flooded() -> list[Event]:
        told: list[Event] = []
        last = asyncio.Event()
        origin = Flood(lambda e: (told.append(e), last.set() if len(told) == 3 else None)[0], "evil", layer="gateway", burst=1, rate=0.0001)  # fmt: skip
        for _ in range(3):
            origin.tell(ToolsListChanged(server_id="evil"))
        await asyncio.wait_for(last.wait(), 5)
        return told

    monkeypatch.setattr(flood, "TOLD_EVERY", 0.01)
    assert [e.to_json().get("lost") for e in asyncio.run(flooded())] == [None, 1, 1]


def test_what_is_within_the_rate_is_all_told() -> None:
    scene = Scene()
    for _ in range(50):
        scene.now += 1
        scene.cause(1)
    assert len(scene.events) == 50 and not scene.lost
