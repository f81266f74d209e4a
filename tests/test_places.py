"""A user without privileges finds the own daemon, root the system's, and the defaults are those of the settings."""

from __future__ import annotations

from pathlib import Path

from agentsh_net import places
from agentsh_net.core.configuration.settings import Control, Store


def test_the_systems_places_are_those_of_the_settings() -> None:
    assert Control().socket == places.SYSTEM_SOCKET
    assert Store().path == places.SYSTEM_STORE


def test_xdg_decides_where_a_user_keeps_things() -> None:
    environ = {"XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"}
    assert places.own_store("/h", environ) == "/s/agentsh-net/events.db"
    assert places.own_socket("/h", environ) == "/r/agentsh-net/control.sock"
    assert places.own_store("/h", {}) == "/h/.local/state/agentsh-net/events.db"
    assert places.own_socket("/h", {}) == "/h/.local/state/agentsh-net/control.sock"


def test_the_own_daemon_is_asked_where_it_runs(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert places.socket_to_ask(environ, 1000) == places.SYSTEM_SOCKET
    assert places.store_to_read(environ, 1000) == places.SYSTEM_STORE
    for path in (places.own_socket(str(tmp_path), environ), places.own_store(str(tmp_path), environ)):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        assert path in {places.socket_to_ask(environ, 1000), places.store_to_read(environ, 1000)}
    assert places.socket_to_ask(environ, 0) == places.SYSTEM_SOCKET
    assert places.store_to_read(environ, 0) == places.SYSTEM_STORE
