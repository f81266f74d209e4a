"""The oldest events go first, in bounded steps, until age and size are within limits; state is never pruned."""

import pytest

from agentsh_net.clock import lowest_id, rfc3339
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.store import records, retention
from agentsh_net.store.connect import open_writer

DAY = 86_400 * 10**9
NOW = 1_700_000_000 * 10**9


@pytest.fixture
def connection(tmp_path):
    connection = open_writer(tmp_path / "events.db")
    yield connection
    connection.close()


def fill(connection, ages, size=10):
    for n, age in enumerate(ages):
        at = NOW - age
        event = {
            "id": lowest_id(at)[:-4] + f"{n:04x}",
            "timestamp": rfc3339(at),
            "input": "x" * size,
            "candidates": ["s"],
        }
        connection.execute(records.INSERT_EVENT, records.event_row(event))
        connection.executemany(records.INSERT_CANDIDATE, records.candidate_rows(event))


def count(connection, table="events"):
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def prune_all(connection, limits):
    while retention.prune(connection, limits, NOW):
        pass


def test_what_is_within_limits_stays(connection):
    fill(connection, [DAY, 2 * DAY])
    assert retention.prune(connection, Retention(90, 1000), NOW) == 0
    assert count(connection) == 2


def test_what_is_too_old_goes_with_its_candidates(connection):
    fill(connection, [1 * DAY, 8 * DAY, 9 * DAY])
    prune_all(connection, Retention(max_age_days=7, max_size_mb=1000))
    assert (count(connection), count(connection, "candidates")) == (1, 1)


def test_a_step_deletes_no_more_than_a_chunk(connection, monkeypatch):
    monkeypatch.setattr(retention, "CHUNK", 4)
    fill(connection, [9 * DAY] * 10)
    assert retention.prune(connection, Retention(7, 1000), NOW) == 4


def test_what_is_too_much_goes_oldest_first_and_the_file_shrinks(connection, monkeypatch):
    monkeypatch.setattr(retention, "CHUNK", 50)
    fill(connection, range(1000 * 10**9, 0, -(10**9)), size=4000)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    newest = connection.execute("SELECT max(id) FROM events").fetchone()
    prune_all(connection, Retention(max_age_days=90, max_size_mb=1))
    assert retention.used_bytes(connection) <= 1_000_000
    assert 0 < count(connection) < 300
    assert connection.execute("SELECT max(id) FROM events").fetchone() == newest
    assert connection.execute("PRAGMA page_count").fetchone()[0] < pages / 2


def test_tools_pins_and_sessions_are_never_pruned(connection):
    connection.execute("INSERT INTO pins VALUES ('s', 't', 'h', '{}', 'trusted', '2001-01-01', 'root')")
    prune_all(connection, Retention(max_age_days=0, max_size_mb=0))
    assert count(connection, "pins") == 1


class Time:
    """A wall clock and the time that runs, in ns."""

    def __init__(self, wall=NOW):
        self.wall, self.running = wall, 0

    def clock(self, known=0):
        return retention.PatientClock(known, lambda: self.wall, lambda: self.running)

    def passes(self, seconds):
        self.wall += seconds * 10**9
        self.running += seconds * 10**9


def test_a_clock_that_is_right_is_believed_at_once():
    time = Time()
    clock = time.clock()
    for seconds in (0, 60, 3600, 40 * 86_400):
        time.passes(seconds)
        assert clock.now() == time.wall


def test_a_clock_400_days_ahead_for_a_minute_makes_hardly_anything_too_old():
    time = Time()
    clock = time.clock()
    time.wall += 400 * DAY
    believed = []
    for _ in range(6):
        time.passes(10)
        believed.append(clock.now() - NOW)
    assert believed == [n * 10 * 10**9 * retention.HASTE for n in range(1, 7)]
    assert believed[-1] < DAY / 5
    time.wall -= 400 * DAY
    assert clock.now() == time.wall


def test_a_clock_that_stays_ahead_is_believed_in_the_end_and_one_behind_at_once():
    time = Time()
    clock = time.clock()
    time.wall += 30 * DAY
    time.passes(5 * 3600 + 600)
    assert clock.now() == time.wall
    time.wall -= 300 * DAY
    assert clock.now() == time.wall  # deletes less
    time.wall += 300 * DAY
    assert clock.now() == time.wall  # which was known before


def test_the_next_daemon_knows_what_time_it_was(connection):
    assert retention.known_time(connection) == 0
    for sql, rows in retention.remembering(NOW):
        connection.executemany(sql, rows)
    time = Time(NOW + 400 * DAY)
    assert time.clock(retention.known_time(connection)).now() == NOW
