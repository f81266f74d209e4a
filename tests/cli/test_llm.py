"""`llm requests` lists what was asked of providers and shows one of them, safely, with a daemon and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agentsh_net.cli.main import cli
from agentsh_net.clock import new_id
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.store import records
from agentsh_net.store.bodies import Bodies, folder_beside
from agentsh_net.store.writer import Writer

WORDS: dict[str, Any] = {
    "provider": "anthropic",
    "model": "m",
    "status": 200,
    "input_tokens": 3,
    "session_id": "s1",
    "outcome": "answered",
}


@pytest.fixture
def database(tmp_path: Path) -> tuple[Path, str]:
    path, record = tmp_path / "events.db", new_id()
    writer = Writer(path, Retention(), lambda _: None)
    row = records.request_row(
        record, {**WORDS, "started": "2025-01-01T00:00:00.000000Z"}, "later", 10, 20, truncated=True
    )
    writer.change([(records.INSERT_REQUEST, [row])]).result(10)
    writer.close()
    Bodies(folder_beside(path)).append(record, "request", b"POST / HTTP/1.1\r\n\r\n\x1b[31mred")
    return path, record


def ran(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["llm", "requests", *arguments])


def test_the_list_has_the_facts(database: tuple[Path, str]) -> None:
    path, record = database
    (row,) = json.loads(ran("--db", str(path), "--json").output)
    assert (row["id"], row["model"], row["input_tokens"], row["output_tokens"]) == (record, "m", 3, None)
    assert record in ran("--db", str(path)).output
    assert "10/20 (cut)" in ran("--db", str(path)).output
    assert json.loads(ran("--db", str(path), "--json", "--session", "other").output) == []


def test_one_is_shown_and_cannot_write_to_the_terminal(database: tuple[Path, str]) -> None:
    path, record = database
    output = ran("--db", str(path), "--show", record).output
    assert "POST / HTTP/1.1" in output
    assert "\x1b" not in output
    shown = json.loads(ran("--db", str(path), "--show", record, "--json").output)
    assert shown["request"]["size"] == 27


def test_one_that_is_not_there_is_told(database: tuple[Path, str]) -> None:
    result = ran("--db", str(database[0]), "--show", new_id())
    assert (result.exit_code, "no record" in result.output) == (2, True)
