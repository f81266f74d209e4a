"""`agentsh-net demo` stops every attack that works without it, says by which event, and says what is missing where it cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agentsh_net.cli import demo
from agentsh_net.cli.main import cli
from agentsh_net.demo import box

LAYERS = ["LLM proxy", "LLM proxy", "LLM proxy", "gateway", "LLM proxy", "gateway", "shim", "eBPF", "eBPF"]
ROW = {
    "number": 1, "name": "n", "title": "theft", "tried": "a theft", "without": "mail got the key", "with": "stopped", "layer": "shim",
    "event_type": "mcp_tool_called", "event_id": "e1", "reason": "it is denied", "honest": 2, "as_expected": True,
}  # fmt: skip


def machine() -> list[str]:
    """What the demonstration must leave as it is: cgroups and network devices."""
    mount = box.cgroup_mount()
    groups = [] if mount is None else [str(p) for p in mount.glob("agentsh-net-demo-*")]
    return [*sorted(os.listdir("/sys/class/net")), *groups]


@pytest.mark.kernel
def test_every_attack_works_without_enforcement_and_is_stopped_with_it_by_its_layer(tmp_path: Path) -> None:
    before = machine()
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "agentsh_net", "demo", "--json", "--keep", str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, umask=0o077)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert [row["name"] for row in told["scenarios"] if not row["as_expected"]] == [], done.stdout
    assert done.returncode == 0
    assert told["as_expected"] == 9
    assert [row["layer"] for row in told["scenarios"]] == LAYERS
    events = on_record(kept)
    for row in told["scenarios"]:
        event = events[row["event_id"]]
        assert (event["type"], event["action"]) == (row["event_type"], "block")
    assert machine() == before


def on_record(kept: Path) -> dict[str, dict[str, Any]]:
    """Return the kept audit trail, as the command that the demonstration names reads it."""
    words = ["mcp", "events", "--direct-db", "--db", str(kept / "events.db"), "--limit", "1000", "--json"]
    return {event["id"]: event for event in json.loads(CliRunner().invoke(cli, words).stdout)}


def played(monkeypatch: pytest.MonkeyPatch, *rows: dict[str, Any]) -> None:
    monkeypatch.setattr(demo, "_require", lambda: None)
    monkeypatch.setattr(demo, "_played", lambda _: iter(rows))


def test_rows_are_a_table_with_reasons_and_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, {"say": "starting"}, {"seconds": 1.5}, {"outcome": ROW})
    done = CliRunner().invoke(cli, ["demo"])
    assert done.exit_code == 0
    assert "starting" in done.stderr
    assert "mail got the key" in done.stdout
    assert "1  mcp_tool_called e1\n   it is denied\n" in done.stdout
    assert (
        "1 of 1 attacks worked without enforcement and were stopped with it, in 1.5 s; 2 honest calls"
        in done.stdout
    )


@pytest.mark.parametrize(
    "rows", [[{"outcome": ROW | {"as_expected": False}}], []], ids=["one failed", "none"]
)
def test_anything_less_than_all_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, rows: list[Any]) -> None:
    played(monkeypatch, *rows)
    assert CliRunner().invoke(cli, ["demo", "--json"]).exit_code == 1


def test_what_the_play_lacks_is_exit_code_3_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, {"error": "no namespaces here", "code": 3, "remedy": "run it elsewhere"})
    done = CliRunner().invoke(cli, ["demo"])
    assert done.exit_code == 3
    assert "fix: run it elsewhere" in done.stderr


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.os, "geteuid", lambda: 1000)
    done = CliRunner().invoke(cli, ["demo"])
    assert (done.exit_code, "sudo agentsh-net demo" in done.stderr) == (3, True)


def test_without_the_sdks_it_names_them_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.os, "geteuid", lambda: 0)
    monkeypatch.setattr(demo, "_importable", lambda name: name == "anthropic")
    done = CliRunner().invoke(cli, ["demo"])
    assert done.exit_code == 3
    assert 'pip install "agentsh-net[demo]"' in done.stderr
    assert "mcp" in done.stderr


def test_what_is_kept_is_named_with_the_commands_that_read_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played(monkeypatch, {"outcome": ROW})
    done = CliRunner().invoke(cli, ["demo", "--keep", str(tmp_path / "kept")])
    assert f"mcp calls --show e1 --direct-db --db {tmp_path}/kept/events.db" in done.stdout
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_exists_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played(monkeypatch)
    done = CliRunner().invoke(cli, ["demo", "--keep", str(tmp_path)])
    assert (done.exit_code, "name a new directory" in done.stderr) == (2, True)
