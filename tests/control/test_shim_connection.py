"""Questions are answered in order, calls that passed go on record whatever happens, and what one user makes the daemon hold is bounded."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from loopback import until
from shim_stage import Scene, Shim, play

from agentsh_net.control import shim_allowance
from agentsh_net.control import shim_connection as module
from agentsh_net.core.links.shim_link import frame


def test_the_peer_is_who_the_kernel_says(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        await here.shim()
        ((peer, opening, trusted),) = here.service.begun
        assert (peer.pid, peer.uid, trusted) == (os.getpid(), os.getuid(), True)
        assert opening["ask"] == "open"

    play(tmp_path / "s.sock", scene)


def test_answers_come_in_the_order_of_the_questions_though_one_takes_its_time(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        for ask, payload in (("now", b"1"), ("later", b"2"), ("now", b"3")):
            shim.send(ask, payload)
        assert await shim.answer() == ("echo", b"1")
        while b"2" not in here.service.asked:
            await asyncio.sleep(0)
        assert here.service.asked == [b"1", b"2"]
        here.service.gate.set()
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
        assert here.service.asked == [*(b"%d" % number for number in range(500)), b"and?"]
        assert here.service.taken < 100

    play(tmp_path / "s.sock", scene)


def test_who_asks_often_does_not_wait_for_news_to_gather(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST", 60.0)
    monkeypatch.setattr(module, "QUIET", 5.0)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        for number in range(20):
            shim.send("called", b"news")
            assert await shim.answer() == ("noted", b"1")
            shim.send("now", b"%d" % number)
            assert await shim.answer() == ("echo", b"%d" % number)

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


@pytest.mark.parametrize("ask", ["bug", "bug at once"])
def test_a_bug_in_an_answer_is_told_and_its_line_does_not_pass_for_it(tmp_path: Path, ask: str) -> None:
    async def scene(here: Scene) -> None:
        one, two = await here.shim(), await here.shim()
        one.send(ask, b"line")
        assert await one.answer() == ("failed", b"line")
        assert [type(bug) for bug in here.bugs] == [ZeroDivisionError]
        one.send("now", b"still here")
        assert await one.answer() == ("echo", b"still here")
        one.send(ask, b"worse")  # for which there is no answer at all
        with pytest.raises((EOFError, ConnectionError)):
            await one.answer()
        two.send("now", b"still here")
        assert await two.answer() == ("echo", b"still here")
        assert here.service.ended == 1

    play(tmp_path / "s.sock", scene)


def test_who_waits_for_an_answer_that_takes_long_hears_that_it_is_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP_WAITING", 0.01)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        shim.send("later", b"x")
        assert [await shim.answer() for _ in range(3)] == [("wait", b"")] * 3
        here.service.gate.set()
        while (answer := await shim.answer())[0] == "wait":
            pass
        assert answer == ("echo", b"x")
        shim.send("now", b"y")
        assert await shim.answer() == ("echo", b"y")  # and no more of that

    play(tmp_path / "s.sock", scene)


def test_what_one_user_makes_the_daemon_hold_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_HELD", 100_000)

    async def scene(here: Scene) -> None:
        shims = [await here.shim() for _ in range(4)]
        for shim in shims:  # each begins a frame and does not end it
            shim.writer.write(frame({"ask": "now"}, b"x" * 60_000)[:-1])
        ended = 0
        while not ended:
            ended = here.service.ended
            await asyncio.sleep(0.001)
        assert ended < len(shims)

    play(tmp_path / "s.sock", scene)


def test_a_connection_that_does_not_open_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPENING", 0.01)

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
        here.service.room = False
        shim.send("called", b"one")
        shim.send("now", b"2")
        assert await shim.answer() == ("wait", b"")
        assert here.service.asked == []
        here.service.room = True
        got = [await shim.answer() for _ in range(2)]
        while ("echo", b"2") not in got:
            got.append(await shim.answer())
        assert ("noted", b"1") in got
        assert here.service.asked == [b"one", b"2"]

    play(tmp_path / "s.sock", scene)


async def telling(here: Scene, shim: Shim, paused: int = 300, unread: int = 20) -> list[bytes]:
    """Tell of calls while there is no room on record: more than is read ahead, so that the rest waits in the socket."""
    (connection,) = here.server._connections
    here.service.room = False
    calls = [b"%d" % number + b"x" * 4000 for number in range(paused + unread)]
    for call in calls[:paused]:
        shim.send("called", call)
    await until(lambda: not connection._transport.is_reading())
    for call in calls[paused:]:
        shim.send("called", call)
    shim.writer.transport.set_write_buffer_limits(0)
    await shim.writer.drain()
    return calls


def test_what_a_shim_told_before_it_died_goes_on_record(tmp_path: Path) -> None:
    # As one whose client kills it with calls on the way, and answers left unread, so that the kernel says ECONNRESET.
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        shim.send("now", b"unread")
        await until(lambda: here.service.asked == [b"unread"])
        calls = await telling(here, shim)
        shim.send("later", b"nobody waits for it")
        shim.writer.transport.abort()
        here.service.room = True
        await until(lambda: here.service.ended == 1)
        assert here.service.asked == [b"unread", *calls]
        assert (here.user.connections, here.user.held) == (0, 0)

    play(tmp_path / "s.sock", scene)


def test_what_a_shim_told_behind_a_question_goes_on_record_though_it_died_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP_WAITING", 0.01)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        shim.send("later", b"question")
        shim.send("called", b"call")
        await until(lambda: here.service.asked == [b"question"])
        shim.writer.transport.abort()
        await until(lambda: here.service.ended == 1)
        assert here.service.asked == [b"question", b"call"]

    play(tmp_path / "s.sock", scene)


def test_what_waits_in_the_socket_goes_on_record_where_the_daemon_ends(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        calls = await telling(here, await here.shim())
        here.service.room = True
        await here.server.close()
        assert here.service.asked == calls

    play(tmp_path / "s.sock", scene)


@pytest.mark.parametrize("ask", ["called", "later"])
def test_a_shim_that_says_nothing_more_is_kept_until_all_it_said_is_answered_and_no_longer(
    tmp_path: Path, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP_WAITING", 0.01)

    async def scene(here: Scene) -> None:
        shim = await here.shim()
        here.service.room = False
        shim.send(ask, b"one")
        shim.send(ask, b"two")
        shim.writer.write_eof()
        assert await shim.answer() == ("wait", b"")
        here.service.room = True
        here.service.gate.set()
        with pytest.raises(EOFError):
            await shim.answers()
        assert (here.service.asked, here.user.connections) == ([b"one", b"two"], 0)

    play(tmp_path / "s.sock", scene)


def test_who_does_not_read_answers_gets_no_more_until_it_does(tmp_path: Path) -> None:
    async def scene(here: Scene) -> None:
        shim = await here.shim()
        (connection,) = here.server._connections
        lines = [b"%d" % number + b"x" * 60_000 for number in range(200)]
        for line in lines:
            shim.send("now", line)
        await until(lambda: connection._full)
        assert len(here.service.asked) < len(lines)
        assert [await shim.answer() for _ in lines] == [("echo", line) for line in lines]

    play(tmp_path / "s.sock", scene)
