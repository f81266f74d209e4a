"""The socket is every local user's, for their own lines: so many connections each, all told of a new policy, none cut off unheard."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from shim_stage import Scene, Service, play

from agentsh_net.control import shim_server
from agentsh_net.control.errors import ControlError
from agentsh_net.control.shim_server import ShimServer


def test_the_socket_is_everybodys_and_its_folder_lets_them_pass_and_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    async def scene(here: Scene) -> None:
        assert stat.S_IMODE(here.path.stat().st_mode) == 0o666
        assert stat.S_IMODE(folder.stat().st_mode) == 0o751

    play(folder / "s.sock", scene)
    assert not list(folder.iterdir())


def test_a_private_folder_stays_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    async def scene(here: Scene) -> None:
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700

    play(tmp_path / "s.sock", scene)


def test_a_second_daemon_is_refused(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        with pytest.raises(ControlError) as caught:
            await ShimServer(here.path, here.service, here.bugs.append).start()
        assert caught.value.kind == "already_running"

    play(tmp_path / "s.sock", scene)


def test_everybody_is_told_of_another_policy(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        one, two = await here.shim(), await here.shim()
        here.server.revoke()
        assert await one.answer() == await two.answer() == ("revoke", b"")

    play(tmp_path / "s.sock", scene)


@pytest.mark.parametrize("bound", ["MAX_SHIMS", "MAX_SHIMS_OF_USER"])
def test_there_are_so_many_connections_and_so_many_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(shim_server, bound, 2)

    async def scene(here: Scene) -> None:
        one, _two = await here.shim(), await here.shim()
        with pytest.raises((EOFError, ConnectionError)):
            await here.shim()
        one.writer.close()
        while here.service.ended == 0:
            await asyncio.sleep(0.001)
        await here.shim()

    play(tmp_path / "s.sock", scene)


def test_who_is_connected_as_the_daemon_ends_is_hung_up_on(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        await here.server.close()
        with pytest.raises((EOFError, ConnectionError)):
            await shim.answer()

    play(tmp_path / "s.sock", scene)


@pytest.mark.parametrize("room", [True, False])
def test_what_was_told_goes_on_record_where_the_daemon_ends_once_there_is_room_or_none_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: bool
) -> None:
    services: list[Service] = []
    monkeypatch.setattr(shim_server, "CLOSING", 60.0 if room else 0.05)

    async def scene(here: Scene) -> None:
        services.append(here.service)
        shim = await here.shim()
        here.service.room = False
        shim.send("called", b"one")
        assert await shim.answer() == ("wait", b"")
        shim.send("called", b"two")
        if room:
            asyncio.get_running_loop().call_later(0.1, setattr, here.service, "room", True)

    play(tmp_path / "s.sock", scene)
    assert (services[0].asked, services[0].crowded) == ([b"one", b"two"], not room)
