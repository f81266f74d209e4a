"""The command line lies over the file, and what a reload cannot do is named."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agentsh_net import places
from agentsh_net.config import options
from agentsh_net.config.options import Options
from agentsh_net.core.configuration.settings import Config
from agentsh_net.core.errors import ConfigError

FILE = "version: 1\nsandbox: {mcp: {enforce_policy: true, fail_closed: true}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(("audit", "enforces"), [(None, True), (True, False), (False, True)])
def test_audit_and_enforce_change_one_setting_and_nothing_else(
    file: Path, audit: bool | None, enforces: bool
) -> None:
    loaded = options.load(Options(file, audit), {})
    assert loaded.config.sandbox.mcp.enforce_policy is enforces
    assert loaded.config.sandbox.mcp.fail_closed
    assert loaded.mapping["sandbox"]["mcp"]["enforce_policy"] is enforces


def test_a_socket_that_is_named_outranks_the_files(file: Path) -> None:
    file.write_text(FILE + "control: {socket: /run/of-the-file.sock}\n")
    assert options.load(Options(file, socket=Path("/run/x.sock")), {}).config.control.socket == "/run/x.sock"
    assert options.load(Options(file), {}).config.control.socket == "/run/of-the-file.sock"


def test_the_digest_is_of_what_is_in_force(file: Path) -> None:
    assert options.load(Options(file, audit=True), {}).digest != options.load(Options(file), {}).digest


def test_a_file_that_cannot_be_read_is_a_problem_of_the_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        options.load(Options(tmp_path / "none.yaml"), {})


def test_without_a_file_the_default_audits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = options.load(Options(), {"HOME": str(tmp_path)})
    assert loaded.path is None
    assert not loaded.config.sandbox.mcp.enforce_policy


def test_an_override_keeps_where_servers_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mcp.json").write_text(
        '{"mcpServers": {"x": {"type": "http", "url": "http://10.0.0.1/mcp"}}}'
    )
    (server,) = options.load(Options(audit=True), {"HOME": str(tmp_path)}).config.sandbox.mcp.servers
    assert server.source.endswith(".mcp.json")


def test_a_user_without_privileges_keeps_things_in_places_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/1000"}
    config = options.load(Options(), environ).config
    assert config.store.path == str(tmp_path / ".local/state/agentsh-net/events.db")
    assert config.control.socket == "/run/user/1000/agentsh-net/control.sock"


@pytest.mark.parametrize(
    ("writable", "said", "store", "socket"),
    [
        (False, "", "{home}/.local/state/agentsh-net/events.db", "/run/user/7/agentsh-net/control.sock"),
        (True, "", places.SYSTEM_STORE, places.SYSTEM_SOCKET),
        (False, "store: {path: /x/e.db}\n", "/x/e.db", "/run/user/7/agentsh-net/control.sock"),
        (
            False,
            "control: {socket: /x/c}\nstore: {retention: {max_age_days: 1}}\n",
            "{home}/.local/state/agentsh-net/events.db",
            "/x/c",
        ),
    ],
)
def test_what_a_users_file_leaves_at_a_closed_place_of_the_systems_is_in_the_users_own(
    file: Path, monkeypatch: pytest.MonkeyPatch, writable: bool, said: str, store: str, socket: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(options, "_writable", lambda path: writable)
    file.write_text(FILE + said)
    home = str(file.parent)
    loaded = options.load(Options(file), {"HOME": home, "XDG_RUNTIME_DIR": "/run/user/7"})
    assert loaded.config.store.path == store.format(home=home)
    assert loaded.config.control.socket == socket
    assert loaded.config.sandbox.mcp.fail_closed
    assert (loaded.config.store.retention.max_age_days == 1) is ("retention" in said)


def test_roots_file_is_taken_as_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(options, "_writable", lambda path: False)
    assert options.load(Options(file), {}).config.control.socket == places.SYSTEM_SOCKET


@pytest.mark.parametrize(("open_to_us", "writable"), [("/srv/a", True), ("/srv", False), ("/", False)])
def test_a_place_is_writable_where_the_nearest_directory_that_is_seen_is(
    monkeypatch: pytest.MonkeyPatch, open_to_us: str, writable: bool
) -> None:
    def access(path: Path, mode: int) -> bool:
        return str(path) in {"/", "/srv", "/srv/a"} if mode == os.F_OK else str(path) == open_to_us

    monkeypatch.setattr("os.access", access)
    assert options._writable("/srv/a/b/c.db") is writable


def test_settings_that_wait_for_the_next_start_are_named() -> None:
    old = Config()
    new = replace(old, proxy=replace(old.proxy, port=1, max_frame=7), store=replace(old.store, path="/x"))
    assert options.waiting(old, new) == ("proxy.port", "store")
    assert options.waiting(old, old) == ()


def test_planes_that_were_never_opened_come_with_the_next_start() -> None:
    on = Config()
    off = replace(on, network=replace(on.network, mode="off"))
    assert options.waiting(off, on) == ("network.mode",)
    assert options.waiting(on, off) == ()
