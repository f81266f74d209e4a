"""Under Landlock a process reads what it was given and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from agentsh_proxy import landlock

SCRIPT = """
import ctypes, os, socket, sys
from agentsh_proxy.landlock import opened, restrict_to_reading
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
with opened([sys.argv[1], "/does/not/exist"]) as readable:
    version = restrict_to_reading(readable)
def attempt(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0
allowed, other = sys.argv[1] + "/a", sys.argv[2] + "/b"
listener = socket.socket()
print(version, attempt(lambda: open(allowed)), attempt(lambda: open(other)), attempt(lambda: open(allowed, "w")),
      attempt(lambda: os.mkdir(sys.argv[1] + "/d")), attempt(lambda: listener.bind(("127.0.0.1", 0))))
"""


@pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")
def test_only_the_named_folders_can_be_read_and_nothing_written(tmp_path):
    for folder, name in (("in", "a"), ("out", "b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("x")
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "in", tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert int(said[0]) == landlock.abi()
    assert said[1:5] == ["0", "13", "13", "13"]
    if landlock.abi() >= 4:
        assert said[5] == "13"


def test_a_kernel_without_it_is_told_apart(monkeypatch):
    monkeypatch.setattr(landlock, "_syscall", lambda *_: -1)
    assert landlock.abi() == 0
    with landlock.opened(["/"]) as readable:
        assert readable == []
        assert landlock.restrict_to_reading(readable) == 0
