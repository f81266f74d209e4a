"""A reading command answers the same from a daemon and from its database, follows pages, and never falls back silently."""

import json
import os
from pathlib import Path

import pytest

from agentsh_net import clock
from agentsh_net.core.audit.events import ToolCallIntercepted
from agentsh_net.core.configuration.settings import Store
from agentsh_net.store import queries, records
from agentsh_net.store.connect import open_writer

CALLS = [
    ToolCallIntercepted(
        server_id="s", tool_name=f"t{n}", action="block" if n % 2 else "allow", input={"n": n}
    )
    for n in range(6)
]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "events.db"
    connection = open_writer(path)
    for event in CALLS:
        stamped = event.stamped(id=clock.new_id(), timestamp=clock.now_rfc3339()).to_json()
        connection.execute(records.INSERT_EVENT, records.event_row(stamped))
    connection.close()
    return path


@pytest.fixture
def serving(daemon, database):
    return daemon(query=lambda args: queries.page(database, args["kind"], args["filters"]).to_json())


def names(result):
    assert result.exit_code == 0, result.stderr
    return [row["tool_name"] for row in json.loads(result.stdout)]


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "daemon"])
def test_filters_mean_the_same_with_and_without_a_daemon(run, serving, database, direct):
    where = ["--direct-db", "--db", database] if direct else []
    assert names(run("mcp", "calls", "--json", *where)) == [f"t{n}" for n in range(6)]
    assert names(run("mcp", "calls", "--action", "block", "--json", *where)) == ["t1", "t3", "t5"]
    assert names(run("mcp", "calls", "--limit", 2, "--json", *where)) == ["t4", "t5"]
    assert names(
        run("mcp", "calls", "--since", "10m", "--server", "S", "--tool", "t0", "--json", *where)
    ) == ["t0"]


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "daemon"])
def test_pages_are_followed_to_the_limit(run, serving, database, monkeypatch, direct):
    monkeypatch.setattr(queries, "PAGE_ROWS", 2)
    where = ["--db", database] if direct else []
    assert names(run("mcp", "calls", "--limit", 5, "--json", *where)) == ["t1", "t2", "t3", "t4", "t5"]


@pytest.mark.parametrize("form", [(), ("--json",), ("--jsonl",)])
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "daemon"])
def test_who_gets_the_newest_alone_is_told_so_beside_the_rows(run, serving, database, direct, form):
    where = ["--db", database] if direct else []
    some = run("mcp", "calls", "--limit", 5, *form, *where)
    assert some.stderr == "note: --limit 5 left older ones out\n"
    assert "note" not in some.stdout and "t1" in some.stdout
    for limit in (6, 7, 2000):
        assert run("mcp", "calls", "--limit", limit, *form, *where).stderr == ""


def test_a_daemon_of_an_earlier_version_says_nothing_of_older_ones(run, daemon):
    daemon(query={"rows": [CALLS[0].to_json()], "next": None})
    assert run("mcp", "calls", "--limit", 1).stderr == ""


@pytest.mark.parametrize(
    ("kind", "what"),
    [("calls", "calls"), ("events", "events"), ("detections", "detections"), ("tools", "tools"), ("servers", "servers")],
)  # fmt: skip
def test_a_database_without_an_answer_is_named(run, serving, database, kind, what):
    found = run("mcp", kind, "--server", "nobody", "--db", database)
    assert (found.exit_code, found.stderr) == (0, f"no {what} found in {database}\n")
    if kind != "servers":
        assert run("mcp", kind, "--server", "nobody").stderr == f"no {what} found\n"


def test_without_a_daemon_the_other_way_is_named_and_not_taken(run):
    result = run("mcp", "calls", "--json")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "--direct-db [--db FILE]" in result.stderr


def test_a_database_that_is_not_there_is_a_usage_error(run, tmp_path):
    result = run("mcp", "calls", "--db", tmp_path / "none.db")
    assert result.exit_code == 2
    assert "no database at" in result.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [(("mcp", "calls", "--db"), 3), (("policy", "check"), 2), (("doctor", "--config"), 2)],
)
def test_a_file_that_may_not_be_read_is_told_of_in_our_words(run, tmp_path, monkeypatch, words, code):
    monkeypatch.setattr(os, "access", lambda *_: False)  # as for another user
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "file").touch()
    result = run(*words, closed / "file")
    assert result.exit_code == code
    assert "Usage:" not in result.stderr
    assert str(closed / "file") in result.output


def test_without_a_name_the_configured_default_is_read(run, monkeypatch):
    from agentsh_net.cli import source

    assert str(source._default_database()) == Store().path
    monkeypatch.setattr(source, "_default_database", lambda: Path("/nonexistent/events.db"))
    result = run("mcp", "calls", "--direct-db")
    assert result.exit_code == 2
    assert "/nonexistent/events.db" in result.stderr


@pytest.mark.parametrize(
    "bad", [["--limit", "0"], ["--action", "maybe"], ["--json", "--jsonl"], ["--since", "soon"]]
)
def test_a_bad_option_is_a_usage_error(run, serving, bad):
    assert run("mcp", "calls", *bad).exit_code == 2


def test_a_stores_trouble_is_told_with_its_remedy(run, daemon):
    from agentsh_net.core.errors import StoreError

    daemon(query=StoreError("the disk reports an error", remedy="see dmesg"))
    result = run("mcp", "calls")
    assert result.exit_code == 3
    assert result.stderr == "error: the disk reports an error\n  fix: see dmesg\n"


@pytest.mark.parametrize("command", [("mcp", "calls"), ("llm", "requests"), ("policy", "suggest")])
def test_a_time_that_is_none_is_a_usage_error_whether_a_daemon_answers_or_not(run, command):
    result = run(*command, "--since", "yesterday")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: --since: found 'yesterday'; expected 10m, 2h, 7d or a time like 2025-01-31T12:00:00Z\n"
    )
