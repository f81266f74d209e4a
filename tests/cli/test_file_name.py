"""A file that may not be read is no slip of the command line: it goes on to who opens it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentsh_net.cli.file_name import FILE


def test_a_file_that_may_not_be_read_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.yaml"
    file.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert FILE.convert(str(file), None, None) == file
