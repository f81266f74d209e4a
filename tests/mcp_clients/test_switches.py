"""A server that a client's settings switch off is off, where that holds for every use of it; what one project says binds no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.mcp_clients.declarations import Found, find

SERVER = {"command": "x"}
ONE = {"mcpServers": {"a": SERVER}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "home"


def put(base: Path, name: str, content: Any) -> Path:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def look(home: Path) -> Found:
    return find(home, cwd=home.parent / "work")


def off(home: Path) -> dict[str, Path]:
    """Return what is off, and by which file; the rest has to be declared."""
    found = look(home)
    assert {s.declaration["id"] for s in found.servers} == {p.server_id for p in found.places if p.used}
    return {p.server_id: p.off_in for p in found.places if p.off_in is not None}


@pytest.mark.parametrize("where", ["home", "work"])
@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json"])
def test_a_projects_server_is_off_by_any_settings_of_claude_code(home: Path, where: str, name: str) -> None:
    put(home.parent / "work", ".mcp.json", ONE)
    file = put(home.parent / where, name, {"disabledMcpjsonServers": ["a"]})
    read = (where, name) != ("home", ".claude/settings.local.json")  # which is a project's alone
    assert off(home) == ({"a": file} if read else {})


@pytest.mark.parametrize("key", ["disabledMcpjsonServers", "disabledMcpServers"])
def test_a_projects_server_is_off_by_what_claude_code_remembers_of_that_project(home: Path, key: str) -> None:
    work = put(home.parent / "work", ".mcp.json", ONE).parent
    file = put(home, ".claude.json", {"projects": {str(work): {key: ["a", 5]}, "/other": {key: ["a"]}}})
    assert off(home) == {"a": file}
    put(home, ".claude.json", {"projects": {"/other": {key: ["a"]}}})
    assert off(home) == {}


def test_what_one_project_switches_off_of_the_users_servers_is_used_by_the_others(home: Path) -> None:
    put(home, ".claude.json", {**ONE, "projects": {"/p": {"disabledMcpServers": ["a"]}}})
    put(home.parent / "work", ".claude/settings.json", {"disabledMcpjsonServers": ["a"]})
    assert off(home) == {}


def test_a_project_switches_its_own_servers_off(home: Path) -> None:
    projects = {
        "/p": {"mcpServers": {"a": SERVER, "b": SERVER}, "disabledMcpServers": ["a"]},
        "/q": {"mcpServers": {"c": SERVER}},
    }
    file = put(home, ".claude.json", {"projects": projects})
    assert off(home) == {"a": file}


@pytest.mark.parametrize(
    ("settings", "is_off"),
    [
        ({"mcp": {"excluded": ["a"]}}, True),
        ({"excludeMCPServers": ["a"]}, True),
        ({"mcp": {"allowed": ["b"]}}, True),
        ({"allowMCPServers": ["b"]}, True),
        ({"mcp": {"allowed": ["a"]}}, False),
        ({"mcp": {"allowed": []}}, False),
        ({"mcp": {"excluded": "a"}}, False),
        ({"mcp": ["a"]}, False),
    ],
)
def test_gemini_leaves_out_what_its_lists_say(home: Path, settings: dict[str, Any], is_off: bool) -> None:
    file = put(home, ".gemini/settings.json", {**ONE, **settings})
    assert off(home) == ({"a": file} if is_off else {})


def test_in_gemini_a_project_allows_its_own_servers_and_switches_off_none_of_the_users(home: Path) -> None:
    user = put(home, ".gemini/settings.json", {**ONE, "mcp": {"allowed": ["a"]}})
    project = {"mcpServers": {"b": SERVER}, "mcp": {"allowed": ["b"], "excluded": ["a"]}}
    put(home.parent / "work", ".gemini/settings.json", project)
    assert off(home) == {}
    put(home.parent / "work", ".gemini/settings.json", {"mcpServers": {"b": SERVER}})
    assert off(home) == {"b": user}  # not among what the user allows


def test_gemini_mcp_disable_is_heeded_in_any_case(home: Path) -> None:
    put(home, ".gemini/settings.json", {"mcpServers": {"Ab": SERVER, "c": SERVER}})
    file = put(home, ".gemini/mcp-server-enablement.json", {"ab": {"enabled": False}, "c": {"enabled": True}})
    assert off(home) == {"Ab": file}


def test_a_list_that_cannot_be_read_switches_nothing_off_and_is_told_once(home: Path) -> None:
    put(home.parent / "work", ".mcp.json", {"mcpServers": {"a": SERVER, "b": SERVER}})
    file = put(home, ".claude/settings.json", "{")
    found = look(home)
    assert {s.declaration["id"] for s in found.servers} == {"a", "b"}
    assert [unread.source for unread in found.unread] == [file]


def test_another_client_that_uses_a_server_declares_it(home: Path) -> None:
    put(home, ".gemini/settings.json", {**ONE, "mcp": {"excluded": ["a"]}})
    put(home, ".cursor/mcp.json", ONE)
    found = look(home)
    assert [(s.declaration["id"], s.client) for s in found.servers] == [("a", "cursor")]
