"""A policy file is one Config or all its problems with their lines; what came from a reference is never shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentsh_net.config.policy_file import MAX_FILE, MAX_SECRET, Loaded, default, load
from agentsh_net.config.watch import stamp_of
from agentsh_net.core.configuration.config import digest
from agentsh_net.core.errors import ConfigError, Problem

POLICY = """\
version: 1
sandbox:
  mcp:
    servers:
      - id: weather
        type: http
        url: https://mcp.example.com/mcp
        headers:
          Authorization: "Bearer ${TOKEN}"
    denied_tools: [{server: weather, tool: "delete_*"}]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def put(policy: Path, text: str, **environ: str) -> Loaded:
    policy.write_text(text)
    return load(policy, environ)


def problems(policy: Path, text: str, **environ: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        put(policy, text, **environ)
    return list(caught.value.problems)


def header(policy: Path, value: str, **environ: str) -> str:
    text = POLICY.replace('"Bearer ${TOKEN}"', value)
    return put(policy, text, **environ).config.sandbox.mcp.servers[0].headers["Authorization"]


def test_a_file_becomes_a_config_with_its_digest_and_version(policy: Path) -> None:
    loaded = put(policy, POLICY, TOKEN="hunter2")
    assert loaded.path == policy
    assert loaded.config.sandbox.mcp.servers[0].headers == {"Authorization": "Bearer hunter2"}
    assert loaded.config.sandbox.mcp.denied_tools[0].path == "sandbox.mcp.denied_tools[0]"
    assert loaded.digest == digest(loaded.mapping)
    assert loaded.read == {policy: stamp_of(policy)}


def test_a_file_that_every_user_may_write_is_told_of(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\n")
    path.chmod(0o664)
    assert load(path, {}).notes == ()
    path.chmod(0o666)
    assert load(path, {}).notes == (f"{path} may be written by every user: chmod o-w {path}",)


def test_a_secret_does_not_show_in_what_was_loaded(policy: Path) -> None:
    assert "hunter2" not in repr(put(policy, POLICY, TOKEN="hunter2"))


def test_another_secret_is_another_digest(policy: Path) -> None:
    assert put(policy, POLICY, TOKEN="a").digest != put(policy, POLICY, TOKEN="b").digest


def test_white_space_order_and_comments_are_not_the_digests_business(policy: Path) -> None:
    first = put(policy, "version: 1\nnetwork: {mode: off, required: false}\n")
    second = put(policy, "# mine\nnetwork:\n    required: false\n    mode: 'off'\nversion: 1\n")
    assert first.digest == second.digest
    assert second.config.network.mode == "off"


def test_problems_of_every_kind_come_at_once_each_with_its_line(policy: Path) -> None:
    text = (
        POLICY + "    fail_closed: maybe\n    fail_closed: true\nproxy:\n  prt: 1\nlog: {level: '${LEVEL}'}\n"
    )
    found = problems(policy, text)
    assert [(p.path, p.line) for p in found] == [
        ("sandbox.mcp.servers[0].headers.Authorization", 9),
        ("sandbox.mcp.fail_closed", 12),
        ("proxy.prt", 14),
        ("log.level", 15),
    ]
    assert str(next(p for p in found if p.path == "proxy.prt")).endswith("expected `port` (line 14)")


def test_a_missing_key_has_the_line_of_what_lacks_it(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\nsandbox:\n  mcp:\n    servers:\n      - {id: a, type: http}\n")
    assert (problem.path, problem.line) == ("sandbox.mcp.servers[0].url", 5)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n"])
def test_an_empty_file_is_no_policy(policy: Path, text: str) -> None:
    (problem,) = problems(policy, text)
    assert problem.found == "an empty file"


def test_a_tag_on_the_whole_text_is_told_as_that(policy: Path) -> None:
    (problem,) = problems(policy, "!!python/object:os.system x\n")
    assert "the tag" in problem.found


@pytest.mark.parametrize(
    ("value", "environ", "expanded"),
    [
        ("${A}", {"A": "x"}, "x"),
        ("'${A}-${B}'", {"A": "x", "B": "y"}, "x-y"),
        ("${A}", {"A": "${B}", "B": "y"}, "${B}"),
        ("$${A}", {}, "${A}"),
        ("'$$${A}'", {}, "$${A}"),
        ("'a$b $'", {}, "a$b $"),
        ("${A}", {"A": "5"}, "5"),
        ("x${A}", {"A": ""}, "x"),
    ],
)
def test_a_reference_is_expanded_once(
    policy: Path, value: str, environ: dict[str, str], expanded: str
) -> None:
    assert header(policy, value, **environ) == expanded


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("${NOPE}", "the variable NOPE, which is not set"),
        ("${}", "the reference '${}'"),
        ("${A B}", "the reference '${A B}'"),
        ("${A:-x}", "the reference '${A:-x}'"),
        ("${file:relative}", "the reference '${file:relative}'"),
        ("'${A'", "a `${` without its `}`"),
        ("'${${A}}'", "a `${` without its `}`"),
        ("${file:/nowhere/at/all}", "no such file or directory: /nowhere/at/all"),
        ("${file:/}", "a directory: /"),
        ("${file:/dev/null}", "no regular file: /dev/null"),
    ],
)
def test_a_reference_that_leads_nowhere_is_one_problem(policy: Path, value: str, found: str) -> None:
    (problem,) = problems(policy, POLICY.replace('"Bearer ${TOKEN}"', value), A="x")
    assert (problem.path, problem.found) == ("sandbox.mcp.servers[0].headers.Authorization", found)
    assert problem.line == 9


@pytest.mark.parametrize(("content", "value"), [("t\n", "t"), ("t", "t"), ("t\r\n", "t"), (" t ", " t ")])
def test_a_secret_file_loses_one_newline_and_is_part_of_what_was_read(
    policy: Path, content: str, value: str
) -> None:
    secret = policy.with_name("token")
    secret.write_bytes(content.encode())
    assert header(policy, f"${{file:{secret}}}") == value
    assert load(policy, {}).read == {policy: stamp_of(policy), secret: stamp_of(secret)}


def test_a_line_break_within_a_secret_is_no_header(policy: Path) -> None:
    secret = policy.with_name("token")
    secret.write_text("a\nhunter2\n")
    (problem,) = problems(policy, POLICY.replace('"Bearer ${TOKEN}"', f"${{file:{secret}}}"))
    assert problem.path == "sandbox.mcp.servers[0].headers.Authorization"
    assert "hunter2" not in str(problem)


def test_a_secret_file_has_a_bound(policy: Path) -> None:
    secret = policy.with_name("token")
    secret.write_text("x" * (MAX_SECRET + 1))
    (problem,) = problems(policy, POLICY.replace('"Bearer ${TOKEN}"', f"${{file:{secret}}}"))
    assert problem.expected == "at most 64 KiB"


def test_a_value_from_a_reference_is_never_shown_wherever_it_stands(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\nlog: {level: '${LEVEL}'}\n", LEVEL="hunter2")
    assert problem.path == "log.level"
    assert problem.found == "a string of 7 characters (from ${LEVEL})"


def test_an_unknown_key_is_named_wherever_its_value_comes_from(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\nlog: {levle: '${LEVEL}'}\n", LEVEL="hunter2")
    assert (problem.found, problem.expected) == ("the unknown key 'levle'", "`level`")


def test_a_value_that_is_written_out_is_shown(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\nlog: {level: inf}\n")
    assert problem.found == "'inf'"


def test_keys_are_not_expanded(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\ndlp: {patterns: {'${A}': true}}\n", A="email")
    assert "${A}" in problem.found


def test_broken_yaml_is_told_with_line_and_column(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\nproxy:\n\tport: 1\n")
    assert str(problem) == "line 3, column 1: found a tab; expected spaces: YAML does not indent by tabs"


def test_an_unquoted_reference_in_braces_is_told_to_be_quoted(policy: Path) -> None:
    (problem,) = problems(policy, "version: 1\nlog: {level: ${LEVEL}}\n")
    assert "quote" in problem.expected


def test_a_file_that_is_not_there_is_a_config_error(policy: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(policy, {})


def test_a_folder_a_pipe_and_a_huge_file_are_config_errors(policy: Path) -> None:
    with pytest.raises(ConfigError, match="found a directory"):
        load(policy.parent, {})
    os.mkfifo(policy.with_name("pipe"))
    with pytest.raises(ConfigError, match="no regular file"):
        load(policy.with_name("pipe"), {})
    with policy.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(ConfigError, match="at most 1024 KiB"):
        load(policy, {})


def test_bytes_that_are_no_text_are_a_config_error(policy: Path) -> None:
    policy.write_bytes(b"version: 1\n# \xff\n")
    with pytest.raises(ConfigError, match="no UTF-8 at byte 13"):
        load(policy, {})


def test_a_byte_order_mark_is_no_part_of_the_policy(policy: Path) -> None:
    policy.write_bytes(b"\xef\xbb\xbfversion: 1\n")
    assert load(policy, {}).config.version == 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".cursor").mkdir(parents=True)
    (tmp_path / "home" / ".cursor" / "mcp.json").write_text('{"mcpServers": {"fs": {"command": "npx"}}}')
    return tmp_path / "home"


def test_without_a_file_the_declared_servers_are_audited_and_nothing_is_blocked(home: Path) -> None:
    loaded = default({}, home, cwd=home)
    mcp = loaded.config.sandbox.mcp
    assert (mcp.enforce_policy, mcp.fail_closed) == (False, False)
    assert [(s.id, s.source) for s in mcp.servers] == [("fs", str(home / ".cursor" / "mcp.json"))]
    assert loaded.path is None
    assert loaded.digest == digest(loaded.mapping)
    assert not loaded.notes


def test_without_any_client_the_default_stands(tmp_path: Path) -> None:
    assert default({}, tmp_path, cwd=tmp_path).config.sandbox.mcp.servers == ()
    assert default({}, tmp_path / "absent", cwd=tmp_path).config.proxy.port == 8484


def test_what_could_not_be_read_is_noted(home: Path) -> None:
    (home / ".claude.json").write_text("{")
    loaded = default({}, home, cwd=home)
    assert len(loaded.config.sandbox.mcp.servers) == 1
    assert loaded.notes == (f"{home}/.claude.json: no valid JSON (line 1 column 2)",)


def test_the_config_folder_of_somebody_else_is_not_taken(home: Path, tmp_path: Path) -> None:
    for folder in (home / "xdg", tmp_path / "other"):
        (folder / "Claude").mkdir(parents=True)
        (folder / "Claude" / "claude_desktop_config.json").write_text(
            '{"mcpServers": {"d": {"command": "x"}}}'
        )
    mine = default({"XDG_CONFIG_HOME": str(home / "xdg")}, home, cwd=home)
    others = default({"XDG_CONFIG_HOME": str(tmp_path / "other")}, home, cwd=home)
    assert [s.id for s in mine.config.sandbox.mcp.servers] == ["d", "fs"]
    assert [s.id for s in others.config.sandbox.mcp.servers] == ["fs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_root_reads_only_what_the_caller_of_sudo_owns(home: Path) -> None:
    os.chown(home / ".cursor" / "mcp.json", 54321, -1)
    assert len(default({}, home, cwd=home, uid=54321).config.sandbox.mcp.servers) == 1
    refused = default({}, home, cwd=home, uid=54322)
    assert not refused.config.sandbox.mcp.servers
    assert len(refused.notes) == 1
