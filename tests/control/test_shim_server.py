"""Any local user may ask at the shims' socket, in order and within bounds; one user's flood costs that user, and nobody else."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.control import shim_allowance, shim_server
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer
from agentsh_net.control.shim_allowance import Allowance
from agentsh_net.control.shim_server import ShimServer
from agentsh_net.core.shim_link import Frames, LinkError, frame


class Visitor:
    """Answers with what it was asked; `later` answers are awaited, `news` are not answered."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def opened(self) -> bytes:
        return frame({"do": "opened"})

    def revoked(self) -> bytes:
        return frame({"do": "revoke"})

    def noted(self, calls: int) -> bytes:
        return frame({"do": "noted"}, b"%d" % calls)

    def answer(self, header: Mapping[str, Any], payload: bytes) -> bytes | Awaitable[bytes]:
        if header["ask"] == "called":
            self.desk.asked += payload.split(b"\n")
            self.desk.taken += 1
            return b""
        self.desk.asked.append(payload)
        match header["ask"]:
            case "later":
                return self._later(payload)
            case "bug":
                return self._bug()
            case "nonsense":
                raise LinkError("nonsense")
        return frame({"do": "echo"}, payload)

    async def _later(self, payload: bytes) -> bytes:
        await self.desk.gate.wait()
        return frame({"do": "echo"}, payload)

    async def _bug(self) -> bytes:
        await asyncio.sleep(0)
        raise ZeroDivisionError


class Desk:
    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.begun: list[tuple[Peer, Mapping[str, Any], bool]] = []
        self.ended = 0
        self.taken = 0  # times that news were
        self.room = True
        self.gate = asyncio.Event()

    def begin(self, peer: Peer, opening: Mapping[str, Any], *, trusted: bool) -> Visitor:
        if opening.get("refuse"):
            raise LinkError("no")
        self.begun.append((peer, opening, trusted))
        return Visitor(self)

    def takes_news(self) -> bool:
        return self.room

    def end(self, visit: Visitor) -> None:
        self.ended += 1


class Shim:
    """The other end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = Frames()
        self._got: list[tuple[dict[str, Any], bytes]] = []

    def send(self, ask: str, payload: bytes = b"", **facts: Any) -> None:
        self.writer.write(frame({"ask": ask, **facts}, payload))

    async def answer(self) -> tuple[str, bytes]:
        while not self._got:
            data = await self._reader.read(1 << 16)
            if not data:
                raise EOFError
            self._got += self._frames.feed(data)
        header, payload = self._got.pop(0)
        return header["do"], payload

    async def answers(self) -> None:
        """Read until the daemon hangs up."""
        while True:
            await self.answer()


class Scene:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.desk = Desk()
        self.bugs: list[BaseException] = []
        self.server = ShimServer(path, self.desk, self.bugs.append)

    @property
    def user(self) -> Allowance:
        return self.server._users[os.getuid()]

    async def shim(self, *, opened: bool = True) -> Shim:
        shim = Shim(*await asyncio.open_unix_connection(self.path))
        if opened:
            shim.send("open")
            assert await shim.answer() == ("opened", b"")
        return shim


async def _until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.005)


def play(path: Path, scene: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        here = Scene(path)
        await here.server.start()
        try:
            async with asyncio.timeout(20):
                await scene(here)
        finally:
            await here.server.close()

    asyncio.run(main())


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
            await ShimServer(here.path, here.desk, here.bugs.append).start()
        assert caught.value.kind == "already_running"

    play(tmp_path / "s.sock", scene)


def test_the_peer_is_who_the_kernel_says(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        await here.shim()
        ((peer, opening, trusted),) = here.desk.begun
        assert (peer.pid, peer.uid, trusted) == (os.getpid(), os.getuid(), True)
        assert opening["ask"] == "open"

    play(tmp_path / "s.sock", scene)


def test_answers_come_in_the_order_of_the_questions_though_one_takes_its_time(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        for ask, payload in (("now", b"1"), ("later", b"2"), ("now", b"3")):
            shim.send(ask, payload)
        assert await shim.answer() == ("echo", b"1")
        while b"2" not in here.desk.asked:
            await asyncio.sleep(0)
        assert here.desk.asked == [b"1", b"2"]
        here.desk.gate.set()
        assert [await shim.answer() for _ in range(2)] == [("echo", b"2"), ("echo", b"3")]

    play(tmp_path / "s.sock", scene)


def test_news_gather_and_what_is_asked_after_them_is_answered(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        for number in range(500):
            shim.send("called", b"%d" % number)
            if number % 50 == 0:
                await shim.writer.drain()
        shim.send("now", b"and?")
        while (said := await shim.answer())[0] == "noted":
            pass
        assert said == ("echo", b"and?")
        assert here.desk.asked == [*(b"%d" % number for number in range(500)), b"and?"]
        assert here.desk.taken < 100

    play(tmp_path / "s.sock", scene)


def test_who_asks_often_does_not_wait_for_news_to_gather(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim_server, "REST", 60.0)
    monkeypatch.setattr(shim_server, "QUIET", 5.0)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        for number in range(20):
            shim.send("called", b"news")
            assert await shim.answer() == ("noted", b"1")
            shim.send("now", b"%d" % number)
            assert await shim.answer() == ("echo", b"%d" % number)

    play(tmp_path / "s.sock", scene)


def test_everybody_is_told_of_another_policy(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        one, two = await here.shim(), await here.shim()
        here.server.revoke()
        assert await one.answer() == await two.answer() == ("revoke", b"")

    play(tmp_path / "s.sock", scene)


@pytest.mark.parametrize(
    "data",
    [b"hello\n", frame({"ask": "open", "refuse": True}), frame({"ask": "open"}) + frame({"ask": "nonsense"})],
)
def test_who_does_not_speak_the_protocol_is_hung_up_on(tmp_path: Path, data: bytes) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim(opened=False)
        shim.writer.write(data)
        with pytest.raises((EOFError, ConnectionError)):
            await shim.answers()
        assert not here.bugs

    play(tmp_path / "s.sock", scene)


def test_a_bug_in_an_answer_is_told_and_ends_that_connection_alone(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        one, two = await here.shim(), await here.shim()
        one.send("bug")
        with pytest.raises((EOFError, ConnectionError)):
            await one.answer()
        assert [type(bug) for bug in here.bugs] == [ZeroDivisionError]
        two.send("now", b"still here")
        assert await two.answer() == ("echo", b"still here")
        assert here.desk.ended == 1

    play(tmp_path / "s.sock", scene)


def test_a_user_has_so_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim_server, "MAX_SHIMS_OF_USER", 2)

    async def scene(here: Scene) -> None:
        one, _two = await here.shim(), await here.shim()
        with pytest.raises((EOFError, ConnectionError)):
            await here.shim()
        one.writer.close()
        while here.desk.ended == 0:
            await asyncio.sleep(0.001)
        await here.shim()

    play(tmp_path / "s.sock", scene)


def test_what_one_user_makes_the_daemon_hold_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim_server, "MAX_HELD", 100_000)

    async def scene(here: Scene) -> None:
        shims = [await here.shim() for _ in range(4)]
        for shim in shims:  # each begins a frame and does not end it
            shim.writer.write(frame({"ask": "now"}, b"x" * 60_000)[:-1])
        ended = 0
        while not ended:
            ended = here.desk.ended
            await asyncio.sleep(0.001)
        assert ended < len(shims)

    play(tmp_path / "s.sock", scene)


def test_a_connection_that_does_not_open_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim_server, "_OPENING", 0.01)

    async def scene(here: Scene) -> None:
        shim = await here.shim(opened=False)
        with pytest.raises((EOFError, ConnectionError)):
            await shim.answer()

    play(tmp_path / "s.sock", scene)


def test_who_asks_too_much_waits_with_signs_of_life_and_gets_every_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(shim_allowance, "BURST", 10)
    monkeypatch.setattr(shim_allowance, "PER_SECOND", 200)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        for number in range(30):
            shim.send("now", b"%d" % number)
        got: list[bytes] = []
        waits = 0
        while len(got) < 30:
            do, payload = await shim.answer()
            waits += do == "wait"
            got += [payload] if do == "echo" else []
        assert got == [b"%d" % number for number in range(30)]
        assert waits

    play(tmp_path / "s.sock", scene)


def test_calls_that_were_told_of_are_noted_and_charged_one_by_one(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        before = here.user.tokens
        shim.send("called", b"one\ntwo\nthree")
        assert await shim.answer() == ("noted", b"3")
        assert here.user.tokens == pytest.approx(before - 3, abs=1)

    play(tmp_path / "s.sock", scene)


def test_news_wait_with_signs_of_life_where_there_is_no_room_on_record(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        here.desk.room = False
        shim.send("called", b"one")
        shim.send("now", b"2")
        assert await shim.answer() == ("wait", b"")
        assert here.desk.asked == []
        here.desk.room = True
        got = [await shim.answer() for _ in range(2)]
        while ("echo", b"2") not in got:
            got.append(await shim.answer())
        assert ("noted", b"1") in got
        assert here.desk.asked == [b"one", b"2"]

    play(tmp_path / "s.sock", scene)


def test_what_a_shim_told_before_it_died_goes_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    # As one whose client kills it with calls on the way, and answers left unread, so that the kernel says ECONNRESET.
    monkeypatch.setattr(shim_allowance, "BURST", 5)
    monkeypatch.setattr(shim_allowance, "PER_SECOND", 2000)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        shim.send("now", b"unread")
        await _until(lambda: here.desk.asked == [b"unread"])
        for number in range(300):  # more than is read ahead
            shim.send("called", b"%d" % number)
        shim.writer.transport.set_write_buffer_limits(0)
        await shim.writer.drain()  # all of it is the kernel's or the daemon's
        shim.send("later", b"nobody waits for it")
        shim.writer.transport.abort()
        await _until(lambda: here.desk.ended == 1)
        assert here.desk.asked == [b"unread", *(b"%d" % number for number in range(300))]
        assert here.user.connections == 0
        assert here.user.held == 0

    play(tmp_path / "s.sock", scene)


def test_what_was_told_goes_on_record_where_the_daemon_ends(tmp_path: Path) -> None:
    desks: list[Desk] = []

    async def scene(here: Scene) -> None:
        desks.append(here.desk)
        shim = await here.shim()
        here.desk.room = False
        shim.send("called", b"one")
        assert await shim.answer() == ("wait", b"")
        shim.send("called", b"two")

    play(tmp_path / "s.sock", scene)
    assert desks[0].asked == [b"one", b"two"]
