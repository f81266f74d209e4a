"""A new session comes as variables that a shell can take without harm."""

import json
import subprocess

import pytest

SESSION = {
    "session_id": "s1",
    "token": "abc",
    "env": {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8484/s/abc/anthropic",
        "OPENAI_BASE_URL": "x'; touch /tmp/owned; '",
    },
}


def test_a_shell_takes_the_variables_as_they_are(run, daemon):
    fake = daemon(session__new=SESSION)
    script = run("session", "new", "--id", "s1").stdout
    seen = subprocess.run(
        ["sh", "-c", f'{script}\nprintf %s "$OPENAI_BASE_URL"'], capture_output=True, text=True
    )
    assert seen.stdout == SESSION["env"]["OPENAI_BASE_URL"]
    assert fake.asked == [("session.new", {"session_id": "s1"})]


def test_json_is_the_whole_session(run, daemon):
    daemon(session__new=SESSION)
    assert json.loads(run("session", "new", "--json").stdout) == SESSION


@pytest.mark.parametrize("name", ["A=1; touch /tmp/owned #", "", "1A", "A\nB"])
def test_a_name_that_is_no_variable_is_refused(run, daemon, name):
    daemon(session__new={**SESSION, "env": {name: "v"}})
    result = run("session", "new")
    assert result.exit_code == 1
    assert "export" not in result.stdout


def test_without_a_proxy_there_is_nothing_to_export_and_it_is_said(run, daemon):
    daemon(session__new={**SESSION, "env": {}})
    result = run("session", "new")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "proxy is off" in result.stderr


def test_without_a_daemon_there_is_no_session(run):
    assert run("session", "new").exit_code == 4


def test_sessions_are_listed_without_their_tokens(run, daemon):
    daemon(session__list=[{"session_id": "s1", "running": True}, {"session_id": "s2", "running": False}])
    assert run("session", "list").stdout.split() == ["SESSION", "AGENT", "s1", "runs", "s2", "-"]


@pytest.mark.parametrize(
    ("env", "seen"),
    [
        ({"AGENTSH_NET_SESSION": "t"}, "under the shim\n"),
        ({"AGENTSH_NET_SESSION": "t", "AGENTSH_NET_MCP_URL": "u"}, "under the shim or behind the gateway\n"),
    ],
)
def test_without_a_proxy_it_says_what_is_still_seen(run, daemon, env, seen):
    daemon(session__new={**SESSION, "env": env})
    assert run("session", "new").stderr.endswith(seen)


def test_a_session_is_ended_by_its_name(run, daemon):
    fake = daemon(session__end={"session_id": "s1"})
    assert run("session", "end", "s1").stdout == "session s1 has ended: its token is void\n"
    assert fake.asked == [("session.end", {"session_id": "s1"})]
