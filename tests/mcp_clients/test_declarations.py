"""Every client's declarations are found, in our spelling, once each; what cannot be used is told and never fatal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.core.configuration.config import parse
from agentsh_net.mcp_clients import catalog
from agentsh_net.mcp_clients.declarations import MAX_SERVERS, Found, find


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "home"


def put(home: Path, name: str, content: Any) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def look(home: Path, **options: Any) -> Found:
    return find(home, cwd=home.parent / "work", **options)


def declarations(home: Path) -> list[dict[str, Any]]:
    found = look(home)
    assert not found.unread
    assert parse({"sandbox": {"mcp": {"servers": [s.declaration for s in found.servers]}}})
    return [s.declaration for s in found.servers]


LOCAL = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "hunter2"}}
STDIO = {"id": "fs", "type": "stdio", **LOCAL}
REMOTE = {
    "id": "web",
    "type": "http",
    "url": "https://mcp.example.com/mcp",
    "headers": {"Authorization": "hunter2"},
}

TOML = """
model = "x"
[mcp_servers.fs]
command = "npx"
args = ["-y", "server"]
env = { TOKEN = "hunter2" }
[mcp_servers.web]
url = "https://mcp.example.com/mcp"
http_headers = { Authorization = "hunter2" }
[mcp_servers.off]
command = "x"
enabled = false
"""

PLAIN = {
    "mcpServers": {"fs": LOCAL, "web": {"type": "http", "url": REMOTE["url"], "headers": REMOTE["headers"]}}
}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".claude.json", PLAIN),
        (".claude.json", {"numStartups": 3, "projects": {"/a": {}, "/b": PLAIN, "/c": None}}),
        ("../work/.mcp.json", PLAIN),
        (".config/Claude/claude_desktop_config.json", PLAIN),
        (".cursor/mcp.json", {"mcpServers": {"fs": LOCAL, "web": {k: v for k, v in REMOTE.items() if k in ("url", "headers")}}}),
        (".config/Code/User/mcp.json", {"inputs": [], "servers": {"fs": {"type": "stdio", **LOCAL}, "web": PLAIN["mcpServers"]["web"]}}),
        ("../work/.vscode/mcp.json", "// mine\n" + json.dumps({"servers": PLAIN["mcpServers"]})[:-1] + ",}"),
        (".codex/config.toml", TOML),
        (".gemini/settings.json", {"mcpServers": {"fs": LOCAL, "web": {"httpUrl": REMOTE["url"], "headers": REMOTE["headers"]}}}),
        (
            ".config/opencode/opencode.json",
            {
                "mcp": {
                    "fs": {"type": "local", "command": ["npx", "-y", "server"], "environment": LOCAL["env"], "enabled": True},
                    "web": {"type": "remote", "url": REMOTE["url"], "headers": REMOTE["headers"]},
                    "off": {"type": "remote", "url": "https://off/", "enabled": False},
                }
            },
        ),
        (
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            {
                "mcpServers": {
                    "fs": {**LOCAL, "disabled": False, "alwaysAllow": []},
                    "web": {"type": "streamableHttp", "url": REMOTE["url"], "headers": REMOTE["headers"]},
                    "off": {"command": "x", "disabled": True},
                }
            },
        ),
        (
            ".codeium/windsurf/mcp_config.json",
            {
                "mcpServers": {
                    "fs": {**LOCAL, "disabledTools": ["rm"]},
                    "web": {"serverUrl": REMOTE["url"], "headers": REMOTE["headers"]},
                    "off": {"command": "x", "disabled": True},
                }
            },
        ),
        (
            ".config/zed/settings.json",
            '// Zed\n{"theme": "One", "context_servers": '
            + json.dumps(
                {
                    "fs": {"source": "custom", "enabled": True, **LOCAL},
                    "web": {"url": REMOTE["url"], "headers": REMOTE["headers"]},
                    "off": {"source": "custom", "enabled": False, "command": "x"},
                }
            )
            + ",\n}",
        ),
        (
            ".copilot/mcp-config.json",
            {
                "mcpServers": {
                    "fs": {"type": "local", **LOCAL, "tools": ["*"]},
                    "web": {**PLAIN["mcpServers"]["web"], "tools": ["get"]},
                }
            },
        ),
        *(
            (file, {"mcpServers": {"fs": {**LOCAL, "disabled": False, "autoApprove": []}, "web": {"url": REMOTE["url"], "headers": REMOTE["headers"]}, "off": {"command": "x", "disabled": True}}})
            for file in (".kiro/settings/mcp.json", ".aws/amazonq/mcp.json", ".lmstudio/mcp.json")
        ),
        (
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            {"mcpServers": {"fs": {**LOCAL, "alwaysAllow": []}, "web": {"type": "streamable-http", "url": REMOTE["url"], "headers": REMOTE["headers"]}}},
        ),
        ("../work/.amp/settings.json", "// Amp\n" + json.dumps({"amp.mcpServers": {"fs": LOCAL, "web": {"url": REMOTE["url"], "headers": REMOTE["headers"]}}})),
        (
            ".config/crush/crush.json",
            {"mcp": {"fs": {"type": "stdio", "timeout": 120, **LOCAL}, "web": PLAIN["mcpServers"]["web"], "off": {"type": "http", "url": "https://off/", "disabled": True}}},
        ),
        (".qwen/settings.json", {"mcpServers": {"fs": LOCAL, "web": {"httpUrl": REMOTE["url"], "headers": REMOTE["headers"]}}}),
        (".gemini/antigravity/mcp_config.json", {"mcpServers": {"fs": LOCAL, "web": {"serverUrl": REMOTE["url"], "headers": REMOTE["headers"]}}}),
        (".rovodev/mcp.json", {"mcpServers": {"fs": {**LOCAL, "transport": "stdio"}, "web": {"transport": "http", "url": REMOTE["url"], "headers": REMOTE["headers"]}}}),
        (".junie/mcp/mcp.json", {"mcpServers": {"fs": LOCAL, "web": {k: v for k, v in REMOTE.items() if k in ("url", "headers")}}}),
    ],
    ids=lambda v: v if isinstance(v, str) and "\n" not in v else None,
)  # fmt: skip
def test_each_client_declares_the_same_two_servers_in_its_own_way(
    home: Path, file: str, content: Any
) -> None:
    put(home, file, content)
    assert declarations(home) == [STDIO, REMOTE]


def test_every_row_of_the_table_has_an_example() -> None:
    names = """claude-code claude-desktop cursor vscode codex gemini opencode cline windsurf zed copilot-cli junie roo-code kiro
        amazon-q lm-studio amp crush qwen-code antigravity rovo-dev"""
    assert [client.name for client in catalog.CLIENTS] == names.split()


def test_a_server_that_two_clients_declare_alike_is_one(home: Path) -> None:
    put(home, ".cursor/mcp.json", {"mcpServers": {"fs": LOCAL}})
    put(home, ".config/Claude/claude_desktop_config.json", {"mcpServers": {"FS": LOCAL}})
    (server,) = look(home).servers
    assert (server.client, server.source) == (
        "claude-desktop",
        home / ".config/Claude/claude_desktop_config.json",
    )


def test_the_same_id_for_different_servers_is_told_apart_by_the_client(home: Path) -> None:
    put(
        home,
        ".claude.json",
        {
            "mcpServers": {"db": {"command": "one"}},
            "projects": {"/p": {"mcpServers": {"db": {"command": "two"}}}},
        },
    )
    put(home, ".cursor/mcp.json", {"mcpServers": {"DB": {"command": "three"}}})
    put(
        home,
        ".gemini/settings.json",
        {"mcpServers": {"db": {"command": "two"}, "db-claude-code": {"command": "two"}}},
    )
    assert [(d["id"], d["command"]) for d in declarations(home)] == [
        ("db", "one"),
        ("db-claude-code", "two"),
        ("DB-cursor", "three"),
        ("db-gemini", "two"),
    ]


def test_a_long_id_stays_an_id_when_it_is_told_apart(home: Path) -> None:
    put(home, ".claude.json", {"mcpServers": {"x" * 128: {"command": "one"}}})
    put(home, ".cursor/mcp.json", {"mcpServers": {"x" * 128: {"command": "two"}}})
    assert [len(d["id"]) for d in declarations(home)] == [128, 128]


def test_a_broken_file_is_told_and_the_others_are_read(home: Path) -> None:
    broken = put(home, ".claude.json", '{"mcpServers": {"token": hunter2')
    put(home, ".cursor/mcp.json", {"mcpServers": {"fs": LOCAL}})
    found = look(home)
    assert [s.declaration["id"] for s in found.servers] == ["fs"]
    assert [u.source for u in found.unread] == [broken]
    assert "no valid JSON" in str(found.unread[0])
    assert "hunter2" not in str(found.unread[0])


@pytest.mark.parametrize(
    "entry",
    [{}, None, [], "x", {"url": 5}, {"url": "https://${HOST}/"}, {"command": 5}, {"command": "x", "args": "y"},
     {"type": "http"}, {"url": "https://h/", "headers": {"A": "hunter2\n"}}],
    ids=str,
)  # fmt: skip
def test_an_entry_that_is_no_server_is_told_and_the_others_are_read(home: Path, entry: Any) -> None:
    put(home, ".cursor/mcp.json", {"mcpServers": {"bad\x1b": entry, "bad": entry, "fs": LOCAL}})
    found = look(home)
    assert [s.declaration for s in found.servers] == [STDIO]
    assert len(found.unread) == 2
    assert all(str(u).isprintable() and "hunter2" not in str(u) for u in found.unread)


@pytest.mark.parametrize(
    "content", ["[]", "null", "5", '{"mcpServers": []}', '{"mcpServers": null}', "{}", ""]
)
def test_a_file_without_servers_declares_none(home: Path, content: str) -> None:
    put(home, ".claude.json", content)
    assert look(home) == Found((), ())


def test_no_client_at_all_is_nothing_found(home: Path) -> None:
    assert look(home) == Found((), ())


def test_a_link_to_a_file_of_the_users_own_is_followed(home: Path) -> None:
    real = put(home, "dotfiles/claude.json", PLAIN)
    (home / ".claude.json").symlink_to(real)
    found = look(home)
    assert found.servers
    assert {place.source for place in found.places} == {home / ".claude.json"}
    assert not found.unread


@pytest.mark.parametrize(
    ("file", "content", "server"),
    [
        (".config/Code/User/settings.json", '{"mcp": {"servers": {"old": {"command": "x"}}}}', "old"),
        ("../work/.vscode/settings.json", '{"mcp": {"servers": {"old": {"command": "x"}}}}', "old"),
        ("../work/opencode.jsonc", '{"mcp": {"o": {"type": "local", "command": ["x"]}}} // c', "o"),
        (".cline/mcp.json", '{"mcpServers": {"w": {"url": "https://h.example/mcp"}}}', "w"),
        (".cline/data/settings/cline_mcp_settings.json", '{"mcpServers": {"x": {"command": "x"}}}', "x"),
        (".cursor/mcp.json", '{"mcpServers": {"w": {"serverUrl": "https://h.example/mcp"}}}', "w"),
    ],
)
def test_older_places_and_spellings_are_known(home: Path, file: str, content: str, server: str) -> None:
    put(home, file, content)
    found = look(home)
    assert [s.declaration["id"] for s in found.servers] == [server]
    assert not found.unread


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_planted_by_somebody_else_is_told_and_not_used(home: Path) -> None:
    planted = put(home, "../work/.mcp.json", PLAIN)
    os.chown(planted, 54321, -1)
    found = look(home, uid=54322)
    assert not found.servers
    assert "owned by uid 54321" in found.unread[0].reason


def test_the_config_folder_can_be_another(home: Path) -> None:
    put(home, "xdg/Claude/claude_desktop_config.json", PLAIN)
    assert len(look(home, config_home=home / "xdg").servers) == 2
    assert not look(home).servers


def test_the_number_of_servers_is_bounded(home: Path) -> None:
    put(home, ".claude.json", {"mcpServers": {f"s{i}": {"command": "x"} for i in range(MAX_SERVERS + 5)}})
    put(home, ".cursor/mcp.json", {"mcpServers": {"fs": LOCAL}})
    found = look(home)
    assert len(found.servers) == MAX_SERVERS
    assert [u.source.name for u in found.unread] == [".claude.json", "mcp.json"]


def test_secrets_do_not_show_in_what_is_found(home: Path) -> None:
    put(home, ".claude.json", PLAIN)
    assert "hunter2" not in repr(look(home))


def test_every_declaration_is_placed_equal_ones_too(home: Path) -> None:
    one = put(home, ".cursor/mcp.json", {"mcpServers": {"fs": LOCAL, "off": {**LOCAL, "disabled": True}}})
    two = put(
        home,
        ".claude.json",
        {"projects": {"/p": {"mcpServers": {"fs": LOCAL}}}, "mcpServers": {"fs": {"command": "x"}}},
    )
    found = look(home)
    placed = {(p.source, p.keys): (p.server_id, p.used) for p in found.places}
    assert placed == {
        (two, ("mcpServers", "fs")): ("fs", True),
        (two, ("projects", "/p", "mcpServers", "fs")): ("fs-claude-code", True),
        (one, ("mcpServers", "fs")): ("fs-cursor", True),
        (one, ("mcpServers", "off")): ("off", False),
    }


def test_a_server_under_the_shim_is_declared_as_what_it_wraps(home: Path) -> None:
    wrapped = {
        "command": "/usr/bin/agentsh-net",
        "args": ["shim", "--server", "files", "--", "npx", "-y", "server"],
    }
    put(
        home,
        ".cursor/mcp.json",
        {"mcpServers": {"fs": {**LOCAL, **wrapped}, "bare": {**wrapped, "args": wrapped["args"][:5]}}},
    )
    assert declarations(home)[0] == STDIO | {"id": "files"}


def test_a_server_whose_url_the_client_fills_in_is_declared_by_what_is_known_of_it(home: Path) -> None:
    servers = {
        "keyed": {"url": "https://x.example/mcp?key=${KEY}"},
        "hidden": {"url": "https://${HOST}/mcp"},
        "odd": {"url": ["${HOST}"]},
        "whole": {"url": "https://x.example/mcp"},
    }
    put(home, ".cursor/mcp.json", {"mcpServers": servers})
    found = look(home)
    declared = {s.declaration["id"]: (s.declaration["url"], s.open_url) for s in found.servers}
    assert declared == {
        "keyed": ("https://x.example/mcp", True),
        "whole": ("https://x.example/mcp", False),
    }
    assert [place.open_url for place in found.places] == [True, False]
    assert "server hidden: url: its host is filled in by the client" in str(found.unread[0])
