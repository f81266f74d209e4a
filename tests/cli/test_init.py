"""`init` shows what it found and from where, writes a policy that `policy check` takes, and puts servers under the shim and back."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
from agentsh_proxy.mcp_client import login
from click.testing import CliRunner

from agentsh_net.cli.main import cli
from agentsh_net.config import policy_file
from agentsh_net.mcp_clients import declarations

CURSOR = '{ // mine\n "mcpServers": {"fs": {"command": "npx", "args": ["a"]}, "web": {"url": "https://x.example/mcp"}}}\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".cursor").mkdir(parents=True)
    work.mkdir()
    (home / ".cursor/mcp.json").write_text(CURSOR)
    monkeypatch.setenv("HOME", str(home))
    for name in ("SUDO_USER", "XDG_CONFIG_HOME", "AGENTSH_NET_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(work)
    monkeypatch.setattr(login, "logins", nobody_asked)
    return home


async def nobody_asked(servers):
    """No packet leaves the machine for a test."""
    return frozenset(s.id for s in servers if s.id.startswith("oauth"))


def init(*words, before=()):
    return CliRunner().invoke(cli, [*before, "init", *words], prog_name="agentsh-net")


def cursor(home):
    return (home / ".cursor/mcp.json").read_text()


def test_what_was_found_is_shown_with_its_file(home):
    result = init()
    assert result.exit_code == 0
    for word in ("fs", "stdio", "web", "http", "cursor", str(home / ".cursor/mcp.json")):
        assert word in result.stdout


def test_the_policy_is_one_that_check_takes_and_audits(home):
    init()
    file = Path("agentsh-net.yaml")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    checked = CliRunner().invoke(cli, ["policy", "check", str(file)])
    assert checked.exit_code == 0
    assert "audit" in checked.stdout and "2 declared (fs, web)" in checked.stdout


def test_nothing_is_overwritten_without_force(home):
    Path("agentsh-net.yaml").write_text("mine")
    result = init()
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert Path("agentsh-net.yaml").read_text() == "mine"
    assert init("--force").exit_code == 0
    assert "version: 1" in Path("agentsh-net.yaml").read_text()
    assert init("--out", "other.yaml").exit_code == 0
    assert not list(Path().glob(".*"))


def test_a_place_that_cannot_be_written_is_told(home):
    result = init("--out", "no/such/folder.yaml")
    assert result.exit_code == 3
    assert "cannot write" in result.stderr
    Path("folder").mkdir()
    for words in ((), ("--force",)):
        result = init("--out", "folder", *words)
        assert (result.exit_code, "folder is a directory" in result.stderr) == (2, True)


def test_without_any_server_there_is_a_policy(home):
    (home / ".cursor/mcp.json").unlink()
    result = init()
    assert result.exit_code == 0
    assert "no MCP servers found" in result.stderr


def test_a_file_that_cannot_be_used_is_told(home):
    (home / ".cursor/mcp.json").write_text("{nonsense")
    result = init()
    assert result.exit_code == 0
    assert "left out: " in result.stderr and "no valid JSON" in result.stderr


@pytest.mark.parametrize("both", [("--install", "--uninstall"), ("--uninstall", "--install")])
def test_to_install_and_to_uninstall_exclude_each_other(home, both):
    result = init(*both)
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr
    assert cursor(home) == CURSOR


def test_what_install_adds_uninstall_takes_away(home):
    installed = init("--install")
    assert installed.exit_code == 0
    assert "behind policy: fs, web" in installed.stdout
    entry = cursor(home)
    assert '"url": "http://127.0.0.1:8485/mcp/web#agentsh-net:https://x.example/mcp"' in entry
    assert "// mine" in entry
    assert '"shim", "--server", "fs", "--", "npx", "a"' in entry
    again = init("--install")
    assert again.exit_code == 0
    assert "nothing to do" in again.stdout
    assert cursor(home) == entry
    removed = init("--uninstall")
    assert removed.exit_code == 0
    assert "no longer behind policy: fs, web" in removed.stdout
    assert cursor(home) == CURSOR
    assert [p.name for p in (home / ".cursor").iterdir()] == ["mcp.json"]
    assert "no server" in init("--uninstall").stdout


def test_the_policy_of_installed_servers_is_that_of_the_servers(home):
    init("--out", "before.yaml")
    init("--install")
    init("--out", "after.yaml")
    assert Path("before.yaml").read_text() == Path("after.yaml").read_text()


def test_install_keeps_a_policy_that_is_there_and_sends_no_client_where_nobody_listens(home):
    Path("agentsh-net.yaml").write_text("mine")
    installed = init("--install")
    assert installed.exit_code == 0
    assert Path("agentsh-net.yaml").read_text() == "mine"
    assert "left as it is: web is a network server (cursor): gateway.enabled is not set" in installed.stderr
    assert '"url": "https://x.example/mcp"' in cursor(home)


def test_the_policy_of_an_installation_has_the_gateway_where_clients_are_sent(home):
    init("--install", "--gateway", "http://127.0.0.1:9000")
    config = policy_file.load(Path("agentsh-net.yaml"), {}).config
    assert (config.gateway.enabled, config.gateway.port) == (True, 9000)
    assert config.gateway.servers["web"].passthrough
    assert "http://127.0.0.1:9000/mcp/web#" in cursor(home)
    assert init("--install", "--force", "--gateway", "nonsense").exit_code == 2


def test_servers_of_http_sse_go_through_the_gateway_in_the_clients_own_words(home):
    cline = home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    files = {
        home / ".cursor/mcp.json": '{"mcpServers": {"a": {"url": "https://a.example/sse"}}}',
        home / ".claude.json": '{"mcpServers": {"b": {"type": "sse", "url": "https://b.example/events"}}}',
        home
        / ".config/Code/User/mcp.json": '{"servers": {"c": {"type": "sse", "url": "https://c.example/sse"}}}',
        home / ".gemini/settings.json": '{"mcpServers": {"d": {"url": "https://d.example/sse"}}}',
        home
        / ".config/opencode/opencode.json": '{"mcp": {"e": {"type": "remote", "url": "https://e.example/sse"}}}',
        cline: '{"mcpServers": {"f": {"url": "https://f.example/sse", "disabled": false}}}',
        home / ".codex/config.toml": "[mcp_servers.g]\nurl = 'https://g.example/sse'\n",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    installed = init("--install")
    assert installed.exit_code == 0 and "left as it is" not in installed.stderr
    entries = {
        name: entry
        for file in files
        if file.suffix == ".json"
        for name, entry in next(iter(json.loads(file.read_text()).values())).items()
    } | tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]
    went = {name: next(key for key in ("url", "httpUrl") if key in entry) for name, entry in entries.items()}
    assert all(
        e[went[n]].startswith(f"http://127.0.0.1:8485/mcp/{n}#agentsh-net") for n, e in entries.items()
    )
    assert went == {"a": "url", "b": "url", "c": "url", "d": "httpUrl", "e": "url", "f": "url", "g": "url"}
    types = {name: entry.get("type") for name, entry in entries.items()}
    assert types == {
        "a": None, "b": "http", "c": "http", "d": None, "e": "remote", "f": "streamableHttp", "g": None,
    }  # fmt: skip
    gateway = policy_file.load(Path("agentsh-net.yaml"), {}).config.gateway
    assert {name for name, server in gateway.servers.items() if server.passthrough} == set("abcdefg")
    init("--out", "again.yaml")
    assert "type: sse" in Path("again.yaml").read_text()
    init("--uninstall")
    assert {file: file.read_text() for file in files} == files


def test_the_shim_is_called_by_its_whole_path_and_asks_where_it_is_told(home, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(home / "bin/agentsh-net")])
    (home / "bin").mkdir()
    (home / "bin/agentsh-net").touch()
    init("--install", before=("--socket", "/tmp/c.sock"))
    entry = json.loads(cursor(home).replace("// mine", ""))["mcpServers"]["fs"]
    assert [entry["command"], *entry["args"]][:4] == [
        str(home / "bin/agentsh-net"),
        "--socket",
        "/tmp/c.sock",
        "shim",
    ]


def test_one_client_alone(home):
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text('[mcp_servers.git]\ncommand = "uvx"\n')
    init("--install", "--client", "codex")
    assert cursor(home) == CURSOR
    assert "shim" in (home / ".codex/config.toml").read_text()
    result = init("--install", "--client", "emacs")
    assert result.exit_code == 2
    assert "known are: " in result.stderr


def test_what_cannot_be_changed_is_told_and_the_exit_code_says_so(home):
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text('mcp_servers = { git = { command = "uvx" } }\n')
    result = init("--install")
    assert result.exit_code == 1
    assert "not changed: " in result.stderr
    assert "shim" in cursor(home)


def test_a_server_with_a_login_of_its_own_is_left_and_told(home):
    entry = '{"mcpServers": {"oauth-web": {"url": "https://o.example/mcp"}, "web": {"url": "https://x.example/mcp"}}}'
    (home / ".cursor/mcp.json").write_text(entry)
    installed = init("--install")
    assert installed.exit_code == 0
    assert "left as it is: oauth-web (cursor) wants a login of its own (OAuth)" in installed.stderr
    assert '"https://o.example/mcp"' in cursor(home)
    assert "8485/mcp/web#" in cursor(home)
    init("--uninstall")
    assert cursor(home) == entry


def test_a_server_whose_headers_are_declared_is_not_asked(home):
    (home / ".cursor/mcp.json").write_text(
        '{"mcpServers": {"oauth-web": {"url": "https://o.example/mcp", "headers": {"Authorization": "Bearer x"}}}}'
    )
    assert "left as it is" not in init("--install").stderr
    assert "8485/mcp/oauth-web#" in cursor(home)


def test_a_url_that_its_client_fills_in_is_left_and_told(home):
    braces = '{"mcpServers": {"web": {"url": "https://x.example/mcp?key=${env:KEY}"}}}'
    (home / ".cursor/mcp.json").write_text(braces)
    (home / ".gemini").mkdir()
    gemini = '{"mcpServers": {"bare": {"httpUrl": "https://x.example/mcp?key=$KEY"}}}'
    (home / ".gemini/settings.json").write_text(gemini)
    installed = init("--install")
    assert "left as it is: bare (gemini) has a URL that its client fills in" in installed.stderr
    assert "left as it is: web (cursor) has a URL that its client fills in" in installed.stderr
    assert (cursor(home), (home / ".gemini/settings.json").read_text()) == (braces, gemini)


def test_a_server_whose_credential_stands_in_the_clients_environment_is_no_login(home):
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(
        '[mcp_servers.oauth-like]\nurl = "https://x.example/mcp"\nbearer_token_env_var = "T"\n'
    )
    assert "wants a login" not in init("--install").stderr
    assert "8485/mcp/oauth-like#" in (home / ".codex/config.toml").read_text()


def test_a_server_that_its_client_has_switched_off_is_told_and_left_alone(home):
    (home / ".claude.json").write_text(
        json.dumps({"projects": {str(Path.cwd()): {"disabledMcpjsonServers": ["gone"]}}})
    )
    Path(".mcp.json").write_text('{"mcpServers": {"gone": {"command": "x"}, "kept": {"command": "y"}}}')
    result = init("--install")
    assert result.exit_code == 0
    assert (
        f"left out: gone (claude-code) is switched off in {home / '.claude.json'}; run init again"
        in result.stderr
    )
    assert "gone" not in Path("agentsh-net.yaml").read_text()
    entries = json.loads(Path(".mcp.json").read_text())["mcpServers"]
    assert entries["gone"] == {"command": "x"}
    assert "shim" in entries["kept"]["args"]


def test_a_server_that_an_administrator_allows_as_it_is_stays_as_it_is(home, monkeypatch):
    file = home / "etc/codex/requirements.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[mcp_servers.fs.identity]\ncommand = "npx"\n')
    config = home / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text('[mcp_servers.fs]\ncommand = "npx"\n')
    monkeypatch.setattr(declarations, "find", partial(declarations.find, root=home))
    result = init("--install", "--client", "codex")
    assert f"left as it is: fs-codex (codex) is allowed by its command or URL in {file}" in result.stderr
    assert config.read_text() == '[mcp_servers.fs]\ncommand = "npx"\n'
