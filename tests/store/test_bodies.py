"""Bodies are for their owner only, the oldest go by age and by size, and a name can lead nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from few_files import nothing_left_open

from agentsh_net.clock import lowest_id, new_id
from agentsh_net.core.errors import ProtocolError
from agentsh_net.store.bodies import Bodies, folder_beside


@pytest.mark.parametrize("umask", [0, 0o077])
def test_files_and_folder_are_their_owners_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    bodies, record = Bodies(tmp_path / "b"), new_id()
    before = os.umask(umask)
    try:
        with nothing_left_open():
            bodies.append(record, "request", b"one ")
            bodies.append(record, "request", b"two")
            bodies.append(record, "answer", b"")
    finally:
        os.umask(before)
    assert bodies.read(record, "request", 5) == (b"one t", 7)
    assert bodies.read(record, "answer", 5) == (b"", 0)
    assert bodies.shown(record, 100)["request"] == {"text": "one two", "size": 7}
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "b").iterdir()] == [0o600] * 2


def test_the_oldest_go_by_size_whole_records_at_a_time(tmp_path: Path) -> None:
    bodies, ids = Bodies(tmp_path), [new_id() for _ in range(6)]
    for record in ids:
        bodies.append(record, "request", b"x" * 10_000)
        bodies.append(record, "answer", b"x" * 10_000)
    left, gone = bodies.prune("", 50_000)
    assert (left, gone) == (40_000, ids[3])
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == set(ids[4:])


def test_what_is_too_old_goes_and_nothing_else(tmp_path: Path) -> None:
    bodies, old, new = Bodies(tmp_path), lowest_id(10**18), new_id()
    (tmp_path / "notes.txt").write_text("not ours")
    for record in (old, new):
        bodies.append(record, "answer", b"x")
    assert bodies.prune(lowest_id(10**18 + 10**9), 1e9) == (4096, old)
    assert bodies.prune("", 1e9) == (4096, "")
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", f"{new}.answer"}


@pytest.mark.parametrize(
    "record", ["../../etc/passwd", "", "x" * 200, "01a2015f-d469-7479-942e-d21df7ab00a5/../x"]
)
def test_a_name_that_is_none_reads_and_writes_nothing(tmp_path: Path, record: str) -> None:
    with pytest.raises(ProtocolError):
        Bodies(tmp_path).read(record, "request", 10)
    with pytest.raises(ProtocolError):
        Bodies(tmp_path).append(record, "request", b"x")


def test_a_record_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="no record"):
        Bodies(tmp_path).shown(new_id(), 10)
    assert Bodies(tmp_path / "none").prune("", 0) == (0, "")


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    record, target = new_id(), tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / f"{record}.request").symlink_to(target)
    with pytest.raises(OSError, match="symbolic"):
        Bodies(tmp_path).append(record, "request", b"x")
    assert target.read_bytes() == b""


def test_the_folder_is_beside_its_database() -> None:
    assert folder_beside(Path("/var/lib/x/events.db")) == Path("/var/lib/x/events.bodies")
