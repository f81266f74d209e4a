"""Opening makes a private file, refuses what is not our database without touching it, and says what mends it."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from few_files import no_file_left

from agentsh_net.core.errors import StoreError
from agentsh_net.store import connect, schema


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "lib" / "events.db"
    connect.open_writer(path).close()
    return path


def test_file_and_directory_are_closed_to_others(made):
    assert made.stat().st_mode & 0o777 == 0o640
    assert made.parent.stat().st_mode & 0o777 == 0o750


def test_the_log_files_are_as_closed_as_the_database(made):
    writer = connect.open_writer(made)
    writer.execute("INSERT INTO meta VALUES ('k', 'v')")
    assert made.with_name("events.db-wal").stat().st_mode & 0o777 == 0o640
    writer.close()


def test_a_writer_uses_wal_full_sync_and_incremental_vacuum_and_keeps_what_is_temporary_in_memory(made):
    writer = connect.open_writer(made)
    names = ("journal_mode", "synchronous", "auto_vacuum", "temp_store")
    settings = [writer.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    assert settings == ["wal", 2, 2, 2]
    writer.close()


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "events.db"
    path.write_bytes(b"not a database\n" * 500)
    with pytest.raises(StoreError, match="not an SQLite database") as refused:
        connect.open_writer(path)
    assert "mv" in refused.value.remedy
    assert path.read_bytes() == b"not a database\n" * 500


def a_directory(path):
    path.mkdir()


def a_loop(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (a_directory, "is a directory"),
        (os.mkfifo, "is no regular file"),
        (a_loop, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_is_told_as_that_and_waited_for_by_nobody(tmp_path, make, told):
    path = tmp_path / "events.db"
    make(path)
    with pytest.raises(StoreError, match=told), connect.reader(path):
        pytest.fail("it was opened")
    lock = connect.hold(path)
    with pytest.raises(StoreError, match=told):
        connect.open_writer(path)
    lock.release()


def test_a_corrupt_database_is_refused_and_kept(made):
    data = bytearray(made.read_bytes())
    data[100:3000] = b"\xff" * 2900
    made.write_bytes(data)
    with pytest.raises(StoreError, match="corrupt") as refused:
        connect.open_writer(made)
    assert f"mv {made} {made}.corrupt" in refused.value.remedy
    assert made.read_bytes() == data


def test_a_newer_database_is_refused_and_kept(made):
    with sqlite3.connect(made) as other:
        other.execute(f"PRAGMA user_version={schema.VERSION + 7}")
    other.close()
    before = made.read_bytes()
    with pytest.raises(StoreError, match="newer"):
        connect.open_writer(made)
    assert made.read_bytes() == before


def test_another_programs_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        connect.open_writer(path)
    assert path.read_bytes() == before


def test_a_directory_that_cannot_be_made_is_a_store_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot make") as refused:
        connect.open_writer(tmp_path / "file" / "events.db")
    assert "store.path" in refused.value.remedy


def test_reading_what_does_not_exist_makes_nothing(tmp_path):
    with pytest.raises(StoreError, match="no database"), connect.reader(tmp_path / "none.db"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_reader_cannot_write(made):
    with pytest.raises(StoreError, match="may not be written"), connect.reader(made) as reader:
        reader.execute("DELETE FROM meta")


def test_a_reader_sees_what_a_running_writer_committed(made):
    writer = connect.open_writer(made)
    writer.execute("INSERT INTO meta VALUES ('k', 'v')")
    with connect.reader(made) as reader:
        assert reader.execute("SELECT value FROM meta").fetchone()["value"] == "v"
    writer.close()


def test_an_empty_file_is_not_taken_for_an_old_database(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(StoreError, match="is empty") as refused, connect.reader(path):
        pass
    assert "start the daemon" in refused.value.remedy


def test_what_waits_in_the_log_counts_among_the_bytes_on_the_disk(tmp_path):
    path = tmp_path / "events.db"
    assert connect.disk_bytes(path) == 0
    writer = connect.open_writer(path)
    assert connect.disk_bytes(path) == path.stat().st_size + connect.log_of(path).stat().st_size
    assert connect.log_of(path).stat().st_size > path.stat().st_size, "nothing was checkpointed yet"
    writer.close()


def test_a_reader_refuses_an_older_schema_with_advice(made):
    with sqlite3.connect(made) as other:
        other.execute("PRAGMA user_version=1")
    other.close()
    with pytest.raises(StoreError, match="older schema") as refused, connect.reader(made):
        pass
    assert "start the daemon" in refused.value.remedy


READ = (
    "import os, sys; from pathlib import Path; os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(65534);"
    "from agentsh_net.store.connect import reader\n"
    "with reader(Path(sys.argv[1])) as r: print(r.execute('SELECT value FROM meta').fetchone()['value'])"
)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to become a member of a group without other rights"
)
@pytest.mark.parametrize("running", [True, False], ids=["beside a writer", "after it"])
def test_a_member_of_the_group_reads_without_the_right_to_write(made, running):
    os.chown(made, 0, 4321)
    os.chown(made.parent, 0, 4321)
    for parent in list(made.parent.parents)[:-2]:  # pytest's directories are closed to others
        parent.chmod(0o711)
    writer = connect.open_writer(made)
    writer.execute("INSERT INTO meta VALUES ('k', 'v')")
    if not running:
        writer.close()
    seen = subprocess.run([sys.executable, "-c", READ, made, "4321"], capture_output=True, text=True)
    writer.close()
    assert (seen.stdout, seen.stderr) == ("v\n", "")


def test_an_error_without_a_code_keeps_its_words(tmp_path):
    error = connect.store_error(sqlite3.ProgrammingError("odd {thing}"), tmp_path / "x")
    assert "odd (thing)" in str(error)


@pytest.mark.parametrize("folder", [True, False])
def test_a_database_that_may_not_be_read_is_told_with_the_remedy(tmp_path, monkeypatch, folder):
    def forbidden(self, **_):
        raise PermissionError(13, "Permission denied", str(self))

    (tmp_path / "e.db").touch()
    if folder:
        monkeypatch.setattr(Path, "stat", forbidden)
    else:
        monkeypatch.setattr(os, "access", lambda *_: False)
    with (
        pytest.raises(StoreError, match="may not be read") as refused,
        connect.reader(tmp_path / "e.db"),
    ):
        pytest.fail("it was opened")
    assert "use sudo" in refused.value.remedy


def test_a_directory_is_no_place_to_write_into_either(tmp_path):
    with pytest.raises(StoreError, match="is a directory") as refused:
        connect.open_writer(tmp_path)
    assert "store.path" in refused.value.remedy


def test_where_no_file_descriptor_is_left_the_database_is_not_blamed(made):
    with no_file_left():
        for opened in (connect.open_writer, connect.hold, lambda path: connect.reader(path).__enter__()):
            with pytest.raises(
                StoreError, match=r"(?i)events\.db cannot be opened: too many open files"
            ) as refused:
                opened(made)
            assert "LimitNOFILE=" in refused.value.remedy
            assert not isinstance(refused.value.__cause__, OSError)  # which would be a wrong place: exit 2
    with pytest.raises(StoreError) as elsewhere:
        connect.open_writer(Path("/proc/events.db"))
    assert "LimitNOFILE=" not in elsewhere.value.remedy


@pytest.mark.parametrize("left", range(3))
def test_with_fewer_descriptors_than_sqlite_opens_the_database_is_not_blamed_either(made, left):
    with no_file_left(left), pytest.raises(StoreError, match=r"(?i)too many open files") as refused:
        connect.open_writer(made)
    assert "LimitNOFILE=" in refused.value.remedy
