"""What changed is shown field by field, and trust is given to the very version that was looked at."""

import json

import pytest

from agentsh_net.control.errors import ControlError
from agentsh_net.core.model import PinState
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.store import queries, records
from agentsh_net.store.connect import open_writer
from agentsh_net.store.records import PinRecord, ToolRecord


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "events.db"
    connection = open_writer(path)
    old = {"name": "t", "description": "reads", "annotations": {"destructiveHint": False}}
    new = {"name": "t", "description": "reads\u200b", "annotations": {"destructiveHint": True}}
    changes = [
        records.save_tools([ToolRecord("s", "t", "sha256:new", new), ToolRecord("s", "same", "sha256:x")], "2025-01-31T12:00:00.0Z"),
        records.save_pins([PinRecord("s", "t", "sha256:old", old, "changed", "2025-01-30T12:00:00.0Z", "root")]),
        records.save_pins([PinRecord("s", "same", "sha256:x", {}, "trusted"), PinRecord("s", "gone", "sha256:g")]),
    ]  # fmt: skip
    for change in changes:
        for sql, rows in change:
            connection.executemany(sql, rows)
    connection.close()
    return path


def test_the_list_shows_state_hashes_and_who_trusted(run, database):
    result = run("mcp", "pins", "list", "--db", database)
    _, _gone, same, changed = result.stdout.splitlines()
    assert same.split()[:5] == ["s", "same", "trusted", "x", "x"]
    assert changed.split() == ["s", "t", "changed", "old", "new", "2025-01-30", "12:00:00", "root"]


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "daemon"])
def test_the_diff_shows_every_field_that_changed_and_nothing_else(run, daemon, database, direct):
    daemon(query=lambda args: queries.page(database, args["kind"], args["filters"]).to_json())
    where = ["--db", database] if direct else []
    rows = json.loads(run("mcp", "pins", "diff", "--json", *where).stdout)
    assert [(r["tool_name"], r["path"], r["old"], r["new"]) for r in rows] == [
        ("t", "$.description", '"reads"', '"reads<U+200B>"'),
        ("t", "$.annotations.destructiveHint", "false", "true"),
    ]
    assert {r["tool_hash"] for r in rows} == {"sha256:new"}


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "daemon"])
def test_no_pin_is_left_out_however_many_there_are_unless_it_is_asked(
    run, daemon, database, monkeypatch, direct
):
    many = [PinRecord("a", f"t{n}", "sha256:x", {}, "trusted") for n in range(150)]  # before the changed one
    connection = open_writer(database)
    for sql, rows in records.save_pins(many):
        connection.executemany(sql, rows)
    connection.close()
    monkeypatch.setattr(queries, "PAGE_ROWS", 40)
    daemon(query=lambda args: queries.page(database, args["kind"], args["filters"]).to_json())
    where = ["--json", *(["--db", database] if direct else [])]
    listed = [row["tool_name"] for row in json.loads(run("mcp", "pins", "list", *where).stdout)]
    assert sorted(listed) == sorted([*(f"t{n}" for n in range(150)), "gone", "same", "t"])
    assert len(json.loads(run("mcp", "pins", "list", "--limit", "50", *where).stdout)) == 50
    (first,) = json.loads(run("mcp", "pins", "diff", "--limit", "1", *where).stdout)
    assert (first["tool_name"], first["path"]) == ("t", "$.description")


def test_a_diff_of_nothing_says_so(run, database):
    assert run("mcp", "pins", "diff", "--tool", "same", "--db", database).stderr == "nothing changed\n"
    nobodys = run("mcp", "pins", "diff", "--server", "nobody", "--db", database)
    assert nobodys.stderr == f"no pins found in {database}\n"


def test_trust_names_the_version_that_was_looked_at(run, daemon):
    fake = daemon(pins__trust=[{"server_id": "s", "tool_name": "t", "tool_hash": "sha256:new"}])
    result = run("mcp", "pins", "trust", "--server", "s", "--tool", "t", "--hash", "sha256:new")
    assert result.stdout.splitlines()[1].split() == ["s", "t", "new"]
    assert fake.asked == [("pins.trust", {"server": "s", "tool": "t", "hash": "sha256:new"})]


def test_trust_of_a_tool_that_something_else_blocks_says_so(run, daemon):
    row = {"server_id": "s", "tool_name": "t", "tool_hash": "sha256:new"}
    daemon(pins__trust=[row | {"blocked": "findings"}, row | {"tool_name": "u", "blocked": ""}])
    result = run("mcp", "pins", "trust", "--server", "s")
    assert result.exit_code == 0
    assert result.stderr == "note: s/t is trusted, and blocked all the same: findings\n"


def test_trust_of_what_is_not_offered_fails_and_names_it(run, daemon):
    daemon(pins__trust=[])
    result = run("mcp", "pins", "trust", "--server", "wether", "--tool", "get")
    assert result.exit_code == 1
    assert "server 'wether' offers no tool 'get'" in result.stderr


def test_trust_of_another_version_is_denied(run, daemon):
    daemon(
        pins__trust=ControlError(
            "s/t is another version now", kind="denied", remedy="see: agentsh-net mcp pins diff"
        )
    )
    result = run("mcp", "pins", "trust", "--server", "s", "--tool", "t", "--hash", "sha256:old")
    assert result.exit_code == 1
    assert "another version" in result.stderr


def test_trust_wants_a_server_and_a_hash_wants_a_tool(run):
    assert run("mcp", "pins", "trust").exit_code == 2
    assert run("mcp", "pins", "trust", "--server", "s", "--hash", "h").exit_code == 2


def test_trust_needs_a_daemon(run):
    assert run("mcp", "pins", "trust", "--server", "s").exit_code == 4


def test_reset_forgets_what_was_named(run, daemon):
    fake = daemon(pins__reset=[{"server_id": "s", "tool_name": "t"}])
    assert json.loads(run("mcp", "pins", "reset", "--server", "s", "--json").stdout) == [
        {"server_id": "s", "tool_name": "t"}
    ]
    assert fake.asked == [("pins.reset", {"server": "s", "tool": None})]


def test_what_a_server_is_itself_is_listed_and_differs_field_by_field(run, database):
    connection = open_writer(database)
    text = {"text": "be kind"}
    told = [
        Identity("s", Aspect.TLS, PinState.TRUSTED, {"certificate": "a"}, {"certificate": "b"}, "2025-01-30"),
        Identity("s", Aspect.INSTRUCTIONS, PinState.CHANGED, text, {"text": "be\u200b kind"}, "2025-01-30"),
    ]
    for sql, rows in records.save_identities(told, by="root"):
        connection.executemany(sql, rows)
    connection.close()
    listed = [
        line.split()[:3]
        for line in run("mcp", "pins", "list", "--server", "s", "--db", database).stdout.splitlines()
    ]
    assert listed[1:3] == [["s", "(instructions)", "changed"], ["s", "(tls)", "trusted"]]
    shown = run("mcp", "pins", "diff", "--db", database).stdout
    assert "(instructions)" in shown and "be<U+200B> kind" in shown
    assert "(tls)" not in shown, "renewed for the same key"


def test_identity_alone_is_trusted_or_forgotten_where_asked(run, daemon):
    row = {"server_id": "s", "tool_name": "", "kind": "tls", "tool_hash": "sha256:abc"}
    fake = daemon(pins__trust=[row], pins__reset=[row])
    assert run("mcp", "pins", "trust", "--server", "s", "--identity").stdout.splitlines()[1].split() == [
        "s",
        "(tls)",
        "abc",
    ]
    run("mcp", "pins", "reset", "--server", "s", "--identity")
    assert [args["identity"] for _, args in fake.asked] == [True, True]
    assert run("mcp", "pins", "trust", "--server", "s", "--identity", "--tool", "t").exit_code == 2
