"""One process holds a lock file, it is named, and nothing that happens to it or to the file leaves a stale lock."""

import fcntl
import os
import subprocess
import sys

import pytest

from agentsh_net import lock_file
from agentsh_net.lock_file import HeldError, beside, holder, take

HOLD = (
    "import os, sys; from pathlib import Path; from agentsh_net.lock_file import take\n"
    "take(Path(sys.argv[1])); print(os.getpid(), flush=True); sys.stdin.read()"
)


@pytest.fixture
def path(tmp_path):
    return beside(tmp_path / "events.db")


@pytest.fixture
def other(path):
    """Another process that holds it."""
    command = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert int(process.stdout.readline()) == process.pid
        yield process
        process.kill()


def test_it_lies_beside_what_it_guards(tmp_path):
    assert beside(tmp_path / "events.db") == tmp_path / "events.db.lock"


def test_who_holds_it_is_named_to_whoever_asks_and_whoever_wants_it(other, path):
    assert holder(path) == other.pid
    with pytest.raises(HeldError) as held:
        take(path)
    assert held.value.pid == other.pid


def test_sigkill_leaves_no_stale_lock(other, path):
    other.kill()
    other.wait()
    assert holder(path) is None
    taken = take(path)
    assert holder(path) == os.getpid()
    taken.release()


def test_nothing_is_left_after_release(path):
    take(path).release()
    assert holder(path) is None
    assert not path.exists()


def test_what_is_abandoned_leaves_the_file_for_the_next(path):
    take(path).abandon()
    assert path.exists()
    take(path).release()


def test_a_removed_file_is_known_and_anothers_is_not_removed_with_ours(path):
    ours = take(path)
    assert ours.stands()
    path.unlink()
    assert not ours.stands()
    theirs = take(path)
    ours.release()
    assert theirs.stands()
    theirs.release()


def test_a_number_of_another_container_is_not_taken_for_a_process_here(path):
    held = take(path)
    # As a container's first process calls itself; here it is somebody else.
    os.pwrite(held.descriptor, b"1", 0)
    os.ftruncate(held.descriptor, 1)
    assert holder(path) == 0
    os.pwrite(held.descriptor, b"x", 0)
    assert holder(path) == 0
    held.release()


def test_a_link_is_not_followed(path, tmp_path):
    (tmp_path / "victim").write_text("precious")
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        take(path)
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_look_at_the_holder_does_not_keep_anybody_from_taking_it(path, monkeypatch):
    looks = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(looks, fcntl.LOCK_SH)
    monkeypatch.setattr(lock_file.time, "sleep", lambda _: os.close(looks))
    take(path).release()
