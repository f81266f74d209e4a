"""A stream's queue is bounded, what was sent is kept for who comes back, and an event id leads to the rest."""

from __future__ import annotations

import pytest
from agentsh_proxy.gateway.stream import (
    MAX_KEPT,
    MAX_KEPT_BYTES,
    MAX_QUEUED,
    Kept,
    Stream,
    event,
    place_in,
    priming,
)


def test_messages_come_out_in_their_order() -> None:
    stream = Stream(1, [7])
    stream.put(1, b"a")
    stream.put(2, b"b")
    assert [stream.take(), stream.take(), stream.waiting] == [(1, b"a"), (2, b"b"), False]


def test_one_large_answer_fits_and_a_flood_cuts_the_stream() -> None:
    stream = Stream(1)
    stream.put(1, b"x" * (2 * MAX_QUEUED))
    assert stream.waiting and not stream.cut
    stream.put(2, b"y")
    assert stream.cut


def test_a_stream_that_nobody_reads_takes_nothing() -> None:
    stream = Stream(1)
    stream.put(1, b"a")
    stream.detach()
    stream.put(2, b"b")
    assert not stream.waiting
    stream.attach()
    stream.put(3, b"c")
    assert stream.take() == (3, b"c")


def test_what_a_stream_missed_is_found_by_its_last_event() -> None:
    kept = Kept()
    assert [kept.add(1, b"a"), kept.add(2, b"b"), kept.add(1, b"c")] == [1, 2, 3]
    assert kept.since(1, 1) == [(3, b"c")]
    assert kept.since(9, 0) == []


def test_what_is_kept_is_bounded_in_number_and_bytes() -> None:
    kept = Kept()
    for _ in range(2 * MAX_KEPT):
        kept.add(1, b"x")
    assert len(kept.since(1, 0)) == MAX_KEPT
    kept.add(1, b"x" * (MAX_KEPT_BYTES + 1))
    assert kept.since(1, 0) == []


def test_an_event_id_names_stream_and_number() -> None:
    assert event(3, 9, b"{}") == b"event: message\nid: 3-9\ndata: {}\n\n"
    assert b"id:" not in event(3, 0, b"{}")
    assert place_in("3-9") == (3, 9)
    name = priming(3, 0).split(b"\n")[0].decode()
    assert place_in(name.removeprefix("id: ")) == (3, 0)


@pytest.mark.parametrize("foreign", ["", "3", "a-b", "-1", "3-", "\u0663-9", "1" * 50 + "-1", "1-2-3"])
def test_event_ids_of_others_are_no_place(foreign: str) -> None:
    assert place_in(foreign) is None
