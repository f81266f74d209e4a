"""Every event type survives the trip through JSON, and nothing unknown gets in."""

from __future__ import annotations

import pytest

from agentsh_net.core.audit.event_types import EVENT_TYPES, from_json
from agentsh_net.core.errors import ProtocolError


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_what_is_written_is_read_back_equal(kind: str) -> None:
    event = EVENT_TYPES[kind](session_id="s", action="block", reason="why").stamped(id="1", timestamp="t")
    assert from_json(event.to_json()) == event


@pytest.mark.parametrize("value", [{}, {"type": "nonsense"}, {"type": "policy_reloaded", "extra": 1}])
def test_what_is_no_event_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        from_json(value)
