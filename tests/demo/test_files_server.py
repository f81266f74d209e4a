"""The server of files reads and deletes what it is told to, in the directory that it runs in."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsh_net.demo import files_server


def test_it_reads_and_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("text")
    assert files_server.read_file("a") == "text"
    assert files_server.delete_file("a") == "a is deleted"
    assert not Path("a").exists()
