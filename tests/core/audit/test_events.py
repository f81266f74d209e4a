"""An event is stamped once, and its JSON begins with what it is."""

from __future__ import annotations

import pytest

from agentsh_net.core.audit.event_types import EVENT_TYPES
from agentsh_net.core.audit.events import ToolCallIntercepted


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_the_cheap_way_to_a_stamped_event_is_the_same_way(kind: str) -> None:
    for event in (EVENT_TYPES[kind](session_id="s"), EVENT_TYPES[kind](timestamp="then")):
        cheap = event.to_stamped_json(id="1", timestamp="now")
        assert cheap == event.stamped(id="1", timestamp="now").to_json()
        assert list(cheap) == list(event.to_json())


def test_the_head_of_an_event_comes_first() -> None:
    assert list(ToolCallIntercepted().to_json())[:3] == ["id", "type", "timestamp"]


def test_a_time_set_by_who_saw_it_is_kept() -> None:
    assert ToolCallIntercepted(timestamp="then").stamped(id="1", timestamp="now").timestamp == "then"
