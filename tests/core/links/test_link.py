"""Messages survive any cutting of the bytes, and nothing a worker says is believed unchecked."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.audit.events import (
    ConnectorRequest,
    DaemonStarted,
    EventsLost,
    NetworkConnection,
    RequestRedacted,
    ToolCallIntercepted,
)
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links import link

MESSAGES = [
    link.Apply(1, {"a": 1}),
    link.Sessions(2, {"0a": "s"}, placed=True),
    link.Relist(4),
    link.Drain(3, 1.5),
]
REPLIES = [
    link.Ack(1, 7),
    link.Events(({"type": "x"},)),
    link.Counters({"requests": 3}),
    link.Report({"server_id": "s", "ok": True, "tools": []}),
    link.Report({"server_id": "s", "listed": {"prompts": {}}}),
]


@given(st.lists(st.integers(1, 40), max_size=60))
def test_any_cutting_gives_the_same_messages(cuts):
    stream = b"".join(link.encode(m) for m in MESSAGES)
    framer = link.Framer(1 << 20)
    got = []
    for cut in [*cuts, len(stream)]:
        got += framer.feed(stream[:cut])
        stream = stream[cut:]
    assert [link.decode_to_worker(payload) for payload in got] == MESSAGES


def test_every_reply_survives_the_way():
    framer = link.Framer(1 << 20)
    assert [link.decode_from_worker(p) for m in REPLIES for p in framer.feed(link.encode(m))] == REPLIES


def test_a_message_above_the_bound_is_refused_by_its_length_alone():
    with pytest.raises(ProtocolError, match="the bound is 10"):
        link.Framer(10).feed((11).to_bytes(4, "big"))


@pytest.mark.parametrize(
    "said",
    [
        b"", b"{", b"[]", b"null", b'{"kind":"ack"}', b'{"kind":"ack","seq":"1","generation":1}', b'{"kind":"apply","seq":1,"snapshot":{}}',
        b'{"kind":"events","events":{}}', b'{"kind":"events","events":[1]}', b'{"kind":"counters","counters":{"a":"b"}}',
        b'{"kind":"counters","counters":{"a":true}}', b'{"kind":"counters","counters":{"a":1,"b":"x"}}',
        orjson.dumps({"kind": "counters", "counters": {str(n): n for n in range(link.MAX_COUNTERS + 1)}}),
        b'{"kind":"report","report":{"ok":true}}', b'{"kind":"report","report":{"server_id":"s","ok":1}}', orjson.dumps({"kind": "events", "events": [{}] * (link.MAX_EVENTS + 1)}),
    ],
)  # fmt: skip
def test_what_a_sound_worker_cannot_say_is_refused(said):
    with pytest.raises(ProtocolError):
        link.decode_from_worker(said)


def test_where_only_events_belong_nothing_else_is_taken():
    events, counters = link.Events(({"type": "x"}, {})), link.Counters({"requests": 3})
    assert link.events_of(link.encode(events)[4:]) == events.events
    with pytest.raises(ProtocolError, match="only events belong"):
        link.events_of(link.encode(counters)[4:])


def test_the_framer_tells_how_much_waits_for_the_rest_of_its_message():
    framer = link.Framer(10)
    assert framer.feed(link.frame(b"x" * 10) + b"\0\0") == [b"x" * 10]
    assert framer.waiting == 2


def test_a_worker_cannot_command_a_worker():
    with pytest.raises(ProtocolError):
        link.decode_to_worker(link.encode(link.Ack(1, 1))[4:])


@pytest.mark.parametrize(
    "event", [ToolCallIntercepted(tool_name="t", input={"a": [1]}), ConnectorRequest(), EventsLost(lost=3)]
)
def test_a_workers_own_events_are_taken(event):
    assert link.event_from_worker(event.to_json()) == event


@pytest.mark.parametrize(
    "change",
    [
        {"type": "daemon_started"}, {"type": "nonsense"}, {"type": ["x"]}, {"tool_name": 1}, {"tool_name": "x" * 9000}, {"candidates": "x"},
        {"candidates": [1]}, {"action": "deny"}, {"session_id": None}, {"would": 1}, {"unknown": 1}, {"reason": {"a": 1}},
        {"candidates": [{}] * (link.MAX_EVENTS + 1)}, {"id": None}, {"server_id": 1},
    ],
)  # fmt: skip
def test_an_event_of_another_shape_is_refused(change):
    with pytest.raises(ProtocolError):
        link.event_from_worker(ToolCallIntercepted().to_json() | change)


@pytest.mark.parametrize(
    "counts",
    [[1], {"a": "1"}, {"a": True}, {"x" * (link.MAX_TEXT + 1): 1}, {str(n): n for n in range(link.MAX_EVENTS + 1)}],
)  # fmt: skip
def test_counts_of_another_shape_are_refused(counts):
    told = RequestRedacted(counts={"email": 2}).to_json()
    assert link.event_from_worker(told).to_json() == told
    with pytest.raises(ProtocolError, match="unsound counts"):
        link.event_from_worker(told | {"counts": counts})


@pytest.mark.parametrize("kind", link.WORKER_EVENTS)
def test_every_event_that_a_worker_may_report_is_taken_as_it_is_made(kind):
    event = kind(layer="proxy") if kind is NetworkConnection else kind()
    assert link.event_from_worker(event.to_json()) == event


def test_a_worker_cannot_speak_for_the_daemon():
    with pytest.raises(ProtocolError, match="may not report"):
        link.event_from_worker(DaemonStarted().to_json())


@pytest.mark.parametrize(("layer", "action"), [("ebpf", "allow"), ("", "allow"), ("proxy", "block")])
def test_a_worker_cannot_speak_for_the_kernel(layer, action):
    with pytest.raises(ProtocolError, match="for the kernel"):
        link.event_from_worker(NetworkConnection(layer=layer, action=action).to_json())
    for change in ({"candidates": [1]}, {"correlated": 1}, {"pid": "1"}, {"pid": True}, {"uid": "0"}):
        with pytest.raises(ProtocolError, match="unsound"):
            link.event_from_worker(NetworkConnection(layer="proxy").to_json() | change)
