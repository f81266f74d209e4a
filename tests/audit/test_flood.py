"""What one server causes cannot push out what others did: past its burst and rate events are counted, and the count is told."""

from __future__ import annotations

from typing import Any

from agentsh_net.audit.flood import TOLD_EVERY, Flood
from agentsh_net.core.audit.events import Event, ToolsListChanged


class Scene:
    def __init__(self, burst: int = 3, rate: float = 1.0) -> None:
        self.now = 100.0
        self.events: list[dict[str, Any]] = []
        self.flood = Flood(self._emit, "evil", layer="gateway", session_id="s1", burst=burst, rate=rate, clock=lambda: self.now)  # fmt: skip

    def _emit(self, event: Event) -> None:
        self.events.append(event.to_json())

    def cause(self, count: int) -> None:
        for _ in range(count):
            self.flood.tell(ToolsListChanged(server_id="evil"))

    @property
    def lost(self) -> list[int]:
        return [event["lost"] for event in self.events if event["type"] == "events_lost"]


def test_a_burst_is_told_and_the_first_that_is_kept_back_too() -> None:
    scene = Scene()
    scene.cause(1000)
    assert [e["type"] for e in scene.events] == ["mcp_tools_list_changed"] * 3 + ["events_lost"]
    assert (scene.events[-1]["layer"], scene.events[-1]["session_id"]) == ("gateway", "s1")
    assert "evil causes more than 1 events a second" in scene.events[-1]["reason"]


def test_the_count_is_exact_with_the_next_event_after_the_flood() -> None:
    scene = Scene()
    scene.cause(1000)
    scene.now += TOLD_EVERY
    scene.cause(1)
    assert sum(scene.lost) == 997 and len(scene.events) == 3 + 2 + 1


def test_a_flood_that_goes_on_is_told_of_now_and_then() -> None:
    scene = Scene(burst=1, rate=0.0001)
    scene.cause(10)
    scene.now += TOLD_EVERY
    scene.cause(10)
    assert scene.lost == [1, 9]


def test_what_is_within_the_rate_is_all_told() -> None:
    scene = Scene()
    for _ in range(50):
        scene.now += 1
        scene.cause(1)
    assert len(scene.events) == 50 and not scene.lost
