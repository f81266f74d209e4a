"""What is printed is a policy file with its reasons in comments, and nothing that was observed escapes from them."""

import json

import pytest
import yaml

CALLED = {
    "type": "mcp_tool_called",
    "id": "1",
    "action": "allow",
    "server_id": "fs",
    "tool_name": "read\nversion: 2",
}


def answers(path, *events):
    rows = {"calls": [*events], "tools": [], "events": []}
    return {
        "query": lambda args: {"rows": rows[args["kind"]], "next": None},
        "status": {"policy": {"path": str(path) if path else None}},
    }


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "base.yaml"
    path.write_text('version: 1\nsandbox: {mcp: {servers: [{id: fs, type: stdio, command: "${HOME}/fs"}]}}\n')
    return path


def test_it_begins_from_the_daemons_own_file_with_its_references(run, daemon, base):
    fake = daemon(**answers(base, CALLED | {"tool_name": "read"}))
    result = run("policy", "suggest", "--session", "s1")
    assert (f"from {base}" in result.stdout.splitlines()[0], result.stderr) == (True, "")
    assert "# allowed: fs/read, called once" in result.stdout
    mcp = yaml.safe_load(result.stdout)["sandbox"]["mcp"]
    assert mcp["servers"][0]["command"] == "${HOME}/fs"
    asked = [
        args["filters"].get("session")
        for name, args in fake.asked
        if name == "query" and args["kind"] != "tools"
    ]
    assert asked == ["s1"] * 3


def test_a_hostile_name_stays_in_its_comment(run, daemon, base):
    daemon(**answers(base, CALLED))
    result = run("policy", "suggest")
    assert yaml.safe_load(result.stdout)["version"] == 1
    assert "# left out: fs/read<U+000A>version: 2" in result.stdout


def test_without_a_file_it_begins_from_the_clients_servers(run, daemon, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.chdir(tmp_path)
    daemon(**answers(None, CALLED | {"tool_name": "read"}))
    made = json.loads(run("policy", "suggest", "--json").stdout)
    assert made["sandbox"]["mcp"]["allowed_servers"] == [{"id": "fs"}]


def test_a_file_is_written_once_for_its_owner_alone(run, daemon, base, tmp_path):
    daemon(**answers(base, CALLED))
    out = tmp_path / "new.yaml"
    assert run("policy", "suggest", "--base", base, "--out", out).exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert run("policy", "check", out).exit_code == 0
    again = run("policy", "suggest", "--base", base, "--out", out)
    assert (again.exit_code, "File exists" in again.stderr) == (2, True)


def test_who_names_a_session_in_which_nothing_was_called_is_told(run, daemon, base):
    daemon(**answers(base))
    empty = run("policy", "suggest", "--session", "misspelt")
    assert yaml.safe_load(empty.stdout)["sandbox"]["mcp"]["allowed_tools"] == []
    assert "no call was observed that this policy may allow: it denies every tool" in empty.stderr


def test_a_base_that_is_no_policy_is_refused(run, daemon, base, tmp_path):
    daemon(**answers(base))
    (tmp_path / "list.yaml").write_text("[1]")
    assert run("policy", "suggest", "--base", tmp_path / "list.yaml").exit_code == 2
    assert run("policy", "suggest", "--base", tmp_path / "none.yaml").exit_code == 2


def test_it_is_one_object_and_no_list_so_it_takes_no_limit(run):
    told = run("policy", "suggest", "--help").stdout
    assert "The policy as one JSON object." in told
    assert "--limit" not in told
