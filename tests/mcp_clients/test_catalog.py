"""Each client's entry becomes a declaration in our spelling, with the transport that the client itself would use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsh_net.mcp_clients.catalog import (
    CLIENTS,
    declaration,
    entries,
    files,
    fills,
    switched_off,
    transport,
    unwrapped,
)

BY_NAME = {client.name: client for client in CLIENTS}
URL, SSE = "https://h/mcp", "https://h/sse"


@pytest.mark.parametrize(
    ("client", "entry", "expected"),
    [
        ("cursor", {"command": "npx"}, "stdio"),
        ("cursor", {"url": URL}, "http"),
        ("cursor", {"url": SSE}, "sse"),
        ("cursor", {"url": f"{SSE}/?k=1"}, "sse"),
        ("cursor", {"url": SSE, "type": "http"}, "http"),
        ("cursor", {"url": URL, "type": "sse"}, "sse"),
        ("cursor", {"url": URL, "type": "streamable-http"}, "http"),
        ("cursor", {"url": URL, "type": "carrier pigeon"}, "http"),
        ("cursor", {"url": URL, "transport": "sse"}, "sse"),
        ("gemini", {"url": SSE}, "sse"),
        ("gemini", {"httpUrl": SSE}, "http"),
        ("cline", {"url": URL}, "sse"),
        ("cline", {"url": SSE, "type": "streamableHttp"}, "http"),
        ("codex", {"url": SSE}, "http"),
    ],
)
def test_a_type_decides_then_the_client_then_the_url(
    client: str, entry: dict[str, Any], expected: str
) -> None:
    assert transport(entry, BY_NAME[client]) == expected


def test_a_declaration_has_the_keys_of_its_transport_and_no_others() -> None:
    entry = {"command": "x", "url": URL, "env": {"P": 80, "D": True, "N": None}, "alwaysAllow": []}
    assert declaration(entry, BY_NAME["cursor"]) == {
        "type": "stdio",
        "command": "x",
        "env": {"P": "80", "D": "true"},
    }
    assert declaration("no table", BY_NAME["cursor"]) == {}


def test_a_command_may_be_a_list_and_keys_may_have_other_names() -> None:
    local = {"type": "local", "command": ["npx", "-y"], "args": ["s"], "environment": {"A": "b"}}
    assert declaration(local, BY_NAME["opencode"]) == {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "s"],
        "env": {"A": "b"},
    }
    remote = {"httpUrl": URL, "headers": {"X": "1"}}
    assert declaration(remote, BY_NAME["gemini"]) == {"type": "http", "url": URL, "headers": {"X": "1"}}


def test_what_runs_under_the_shim_is_what_it_was_before() -> None:
    under = {
        "type": "stdio",
        "command": "/opt/agentsh-net",
        "args": ["shim", "--server", "fs", "--", "npx", "s"],
    }
    assert unwrapped({"id": "other", **under}) == {
        "id": "fs",
        "type": "stdio",
        "command": "npx",
        "args": ["s"],
    }
    own = {"id": "fs", "command": "npx", "args": ["s"]}
    assert unwrapped(own) is own


def test_entries_come_with_their_keys_wherever_the_client_keeps_them() -> None:
    content = {"mcpServers": {"a": 1}, "projects": {"/p": {"mcpServers": {"b": 2}}, "/q": "nothing"}}
    assert list(entries(content, BY_NAME["claude-code"])) == [
        (("mcpServers", "a"), 1),
        (("projects", "/p", "mcpServers", "b"), 2),
    ]
    assert list(entries(["no table"], BY_NAME["claude-code"])) == []


def test_a_file_is_read_once_where_the_home_is_the_working_directory() -> None:
    home = Path("/home/a")
    listed = [path for _, path in files({"~": home, "$config": home / ".config", ".": home, "": Path("/")})]
    assert len(listed) == len(set(listed)) < sum(len(client.files) for client in CLIENTS)


@pytest.mark.parametrize(
    ("entry", "off", "filled"),
    [
        ({"enabled": False}, True, False),
        ({"disabled": True}, True, False),
        ({"enabled": True, "disabled": False}, False, False),
        ({"bearer_token_env_var": "T"}, False, True),
        ("no table", False, False),
    ],
)
def test_who_is_switched_off_and_who_gets_a_credential_from_elsewhere(
    entry: Any, *, off: bool, filled: bool
) -> None:
    assert (switched_off(entry), fills(entry)) == (off, filled)
