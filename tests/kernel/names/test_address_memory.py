"""Addresses outlive a restart in a file that only we can have written; whatever else lies there teaches nothing."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from ipaddress import ip_address
from pathlib import Path

import pytest

from agentsh_net.kernel.names.address_memory import AddressMemory

KNOWN = {
    "evil.test": (ip_address("203.0.113.1"), ip_address("2001:db8::1")),
    "six.test": (ip_address("2001:db8::2"),),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.addresses.json"


def test_what_was_written_is_read_by_the_next(path: Path) -> None:
    AddressMemory(path).write(KNOWN)
    assert AddressMemory(path).read() == KNOWN
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_without_a_file_nothing_is_known(path: Path) -> None:
    assert AddressMemory(path).read() == {}


def test_what_has_not_changed_is_not_written_again(path: Path) -> None:
    memory = AddressMemory(path)
    memory.write(KNOWN)
    path.unlink()
    memory.write(dict(KNOWN))
    assert not path.exists()


def test_threads_that_write_at_once_do_not_take_each_others_scratch_file(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, replace, both = AddressMemory(path), Path.replace, threading.Barrier(2, timeout=0.3)

    def slow(scratch: Path, target: Path) -> Path:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()
        return replace(scratch, target)

    monkeypatch.setattr(Path, "replace", slow)
    others = [{"a": (ip_address(f"10.9.0.{n}"),)} for n in (1, 2)]
    threads = [threading.Thread(target=memory.write, args=(known,)) for known in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "not kept" not in caplog.text
    assert AddressMemory(path).read() in others


def test_a_file_that_others_may_write_is_not_believed(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    AddressMemory(path).write(KNOWN)
    path.chmod(0o666)
    assert AddressMemory(path).read() == {}
    assert "others may have written it" in caplog.text


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "7", '{"version": 2, "names": {}}', '{"version": 1, "names": 7}', "[" * 5000, " " * (5 << 20)],
    ids=range(8),
)  # fmt: skip
def test_what_is_not_of_this_version_is_not_read_and_that_is_told(
    path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(content)
    path.chmod(0o600)
    assert AddressMemory(path).read() == {}
    assert "is not read" in caplog.text


def test_what_is_no_address_is_left_out_and_too_many_are_cut(path: Path) -> None:
    many = [f"10.{n >> 8}.{n & 255}.1" for n in range(2000)]
    path.write_text(
        json.dumps(
            {
                "version": 1,
                "names": {"a.test": ["nonsense", 7, None, "10.0.0.1"], "b.test": many, "c.test": 7},
            }
        )
    )
    path.chmod(0o600)
    found = AddressMemory(path).read()
    assert found["a.test"] == (ip_address("10.0.0.1"),)
    assert len(found["b.test"]) == 1024


def test_a_folder_that_cannot_be_written_is_told_and_nothing_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    AddressMemory(tmp_path / "missing" / "a.json").write(KNOWN)
    assert "are not kept" in caplog.text


def test_a_link_in_the_place_of_the_scratch_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.with_name(f".{path.name}.{os.getpid()}").symlink_to(victim)
    AddressMemory(path).write(KNOWN)
    assert victim.read_text() == "precious"
