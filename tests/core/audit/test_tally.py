"""Events are counted by what they tell of, and nobody who writes events can make the tally grow."""

from __future__ import annotations

from agentsh_net.core.audit.events import (
    EventsLost,
    NetworkConnection,
    PolicyRejected,
    PolicyReloaded,
    RequestRedacted,
    ToolCalled,
    ToolCallIntercepted,
)
from agentsh_net.core.audit.tally import MAX_KEYS, Tally


def test_each_event_counts_where_it_belongs() -> None:
    tally = Tally()
    for event in (
        ToolCallIntercepted(),
        ToolCallIntercepted(action="block"),
        ToolCallIntercepted(would="block"),
        ToolCalled(via="shim", action="block"),
        NetworkConnection(layer="ebpf", action="block"),
        EventsLost(layer="proxy", lost=7),
        RequestRedacted(counts={"email": 2, "ssn": 1}),
        RequestRedacted(counts={"email": 3}),
        PolicyReloaded(),
        PolicyRejected(),
    ):
        tally.note(event.to_json())
    assert tally.calls == {
        ("llm", "allow"): 1,
        ("llm", "block"): 1,
        ("llm", "would_block"): 1,
        ("shim", "block"): 1,
    }
    assert tally.connections == {("ebpf", "block"): 1}
    assert (tally.lost, tally.redactions) == ({"proxy": 7}, {"email": 5, "ssn": 1})
    assert tally.reloads == {"applied": 1, "rejected": 1}


def test_keys_are_bounded_and_no_count_is_lost() -> None:
    tally = Tally()
    for n in range(1000):
        tally.note(EventsLost(layer=f"layer{n}", lost=1).to_json())
        tally.note(NetworkConnection(layer=f'{n}"').to_json())
    assert len(tally.lost) <= MAX_KEYS + 1
    assert sum(tally.lost.values()) == 1000
    assert tally.connections == {("other", "allow"): 1000}


def test_calls_that_are_counted_together_count_as_each_by_itself() -> None:
    called = [
        ToolCalled(via=via, action=action, would=would).to_json()
        for via in ("shim", "gateway")
        for action, would in (("allow", None), ("allow", "block"), ("block", None), ("allow", None))
    ]
    together, apart = Tally(), Tally()
    together.note_calls(called)
    for event in called:
        apart.note(event)
    assert together.calls == apart.calls
    assert together.calls["shim", "allow"] == 2
