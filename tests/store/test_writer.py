"""Handing in an event never waits and never fails: trouble of the disk is told once, counted, and over when it is over."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from running import awaited

from agentsh_net.clock import new_id, now_rfc3339
from agentsh_net.core.audit.events import ToolCalled
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.core.errors import StoreError
from agentsh_net.store import connect, queries, records, retention, writer
from agentsh_net.store.records import PinRecord
from agentsh_net.store.writer import Writer


class Told:
    """Remembers what `on_trouble` was told, and lets a test wait for it."""

    def __init__(self):
        self.said: list[str] = []
        self._news = threading.Condition()

    def __call__(self, trouble):
        with self._news:
            self.said.append(str(trouble) if trouble else "recovered")
            self._news.notify_all()

    def wait_for(self, words):
        with self._news:
            assert self._news.wait_for(lambda: any(words in said for said in self.said), 10), self.said


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(connect, "BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr(writer, "RETRY_DELAY", 0.05)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.db"


@pytest.fixture
def store(path, told):
    store = Writer(path, Retention(), told)
    yield store
    store.close()


def stored(path):
    return [
        e["tool_name"]
        for e in queries.page(path, "events", {"type": "mcp_tool_called", "limit": 100_000}).rows
    ]


def lost(path):
    return sum(e["lost"] for e in queries.page(path, "events", {"type": "events_lost"}).rows)


def call(name):
    return ToolCalled(tool_name=name).to_stamped_json(id=new_id(), timestamp=now_rfc3339())


def test_events_reach_the_disk_in_order(store, path):
    for n in range(1200):
        store.put([call(f"t{n}")])
    awaited(lambda: store.status().written == 1200)
    assert stored(path) == [f"t{n}" for n in range(1000)]  # one page
    [newest] = queries.page(path, "events", {"limit": 1}).rows
    assert newest["tool_name"] == "t1199"


def test_an_event_is_seen_soon_without_company(store, path):
    store.put([call("alone")])
    awaited(lambda: stored(path) == ["alone"])


def test_closing_writes_what_is_queued_and_leaves_one_file(store, path):
    for n in range(700):
        store.put([call(f"t{n}")])
    assert store.close() == 0
    assert [p.name for p in path.parent.iterdir()] == ["events.db"]
    assert len(stored(path)) == 700


def test_events_handed_in_together_reach_the_disk_in_order(store, path):
    named = [f"f{n:05}" for n in range(3021)]  # none of them so old that it would be removed
    store.put([{"id": name, "timestamp": "t", "type": "x"} for name in named])
    store.close()
    with connect.reader(path) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM events ORDER BY rowid")]
    assert ids == named
    assert store.status().lost == 0


def test_rows_and_events_reach_the_disk_in_the_order_in_which_they_were_handed_in(store, path):
    store.put([call("a")])
    store.put_rows([records.event_row(call(name)) for name in ("b", "c")])
    store.put([call("d")])
    store.close()
    assert stored(path) == ["a", "b", "c", "d"]


def test_who_can_wait_is_told_to_before_anything_is_lost_and_not_while_the_disk_is_away(store, path, told, monkeypatch):  # fmt: skip
    monkeypatch.setattr(writer, "MAX_QUEUED", 4)
    assert store.takes_more()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    store.put([{"id": f"{n}", "timestamp": "t", "type": "x"} for n in range(3)])
    assert not store.takes_more()
    told.wait_for("locked")
    assert store.takes_more()  # nobody waits for the disk to come back: what does not fit is counted
    blocker.execute("ROLLBACK")
    told.wait_for("recovered")
    store.put([{"id": f"b{n}", "timestamp": "t", "type": "x"} for n in range(9)])
    assert store.status().lost > 0


def test_after_closing_events_are_counted_as_lost(store):
    store.close()
    store.put([call("late")])
    assert (store.status().lost, store.status().trouble) == (1, "")


def test_a_change_is_on_the_disk_when_its_future_ends(store, path):
    pin = PinRecord("s", "t", "h", {"name": "t"}, "trusted", "now", "root")
    store.change(records.save_pins([pin])).result(5)
    assert queries.load_pins(path) == [pin]
    store.change(records.delete_pins([("s", "t")])).result(5)
    assert queries.load_pins(path) == []


def test_a_change_that_nobody_waits_for_any_more_is_written_and_so_is_what_comes_after(
    store, path, monkeypatch
):
    pin = PinRecord("s", "t", "h", {"name": "t"}, "trusted", "now", "root")
    left, transact = threading.Event(), Writer._transact

    def slowly(self, change):
        assert left.wait(10)
        transact(self, change)

    async def leave():
        waiting = asyncio.wrap_future(store.change(records.save_pins([pin])))
        waiting.cancel()
        await asyncio.wait([waiting])

    monkeypatch.setattr(Writer, "_transact", slowly)
    asyncio.run(leave())
    left.set()
    store.put([call("after")])
    assert store.close() == 0
    assert (queries.load_pins(path), stored(path)) == ([pin], ["after"])


def test_a_locked_database_is_told_once_and_loses_nothing_that_fits(store, path, told):
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        store.put([call("while locked")])
        told.wait_for("locked by another process")
        assert "fuser" in store.status().remedy
        other.execute("ROLLBACK")
    told.wait_for("recovered")
    awaited(lambda: stored(path) == ["while locked"])
    assert told.said == [f"{path} is locked by another process", "recovered"]
    assert store.status().trouble == ""
    other.close()


def test_put_never_waits_for_a_locked_database(path, told, monkeypatch):
    monkeypatch.setattr(connect, "BUSY_TIMEOUT", 3.0)
    store = Writer(path, Retention(), told)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = time.perf_counter()
    for n in range(writer.BATCH * 4):
        store.put([call(str(n))])
    waited = time.perf_counter() - before
    assert store.status().written == 0
    other.execute("ROLLBACK")
    other.close()
    assert waited < 2.0  # a single try of the writer takes three
    store.close()


def test_what_does_not_fit_the_queue_is_counted_and_recorded(store, path, told, monkeypatch):
    monkeypatch.setattr(writer, "MAX_QUEUED", 10)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for n in range(25):
        store.put([call(f"t{n}")])
    assert store.status().lost == 15
    other.execute("ROLLBACK")
    other.close()
    awaited(lambda: lost(path) == 15)
    assert stored(path) == [f"t{n}" for n in range(10)]


def test_the_queue_is_bounded_in_bytes_too(store, path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_QUEUED_BYTES", 1000)
    store.put([call("x" * 2000)])
    awaited(lambda: lost(path) == 1)
    assert stored(path) == []


def test_what_is_written_leaves_room_in_the_queue(store, path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_QUEUED_BYTES", 4000)  # for one alone
    names = ["a" * 2000, "b" * 2000]
    for name in names:
        store.put([call(name)])
        awaited(lambda: store.status().queued == 0)
    assert (stored(path), store.status().lost) == (names, 0)


def test_a_full_disk_is_told_and_survived(path, told, monkeypatch):
    opened = []

    def tiny(where):
        connection = connect.open_writer(where)
        connection.execute("PRAGMA max_page_count=60")
        opened.append(connection)
        return connection

    monkeypatch.setattr(writer, "open_writer", tiny)
    store = Writer(path, Retention(), told)
    for n in range(40):
        store.put([call(f"{n}" + "x" * 10_000)])
    told.wait_for("full")
    assert "max_size_mb" in store.status().remedy
    opened[0].execute("PRAGMA max_page_count=100000")
    told.wait_for("recovered")
    awaited(lambda: len(stored(path)) == 40)
    assert store.close() == 0


def test_a_change_fails_with_advice_while_the_disk_does_not_answer(store, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = [store.change(records.delete_pins([("s", "t")])) for _ in range(3)]
    for change in waiting:  # the first, and those that would have been next
        with pytest.raises(StoreError, match="locked") as failed:
            change.result(20)
        assert failed.value.remedy
    other.execute("ROLLBACK")
    other.close()
    store.change(records.delete_pins([("s", "t")])).result(5)


def test_trouble_ends_by_itself_even_with_nothing_to_write(store, path, told):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError):
        store.change(records.delete_pins([("s", "t")])).result(5)
    other.execute("ROLLBACK")
    other.close()
    told.wait_for("recovered")


def at_rest(store, path):
    """Have the writer look at the path again before it writes: what it began before a file goes is written to that file."""
    store.put([call("before")])
    awaited(lambda: stored(path) == ["before"])


def test_a_database_moved_aside_under_a_running_daemon_is_made_anew(store, path, told):
    at_rest(store, path)
    for suffix in ("", "-wal", "-shm"):
        os.rename(f"{path}{suffix}", f"{path}{suffix}.old")
    store.put([call("after")])
    told.wait_for("moved or deleted")
    told.wait_for("recovered")
    awaited(lambda: stored(path) == ["after"])


def other_database(tmp_path, path):
    """A store of another time beside the one that is written, with an event of its own."""
    other = tmp_path / "other" / path.name
    writer = Writer(other, Retention(), lambda _: None)
    writer.put([call("restored")])
    writer.close()
    return other


def test_a_database_that_another_replaces_takes_its_log_with_it(store, path, tmp_path, told):
    restored = other_database(tmp_path, path)
    at_rest(store, path)
    os.link(path, path.with_suffix(".old"))
    restored.rename(path)  # as of a backup: SQLite would read the log, which stays, as its own
    store.put([call("after")])
    told.wait_for("recovered")
    awaited(lambda: stored(path) == ["restored", "after"])
    assert stored(path.with_suffix(".old")) == ["before"]


def test_while_somebody_reads_the_log_of_a_replaced_database_the_other_is_not_touched(
    store, path, tmp_path, told
):
    restored = other_database(tmp_path, path)
    content = restored.read_bytes()
    at_rest(store, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events")
        restored.rename(path)
        store.put([call("after")])
        told.wait_for("the log of the file that was here before")
        assert path.read_bytes() == content
    told.wait_for("recovered")
    awaited(lambda: stored(path) == ["restored", "after"])


def test_what_cannot_be_opened_in_the_place_of_the_database_is_told_once(store, path, told, monkeypatch):
    tries = []
    monkeypatch.setattr(
        writer, "open_writer", lambda path: (tries.append(path), connect.open_writer(path))[1]
    )
    at_rest(store, path)
    path.unlink()
    path.mkdir()
    store.put([call("after")])
    awaited(lambda: len(tries) > 2)
    path.rmdir()
    told.wait_for("recovered")
    assert told.said == [f"{path} was moved or deleted", f"{path} is a directory", "recovered"]
    awaited(lambda: stored(path) == ["after"])


HOLD = (
    "import sys; from pathlib import Path; from agentsh_net.store.connect import hold\n"
    "lock = hold(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


def test_a_second_writer_is_refused_with_the_pid_of_the_first_and_readers_are_not(path, tmp_path, told):
    command = [sys.executable, "-c", HOLD, path]
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        for name in (path, link):
            with pytest.raises(StoreError, match=f"process {other.pid}, writes {name}") as refused:
                Writer(name, Retention(), told)
            assert "store.path" in refused.value.remedy
        connect.open_writer(path).close()
        assert queries.page(path, "events", {}).rows == []
        other.kill()
        other.wait()
    Writer(path, Retention(), told).close()
    assert not path.with_name("events.db.lock").exists()


def test_a_full_disk_is_no_wrong_place(path, told, monkeypatch):
    def full(_descriptor, _data, _offset):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match=r"the disk of .* is full") as refused:
        Writer(path, Retention(), told)
    assert "free space" in refused.value.remedy
    assert not isinstance(refused.value.__cause__, OSError)  # which would be a wrong store.path: exit 2


def test_a_store_that_came_again_after_its_directory_was_emptied_is_still_one_daemons(store, path, told):
    at_rest(store, path)
    for name in os.listdir(path.parent):
        os.unlink(path.parent / name)
    store.put([call("after")])
    told.wait_for("recovered")
    awaited(lambda: stored(path) == ["after"])
    with pytest.raises(StoreError, match=f"process {os.getpid()}"):
        Writer(path, Retention(), told)


def test_a_database_that_cannot_be_opened_is_refused_at_once(path, told):
    path.write_text("not a database, surely not" * 100)
    with pytest.raises(StoreError, match="not an SQLite database"):
        Writer(path, Retention(), told)
    assert told.said == []


def test_closing_does_not_hang_on_a_locked_database(store, path, told):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.put([call("unwritten")])
    told.wait_for("locked")
    assert store.close(timeout=5) == 1
    other.close()


def test_an_event_with_the_id_of_another_does_not_replace_it(store, path):
    store.put([{"id": "same", "type": "mcp_tool_called", "timestamp": "t", "tool_name": "first"}])
    store.put([{"id": "same", "type": "mcp_tool_called", "timestamp": "t", "tool_name": "second"}])
    store.close()
    assert stored(path) == ["first"]


def test_old_events_are_pruned_while_running(path, told, monkeypatch):
    monkeypatch.setattr(writer, "PRUNE_EVERY", 0.01)
    store = Writer(path, Retention(max_age_days=1), told, now_ns=lambda: time.time_ns() + 2 * 86_400 * 10**9)
    store.put([call("old at once")])
    awaited(lambda: store.status().written == 1 and stored(path) == [])
    store.close()


def test_all_that_is_old_goes_at_once_not_a_chunk_each_minute(store, path, told, monkeypatch):
    store.put([call(f"t{n}") for n in range(30)])
    assert store.close() == 0
    monkeypatch.setattr(retention, "CHUNK", 10)
    monkeypatch.setattr(retention, "known_time", lambda _: 0)
    later = Writer(path, Retention(max_age_days=1), told, now_ns=lambda: time.time_ns() + 2 * 86_400 * 10**9)
    awaited(lambda: stored(path) == [])
    later.close()


def test_a_daemon_that_starts_with_its_clock_ahead_keeps_the_trail(path, told, monkeypatch):
    monkeypatch.setattr(writer, "PRUNE_EVERY", 0.01)
    before = Writer(path, Retention(max_age_days=90), told)
    before.put([call("kept")])
    awaited(lambda: before.status().written == 1)
    before.close()
    ahead = Writer(path, Retention(max_age_days=90), told, lambda: time.time_ns() + 400 * 86_400 * 10**9)
    ahead.put([call("later")])
    awaited(lambda: ahead.status().written == 1)
    assert ahead.now() < time.time_ns() + 86_400 * 10**9
    ahead.close()
    assert stored(path) == ["kept", "later"]


def test_a_flood_does_not_outrun_retention(path, told, monkeypatch):
    monkeypatch.setattr(writer, "PRUNE_AFTER", 4_000)
    store = Writer(path, Retention(max_size_mb=2), told)
    size, most = path.stat, 0
    for _ in range(20):  # of which nothing is left to the next look at the clock, a minute later
        store.put([call(f"t{n}") for n in range(2_000)])
        assert awaited(lambda: not store.status().queued)
        most = max(most, size().st_size)
    assert awaited(lambda: size().st_size < 4_000_000)
    store.close()
    assert most < 15_000_000, "40,000 of them take 30 MB"
    newest = queries.page(path, "events", {"limit": 1}).rows
    assert newest[0]["tool_name"] == "t1999" and told.said == []


FILL = """
import subprocess, sys, threading
from pathlib import Path
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.store import queries, writer
mount, told = sys.argv[1], {"full": threading.Event(), "None": threading.Event()}
writer.RETRY_DELAY = 0.05
path = Path(mount) / "events.db"
def on_trouble(error):
    for words, event in told.items():
        if words in str(error):
            event.set()
store = writer.Writer(path, Retention(), on_trouble)
for n in range(2000):
    store.put([{"id": f"{n:04}", "timestamp": "t", "type": "mcp_tool_called", "tool_name": str(n), "input": "x" * 1000}])
assert told["full"].wait(60)
assert store.status().trouble and store.status().lost == 0
subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
assert told["None"].wait(60)
assert store.close(20) == 0
names = [e["tool_name"] for e in queries.page(path, "events", {"limit": 1000}).rows]
assert names == [str(n) for n in range(1000, 2000)], names
print("whole")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk in a namespace of its own")
def test_a_disk_that_is_really_full_loses_nothing_that_fits_the_queue(tmp_path):
    script = 'mount --make-rprivate / && mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
    seen = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", tmp_path, sys.executable, FILL],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert seen.stdout == "whole\n", seen.stderr
