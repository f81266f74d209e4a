"""Clients' files are rewritten with a copy beside them, in one step, only where they are the caller's own, and restored to the byte."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from agentsh_net.mcp_clients import declarations, installation
from agentsh_net.mcp_clients.declarations import Place
from agentsh_net.mcp_clients.installation import BACKUP, install, uninstall

PROGRAM = ["/usr/bin/agentsh-net"]
CURSOR = (
    '{ "mcpServers": { "fs": {"command": "npx", "args": ["a"]}, "web": {"url": "https://x.example/mcp"} } }\n'
)
CODEX = '[mcp_servers.git]\ncommand = "uvx"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(CURSOR)
    (tmp_path / ".codex/config.toml").write_text(CODEX)
    return tmp_path


def places(home: Path) -> tuple[Place, ...]:
    return declarations.find(home, cwd=home / "work").places


def cursor(home: Path) -> Path:
    return home / ".cursor/mcp.json"


def contents(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def test_stdio_servers_go_under_the_shim_and_a_copy_stays(home: Path) -> None:
    outcomes = {o.file.name: o for o in install(places(home), PROGRAM)}
    assert outcomes["mcp.json"].servers == ("fs",)
    assert outcomes["config.toml"].servers == ("git",)
    entry = json.loads(cursor(home).read_text())["mcpServers"]["fs"]
    assert [entry["command"], *entry["args"]] == [*PROGRAM, "shim", "--server", "fs", "--", "npx", "a"]
    copy = outcomes["mcp.json"].backup
    assert copy is not None and copy.name == "mcp.json" + BACKUP
    assert copy.read_text() == CURSOR
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_out_again_everything_is_as_it_was_and_the_copies_are_gone(home: Path) -> None:
    before = contents(home)
    install(places(home), PROGRAM)
    outcomes = uninstall(places(home))
    assert {o.servers for o in outcomes} == {("fs",), ("git",)}
    assert all(o.backup is None for o in outcomes)
    assert contents(home) == before


def test_a_second_time_changes_nothing(home: Path) -> None:
    install(places(home), PROGRAM)
    before = contents(home)
    assert all(not o.servers and not o.trouble for o in install(places(home), PROGRAM))
    assert contents(home) == before
    uninstall(places(home))
    assert uninstall(places(home)) == []


def test_the_installed_servers_are_found_as_what_they_were(home: Path) -> None:
    before = declarations.find(home, cwd=home / "work").servers
    install(places(home), PROGRAM)
    assert declarations.find(home, cwd=home / "work").servers == before


def test_a_server_that_came_later_is_added_and_the_copy_is_still_the_first(home: Path) -> None:
    install(places(home), PROGRAM)
    text = cursor(home).read_text().replace('"web"', '"new": {"command": "x"}, "web"')
    cursor(home).write_text(text)
    outcomes = [o for o in install(places(home), PROGRAM) if o.servers]
    assert [o.servers for o in outcomes] == [("new",)]
    assert (home / ".cursor" / ("mcp.json" + BACKUP)).read_text() == CURSOR
    (outcome,) = [o for o in uninstall(places(home)) if o.file == cursor(home)]
    assert cursor(home).read_text() == CURSOR.replace('"web"', '"new": {"command": "x"}, "web"')
    assert outcome.backup is not None  # what the user changed is not in it, so it is not thrown away unseen


def test_an_old_copy_makes_room_for_that_of_a_new_beginning(home: Path) -> None:
    copy = home / ".cursor" / ("mcp.json" + BACKUP)
    copy.write_text("of some time ago")
    install(places(home), PROGRAM)
    assert copy.read_text() == CURSOR


def test_what_is_switched_off_is_left_out_and_taken_out(home: Path) -> None:
    off = '{"mcpServers": {"fs": {"command": "x", "disabled": true}}}'
    cursor(home).write_text(off)
    install(places(home), PROGRAM)
    assert cursor(home).read_text() == off
    cursor(home).write_text(CURSOR)
    install(places(home), PROGRAM)
    cursor(home).write_text(cursor(home).read_text().replace('"command"', '"disabled": true, "command"', 1))
    uninstall(places(home))
    assert cursor(home).read_text() == CURSOR.replace('"command"', '"disabled": true, "command"', 1)


def test_mode_and_byte_order_mark_stay(home: Path) -> None:
    cursor(home).write_bytes(b"\xef\xbb\xbf" + CURSOR.encode())
    cursor(home).chmod(0o640)
    install(places(home), PROGRAM)
    assert cursor(home).read_bytes().startswith(b"\xef\xbb\xbf{")
    assert stat.S_IMODE(cursor(home).stat().st_mode) == 0o640
    uninstall(places(home))
    assert cursor(home).read_bytes() == b"\xef\xbb\xbf" + CURSOR.encode()


def test_a_file_that_cannot_be_edited_is_told_of_and_the_others_are_done(home: Path) -> None:
    codex = home / ".codex/config.toml"
    codex.write_text('mcp_servers = { git = { command = "uvx" } }\n')
    outcomes = {o.file.name: o for o in install(places(home), PROGRAM)}
    assert "no table of its own" in outcomes["config.toml"].trouble
    assert outcomes["mcp.json"].servers == ("fs",)
    assert codex.read_text() == 'mcp_servers = { git = { command = "uvx" } }\n'
    assert not codex.with_name(codex.name + BACKUP).exists()


def test_a_link_of_ones_own_stays_and_the_file_that_it_leads_to_is_written_and_restored(home: Path) -> None:
    found = places(home)
    target = home / "elsewhere.json"
    cursor(home).rename(target)
    target.chmod(0o640)
    cursor(home).symlink_to(target)
    outcomes = {o.file.name: o for o in install(found, PROGRAM)}
    assert outcomes["mcp.json"].servers == ("fs",)
    assert cursor(home).is_symlink()
    assert target.read_text() != CURSOR
    assert target.stat().st_mode & 0o777 == 0o640
    assert {o.file.name: o for o in uninstall(places(home))}["mcp.json"].servers == ("fs",)
    assert cursor(home).is_symlink()
    assert target.read_text() == CURSOR


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_somebody_elses_is_not_followed(home: Path) -> None:
    found = places(home)
    target = home / "elsewhere.json"
    cursor(home).rename(target)
    cursor(home).symlink_to(target)
    os.chown(cursor(home), 54321, -1, follow_symlinks=False)
    outcomes = {o.file.name: o for o in install(found, PROGRAM)}
    assert "symbolic link" in outcomes["mcp.json"].trouble
    assert target.read_text() == CURSOR


@pytest.mark.skipif(os.getgroups() == [] and os.geteuid() != 0, reason="needs a second group")
def test_the_group_of_a_file_stays(home: Path) -> None:
    os.chown(cursor(home), -1, 54321 if os.geteuid() == 0 else os.getgroups()[0])
    group = cursor(home).stat().st_gid
    install(places(home), PROGRAM)
    assert cursor(home).stat().st_gid == group


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can be somebody else than the owner of a file it may write"
)
def test_root_does_not_write_a_users_files(home: Path) -> None:
    os.chown(cursor(home), 65534, 65534)
    outcomes = {
        o.file.name: o for o in install(declarations.find(home, cwd=home / "w", uid=65534).places, PROGRAM)
    }
    assert "run this as that user" in outcomes["mcp.json"].trouble
    assert cursor(home).read_text() == CURSOR


def test_a_write_that_fails_leaves_the_file_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcomes = install(places(home), PROGRAM)
    assert all("no space" in o.trouble for o in outcomes)
    assert cursor(home).read_text() == CURSOR
    assert not [p for p in cursor(home).parent.iterdir() if p.name.startswith(".mcp.json")]


def test_the_suffix_of_the_copy_is_no_clients_file(home: Path) -> None:
    install(places(home), PROGRAM)
    sources = {place.source for place in places(home)}
    assert not [s for s in sources if s.name.endswith(installation.BACKUP)]


ODD = """{"mcpServers": {
  "twice": {"command": "a", "command": "b"}, "fs": {"command": "npx", "args": ["x"]},
  "null": {"command": "npx", "args": null}, "web": {"url": "https://x.example/mcp"},
  "junk": {"disabled": true}, "more junk": {"disabled": true, "command": 5}}}"""


def test_a_server_that_cannot_be_edited_does_not_keep_the_others_of_its_file_out(home: Path) -> None:
    cursor(home).write_text(ODD)
    (done,) = [o for o in install(places(home), PROGRAM, "http://127.0.0.1:8485") if o.file == cursor(home)]
    assert done.servers == ("fs", "web")
    assert "twice: the key 'command' stands there twice" in done.trouble
    assert "null: arguments that are no list" in done.trouble
    assert "junk" not in done.trouble
    text = cursor(home).read_text()
    assert '"args": ["shim", "--server", "fs", "--", "npx", "x"]' in text
    assert "8485/mcp/web#agentsh-net:https://x.example/mcp" in text
    (back,) = [o for o in uninstall(places(home)) if o.file == cursor(home)]
    assert (back.servers, back.trouble, back.backup) == (("fs", "web"), "", None)
    assert cursor(home).read_text() == ODD
    assert uninstall(places(home)) == []
