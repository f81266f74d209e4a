"""What an administrator's files keep a client from is off, and what they allow by its very command or URL is not to be changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.mcp_clients.declarations import Found, Place, find

STDIO = {"command": "npx", "args": ["-y", "fs"]}
REMOTE = {"url": "https://mcp.corp.example/a/mcp"}
SERVERS = {"fs": STDIO, "web": REMOTE}
Put = Callable[[str, Any], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    for folder in ("home", "work"):
        (tmp_path / folder).mkdir()
    return write


def look(tmp_path: Path) -> Found:
    return find(tmp_path / "home", cwd=tmp_path / "work", root=tmp_path)


def off(tmp_path: Path) -> dict[str, Path]:
    return {p.server_id: p.off_in for p in look(tmp_path).places if p.off_in is not None}


def bound(tmp_path: Path) -> dict[str, Path]:
    return {p.server_id: p.bound_in for p in look(tmp_path).places if p.bound_in is not None}


MANAGED = "etc/claude-code/managed-settings.json"


def test_beside_servers_that_are_deployed_claude_code_has_no_others(tmp_path: Path, put: Put) -> None:
    put("home/.claude.json", {"mcpServers": SERVERS})
    file = put("etc/claude-code/managed-mcp.json", {"mcpServers": {"corp": REMOTE}})
    assert off(tmp_path) == {"fs": file, "web": file}
    assert [(s.declaration["id"], s.source) for s in look(tmp_path).servers] == [("corp", file)]


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ({"serverName": "fs"}, "fs"),
        ({"serverCommand": ["npx", "-y", "fs"]}, "fs"),
        ({"serverCommand": ["npx"]}, ""),
        ({"serverUrl": "https://*.corp.example/*"}, "web"),
        ({"serverUrl": "https://mcp.corp.example/?/mcp"}, ""),
        ({"serverUrl": "https://mcp.corp.example/[a]/mcp"}, ""),
        ("fs", ""),
    ],
)
@pytest.mark.parametrize(
    "place", [MANAGED, "etc/claude-code/managed-settings.d/10-mcp.json", "home/.claude/settings.json"]
)
def test_what_a_list_of_claude_code_denies_is_off(
    tmp_path: Path, put: Put, place: str, rule: Any, name: str
) -> None:
    put("home/.claude.json", {"mcpServers": SERVERS})
    file = put(place, {"deniedMcpServers": [rule]})
    assert off(tmp_path) == ({name: file} if name else {})


@pytest.mark.parametrize(
    ("rules", "is_off", "is_bound"),
    [
        ([], {"fs", "web"}, set()),
        ([{"serverName": "fs"}], {"web"}, set()),
        # Where a command is named, names allow no local server; URLs likewise.
        ([{"serverName": "fs"}, {"serverCommand": ["other"]}], {"fs", "web"}, set()),
        ([{"serverName": "web"}, {"serverCommand": ["npx", "-y", "fs"]}], set(), {"fs"}),
        ([{"serverName": "fs"}, {"serverUrl": "https://mcp.corp.example/*"}], set(), {"web"}),
    ],
)
def test_what_no_list_of_claude_code_allows_is_off(
    tmp_path: Path, put: Put, rules: Any, is_off: set[str], is_bound: set[str]
) -> None:
    put("home/.claude.json", {"mcpServers": SERVERS})
    file = put(MANAGED, {"allowedMcpServers": rules})
    assert off(tmp_path) == dict.fromkeys(is_off, file)
    assert bound(tmp_path) == dict.fromkeys(is_bound, file)


def test_a_users_list_adds_to_the_managed_one_unless_that_stands_alone(tmp_path: Path, put: Put) -> None:
    put("home/.claude.json", {"mcpServers": SERVERS})
    put("home/.claude/settings.json", {"allowedMcpServers": [{"serverName": "web"}]})
    lists = {"allowedMcpServers": [{"serverName": "fs"}]}
    put(MANAGED, lists)
    assert off(tmp_path) == {}
    file = put(MANAGED, lists | {"allowManagedMcpServersOnly": True})
    assert off(tmp_path) == {"web": file}


def test_codex_uses_what_its_requirements_name_and_as_they_name_it(tmp_path: Path, put: Put) -> None:
    put(
        "home/.codex/config.toml",
        '[mcp_servers.fs]\ncommand = "npx"\n[mcp_servers.web]\nurl = "https://x.example/mcp"\n',
    )
    put("work/.codex/config.toml", '[mcp_servers.own]\ncommand = "own"\n')
    assert (off(tmp_path), bound(tmp_path)) == ({}, {})
    file = put(
        "etc/codex/requirements.toml",
        '[mcp_servers.fs.identity]\ncommand = "npx"\n[mcp_servers.web.identity]\nurl = "https://y.example/mcp"\n',
    )  # fmt: skip
    assert (off(tmp_path), bound(tmp_path)) == ({"web": file, "own": file}, {"fs": file})
    put("etc/codex/requirements.toml", "[mcp_servers]\n")
    assert set(off(tmp_path)) == {"fs", "web", "own"}


@pytest.mark.parametrize(
    ("name", "content", "is_off"),
    [
        ("etc/vscode/policy.json", {"ChatMCP": "none"}, True),
        ("etc/vscode/policy.json", {"ChatMCP": "registry"}, False),
        ("home/.config/Code/User/settings.json", {"chat.mcp.access": "none"}, True),
        ("home/.config/Code/User/settings.json", {"chat.mcp.access": "all"}, False),
        ("home/.config/Code/User/settings.json", {"chat.mcp.enabled": False}, True),
    ],
)
def test_vs_code_uses_no_server_where_mcp_is_off(
    tmp_path: Path, put: Put, name: str, content: Any, is_off: bool
) -> None:
    put("home/.config/Code/User/mcp.json", {"servers": {"fs": STDIO}})
    file = put(name, content)
    assert off(tmp_path) == ({"fs": file} if is_off else {})


def test_the_systems_list_of_gemini_stands_before_the_users(tmp_path: Path, put: Put) -> None:
    put("home/.gemini/settings.json", {"mcpServers": SERVERS, "mcp": {"allowed": ["web"]}})
    file = put(
        "etc/gemini-cli/settings.json", {"mcpServers": {"corp": STDIO}, "mcp": {"allowed": ["fs", "corp"]}}
    )
    assert off(tmp_path) == {"web": file}


def test_lists_that_cannot_be_read_are_told_and_keep_nobody_from_anything(tmp_path: Path, put: Put) -> None:
    put("home/.claude.json", {"mcpServers": SERVERS})
    file = put(MANAGED, "{")
    found = look(tmp_path)
    assert all(isinstance(p, Place) and p.used for p in found.places)
    assert [u.source for u in found.unread] == [file]
