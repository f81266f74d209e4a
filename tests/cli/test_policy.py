"""A file's problems are told one a line, and the reasoning that is printed is the one that would decide."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from agentsh_net.cli.policy import trace
from agentsh_net.core.configuration.config import parse
from agentsh_net.core.model import ToolCall
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins

POLICY = """
version: 1
sandbox:
  mcp:
    enforce_policy: {enforce}
    servers:
      - {{id: weather, type: http, url: "https://mcp.example.com/mcp"}}
    denied_tools: [{{server: weather, tool: "delete_*"}}]
    fail_closed: true
"""


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.format(enforce="true"))
    return path


def test_a_good_file_is_summarised(run, policy):
    result = run("policy", "check", policy)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines()[0] == "ok"
    for part in (
        "enforce, fail_closed",
        "1 declared (weather)",
        "tools:    rules allow 0 and deny 1, others pass",
        "on_change: block",
        "127.0.0.1:8484",
    ):
        assert part in result.stdout


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("allowed_servers: [{id: a}]", "rules allow 1 and deny 0, others pass"),
        ("server_policy: allowlist, allowed_servers: [{id: a}]", "rules allow 1 and deny 0, others are denied"),
        ('allowed_servers: [{id: a}], denied_servers: [{id: "*"}]', "rules allow 1 and deny 1, others are denied"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_server_without_a_rule_is_told(run, tmp_path, rules, told):
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\nsandbox: {{mcp: {{{rules}}}}}\nnetwork: {{mode: off}}\n")
    lines = run("policy", "check", path).stdout.splitlines()
    assert f"servers:  0 declared (none); {told}" in lines
    assert "network:  off" in lines


def test_every_problem_is_a_line_with_file_path_found_and_expected(run, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nproxy: {port: many, modus: x}\nnetwork: {mode: hard}\n")
    result = run("policy", "check", path)
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert result.stderr == ""  # they are what was asked for
    for line, key in zip(sorted(lines), ("network.mode", "proxy.modus", "proxy.port"), strict=True):
        assert line.startswith(f"{path}: ") and key in line
        assert "found" in line and "expected" in line


def test_editors_and_pipelines_get_problems_with_their_lines(run, policy, tmp_path):
    policy.chmod(0o666)
    good = json.loads(run("policy", "check", policy, "--json").stdout)
    assert (good["ok"], good["problems"], len(good["digest"])) == (True, [], 64)
    assert [note.partition(": ")[0] for note in good["notes"]] == [f"{policy} may be written by every user"]
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nproxy:\n  port: many\nnetwork: {mode: hard}\n")
    result = run("policy", "check", path, "--json")
    assert result.exit_code == 2
    bad = json.loads(result.stdout)
    assert (bad["file"], bad["ok"], bad["digest"], bad["notes"]) == (str(path), False, "", [])
    assert [(p["line"], p["path"]) for p in bad["problems"]] == [(3, "proxy.port"), (4, "network.mode")]
    assert all(p["found"] and p["expected"] for p in bad["problems"])


@pytest.mark.parametrize("file", ["-", "/dev/stdin"])
@pytest.mark.parametrize(("text", "code", "told"), [("version: 1\n", 0, "ok\n"), ("a: 1\n", 2, ": a: found")])
def test_a_policy_may_come_through_a_pipe(file, text, code, told):
    asked = [sys.executable, "-m", "agentsh_net", "policy", "check", file]
    seen = subprocess.run(asked, input=text, capture_output=True, text=True)
    assert (seen.returncode, seen.stderr) == (code, "")
    assert told in seen.stdout


def test_a_file_that_is_not_there_is_a_problem_like_another(run, tmp_path):
    result = run("policy", "check", tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert result.output.count("none.yaml") == 1
    result = run("policy", "check", tmp_path)
    assert result.exit_code == 2
    assert result.output == f"{tmp_path}: found a directory; expected a file that can be read\n"


def test_an_ipv6_address_to_listen_on_is_told_as_one_dials_it(run, policy):
    policy.write_text("version: 1\nproxy: {listen: '::1'}\n")
    assert " at [::1]:8484 " in run("policy", "check", policy).stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--server", "weather", "--tool", "get"], 0, "no rule denies"),
        (["--server", "weather", "--tool", "delete_all"], 1, "denied by"),
        (["--tool", "mcp__weather__delete_all"], 1, "denied by"),
        (["--tool", "nothing_known"], 1, "fail_closed"),
    ],
)
def test_a_file_explains_a_call_without_a_daemon(run, policy, args, code, words):
    result = run("policy", "explain", "--config", policy, *args)
    assert result.exit_code == code, result.output
    assert words in result.stdout
    assert result.stdout.splitlines()[-1].startswith("VERDICT      " + ("block" if code else "allow"))


@pytest.mark.parametrize(("server", "told"), [("wether", True), ("Weather", False)])
def test_a_server_that_the_file_does_not_declare_is_told_of(run, policy, server, told):
    result = run("policy", "explain", "--config", policy, "--server", server, "--tool", "delete_all")
    assert result.stderr == (f"note: {policy} declares no server '{server}'\n" if told else "")
    assert result.exit_code == (0 if told else 1)


def test_a_tool_that_the_gateway_leaves_out_is_told_of(run, policy):
    policy.write_text(
        POLICY.format(enforce="true") + "gateway: {servers: {weather: {allow_tools: [get_city]}}}\n"
    )
    result = run("policy", "explain", "--config", policy, "--server", "weather", "--tool", "get")
    *_, told, verdict = result.stdout.splitlines()
    assert told.startswith(
        "gateway      alert  the gateway does not offer tool weather/get: calls through it are blocked"
    )
    assert told.endswith("[gateway.servers.weather.allow_tools]")
    assert verdict.startswith("VERDICT      allow")


def test_audit_mode_is_said_and_still_fails_the_check(run, policy):
    policy.write_text(POLICY.format(enforce="false"))
    result = run("policy", "explain", "--config", policy, "--server", "weather", "--tool", "delete_all")
    assert result.exit_code == 1
    assert "audit mode" in result.stdout.splitlines()[-1]


@pytest.fixture
def explained():
    config = parse({"version": 1, "sandbox": {"mcp": {"denied_tools": [{"tool": "rm"}]}}})
    snapshot = Snapshot(1, "", config, Registry(), Pins())
    return lambda args: asdict(
        snapshot.explain(ToolCall(args["tool"], server_name=args["server"] or "", input=args["args"]))
    )


def test_the_daemon_explains_what_it_would_decide(run, daemon, explained):
    fake = daemon(explain=explained)
    result = run("policy", "explain", "--server", "any", "--tool", "rm", "--args", '{"path": "/"}')
    assert result.exit_code == 1
    assert "VERDICT      block" in result.stdout
    assert fake.asked == [("explain", {"tool": "rm", "server": "any", "args": {"path": "/"}})]


def test_json_is_the_same_reasoning(run, daemon, explained):
    daemon(explain=explained)
    told = json.loads(run("policy", "explain", "--server", "any", "--tool", "rm", "--json").stdout)
    assert told["verdict"]["action"] == "block"
    assert told["steps"][-1]["step"] == "verdict"


def test_arguments_that_are_no_json_are_a_usage_error(run):
    result = run("policy", "explain", "--tool", "x", "--args", "{no")
    assert result.exit_code == 2
    assert "--args is not JSON" in result.stderr


def test_without_a_daemon_and_without_a_file_there_is_nobody_to_ask(run):
    result = run("policy", "explain", "--tool", "x")
    assert result.exit_code == 4
    assert "--config FILE" in result.stderr


def test_a_step_shows_nothing_raw():
    step = {"step": "name", "outcome": "pass", "reason": "evil\x1b[2J", "rule": "r"}
    assert trace({"steps": [step], "verdict": {"action": "allow"}}) == [
        "name         pass   evil<U+001B>[2J  [r]"
    ]


def test_arguments_are_judged_and_the_steps_say_why(run, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(
        "version: 1\nsandbox:\n  mcp:\n    servers: [{id: fs, type: stdio, command: fs}]\n"
        "    denied_tools:\n      - {server: fs, tool: write, args: {path: {glob: /etc/*}}}\n"
    )
    asking = ("policy", "explain", "--config", path, "--server", "fs", "--tool", "write", "--args")
    refused = run(*asking, '{"path": "/tmp/../etc/x"}')
    assert refused.exit_code == 1
    assert "its argument $.path matches the glob '/etc/*'" in refused.stdout
    assert run(*asking, '{"path": "/srv/x"}').exit_code == 0


def test_a_good_file_with_a_slip_is_told_of_it(run, policy):
    policy.write_text(
        policy.read_text()
        + '    denied_servers: [{id: wether}]\ngateway: {port: 9}\nmetrics: {listen: "::1"}\n'
    )
    result = run("policy", "check", policy)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines()[-3:] == [
        "gateway:  at 127.0.0.1:9",
        "metrics:  at [::1]:9484",
        "note: sandbox.mcp.denied_servers[0] is about server 'wether', which is not declared (did you mean 'weather'?)",
    ]
