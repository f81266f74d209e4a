"""Ids and timestamps sort as text in the order of time, whatever the clock does."""

import re
import threading
import uuid
from datetime import UTC, datetime

from agentsh_net import clock


def test_a_timestamp_is_rfc3339_in_utc_with_six_digits():
    assert clock.rfc3339(1_700_000_000_000_001_999) == "2023-11-14T22:13:20.000001Z"
    assert clock.rfc3339(0) == "1970-01-01T00:00:00.000000Z"


def test_the_present_is_told_in_utc_to_the_microsecond():
    before = datetime.now(UTC)
    seen = datetime.fromisoformat(clock.now_rfc3339())
    assert abs((seen - before).total_seconds()) < 5
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", clock.now_rfc3339())


def test_an_id_is_a_version_7_uuid_of_the_present_millisecond():
    made = uuid.UUID(clock.new_id())
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert abs((made.int >> 80) / 1000 - datetime.now(UTC).timestamp()) < 5


def test_ids_increase_strictly_within_a_burst():
    ids = [clock.new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))


def test_ids_increase_when_the_clock_steps_back(monkeypatch):
    source = clock.IdSource()
    first = source.next()
    monkeypatch.setattr(clock.time, "time_ns", lambda: 1_000_000_000)
    assert source.next() > first


def test_threads_never_share_an_id():
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(clock.new_id() for _ in range(500))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2000


def test_the_lowest_id_of_a_time_bounds_the_ids_made_from_then_on(monkeypatch):
    now = 1_700_000_000_123_456_789
    monkeypatch.setattr(clock.time, "time_ns", lambda: now)
    made = clock.IdSource().next()
    assert clock.lowest_id(now) <= made < clock.lowest_id(now + 1_000_000)


def test_before_1970_no_id_was_made():
    assert clock.lowest_id(-1) == clock.lowest_id(-(10**20)) == clock.lowest_id(0) < clock.lowest_id(10**6)


def test_ids_made_together_are_as_those_made_one_by_one():
    source = clock.IdSource()
    ids = [source.next(), *source.several(5000), source.next()]
    assert ids == sorted(set(ids))
    assert source.several(0) == []
    for made in map(uuid.UUID, ids[1:100]):
        assert made.version == 7
        assert made.variant == uuid.RFC_4122
        assert abs((made.int >> 80) / 1000 - datetime.now(UTC).timestamp()) < 5
