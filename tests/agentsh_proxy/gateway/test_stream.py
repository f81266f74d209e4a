"""A stream's queue is bounded, what was sent is kept for who comes back, and an event id leads to the rest."""

from __future__ import annotations

import asyncio

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


def test_only_what_waits_counts_against_the_bound() -> None:
    stream, large = Stream(1), b"x" * (MAX_QUEUED // 4 * 3)
    for _ in range(3):
        for message in (b"a", large):
            stream.put(1, message)
        assert not stream.cut
        assert [stream.take()[1], stream.take()[1]] == [b"a", large]
    stream.put(1, large)
    stream.detach()  # and nobody will send what waits
    stream.attach()
    for message in (b"a", large):
        stream.put(2, message)
    assert not stream.cut
    stream.put(3, large)
    assert stream.cut
    stream.detach()
    stream.attach()  # who comes back is not cut again for what was
    assert (stream.cut, stream.waiting) == (False, False)


def test_who_waits_is_told_of_messages_and_of_the_end_each_time_anew() -> None:
    async def scene() -> None:
        stream = Stream(1)
        for happens in (lambda: stream.put(1, b"a"), stream.wake):
            waiting = asyncio.ensure_future(stream.news())
            assert not (await asyncio.wait((waiting,), timeout=0.05))[0]
            happens()
            await waiting
            if stream.waiting:
                await stream.news()
                stream.take()
        for message in (b"a", b"x" * MAX_QUEUED):
            stream.put(1, message)
        stream.take()
        await stream.news()  # it was cut

    asyncio.run(asyncio.wait_for(scene(), 60))


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
