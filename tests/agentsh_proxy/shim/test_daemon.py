"""The shim's line to the daemon: answers in order, standing verdicts until they are revoked, and a daemon that is away never a hang."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agentsh_proxy.shim.daemon import LOOK, MAX_STANDING, PATIENCE, RETRY, Answer, Daemon

from agentsh_net.core.links.shim_link import MAX_HEADER, Frames, frame


class Scene:
    """A listening socket, a shim's end of it, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.sock"
        self.now = 100.0
        self.said: list[str] = []
        self.answers: list[Answer | None] = []
        self.frames = Frames()
        opening = {"ask": "open", "server": "fs", "session": "", "hide": False}
        self.daemon = Daemon(
            str(self.path), opening, closed=False, now=lambda: self.now, say=self.said.append
        )
        self.listening: socket.socket | None = None
        self.connection: socket.socket | None = None

    def listen(self) -> None:
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(str(self.path))
        self.listening.listen()
        self.listening.settimeout(60)

    def accept(self) -> list[dict[str, Any]]:
        assert self.listening is not None
        self.connection, _ = self.listening.accept()
        self.connection.settimeout(60)
        self.frames = Frames()
        return self.asked()

    def asked(self) -> list[dict[str, Any]]:
        assert self.connection is not None
        return [header for header, _ in self.frames.feed(self.connection.recv(1 << 16))]

    def say(self, do: str, payload: Any = None, **facts: Any) -> None:
        assert self.connection is not None
        self.connection.sendall(
            frame({"do": do, "closed": False, **facts}, json.dumps(payload).encode() if payload else b"")
        )
        self.daemon.read()

    def ask(self) -> None:
        self.daemon.ask({"ask": "client"}, b"{}", self.answers.append)

    def fill(self) -> int:
        """Tell of calls until the socket takes no more; return how many."""
        told = 0
        while self.daemon.tell(b"x" * 3_000_000):  # more than it takes at once
            told += 1
            self.daemon.flush()
        assert self.daemon.behind
        return told

    def hang_up(self) -> None:
        assert self.connection is not None
        self.connection.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    here = Scene(tmp_path)
    yield here
    for each in (here.listening, here.connection):
        if each is not None:
            each.close()


@pytest.fixture
def there(scene: Scene) -> Scene:
    scene.listen()
    assert scene.daemon.connect()
    (opening,) = scene.accept()
    assert (opening["ask"], opening["server"], opening["unjudged"]) == ("open", "fs", 0)
    scene.say("opened", declared=True)
    assert scene.said == []
    return scene


def test_answers_are_given_in_the_order_of_the_questions(there: Scene) -> None:
    there.ask()
    there.ask()
    there.say("pass")
    there.say("edit", {"forward": "x", "replies": ["r"]})
    first, second = there.answers
    assert first is not None and first.passes
    assert second is not None and (second.passes, second.forward, second.replies) == (False, b"x", (b"r",))


def test_an_edit_that_says_nothing_lets_nothing_through(there: Scene) -> None:
    there.ask()
    there.say("edit")
    (answer,) = there.answers
    assert answer is not None and (answer.passes, answer.forward, answer.replies) == (False, None, ())


@pytest.mark.parametrize("closed", [True, False])
def test_until_the_daemon_spoke_requests_to_read_count_where_its_policy_is_to_close(tmp_path: Path, closed: bool) -> None:  # fmt: skip
    silent = Daemon(str(tmp_path), {}, closed=closed, now=lambda: 0.0, say=print)
    assert (silent.reads, silent.closed) == (closed, closed)


def test_every_line_is_asked_about_until_the_opening_is_answered(scene: Scene) -> None:
    scene.listen()
    assert not scene.daemon.wants_all
    scene.daemon.connect()
    scene.accept()
    assert scene.daemon.wants_all
    scene.say("opened", declared=True)
    assert not scene.daemon.wants_all


def test_an_opening_is_waited_for_and_says_whether_the_program_has_to_be_the_trusted_one(scene: Scene) -> None:  # fmt: skip
    scene.listen()
    scene.daemon.connect()
    scene.accept()
    assert scene.connection is not None
    opened = {"do": "opened", "closed": False, "pin_binary": True}
    scene.connection.sendall(frame(opened, b"not this one"))
    assert scene.daemon.opened()
    scene.ask()
    scene.say("pass", declared=False)  # which only an opening says
    assert (scene.daemon.pins_binary, scene.daemon.refusal, scene.said) == (True, "not this one", [])
    scene.daemon.reopen({"binary": "b"})
    (opening,) = scene.accept()
    assert (opening["server"], opening["binary"], scene.daemon.wants_all) == ("fs", "b", True)
    scene.say("opened")
    assert (scene.daemon.pins_binary, scene.daemon.refusal) == (False, "")


@pytest.mark.parametrize("hangs_up", [True, False])
def test_an_opening_is_waited_for_no_longer_than_a_daemon_is_there(scene: Scene, hangs_up: bool) -> None:
    scene.listen()
    scene.daemon.connect()
    scene.accept()
    if hangs_up:
        scene.hang_up()
    scene.now += PATIENCE
    assert not scene.daemon.opened()
    assert (scene.daemon.fd, scene.daemon.wants_all) == (None, False)


def test_what_does_not_go_at_once_goes_as_the_daemon_reads(there: Scene) -> None:
    told, got = there.fill(), []

    def drain() -> None:
        while len(got) < told:
            got.extend(there.asked())

    with ThreadPoolExecutor() as aside:
        draining = aside.submit(drain)
        there.daemon.wait(lambda: not there.daemon.behind)
        draining.result()
    assert [question["size"] for question in got] == [3_000_000] * told
    assert there.daemon.fd is not None


def test_what_half_left_is_not_said_to_the_next_daemon(there: Scene) -> None:
    there.fill()
    there.hang_up()
    there.daemon.write()
    assert not (there.daemon.wants_to_write or there.daemon.behind)
    assert there.daemon.connect()
    assert [question["ask"] for question in there.accept()] == ["open"]


def test_news_that_nobody_heard_are_counted_for_the_next_daemon_and_not_told_again(there: Scene) -> None:
    assert there.daemon.tell(b"{}")
    there.hang_up()
    there.daemon.read()
    there.daemon.connect()
    assert there.accept()[0]["unrecorded"] == 1
    there.ask()
    assert [question["ask"] for question in there.asked()] == ["client"]


def test_a_question_behind_news_that_nobody_takes_is_answered_by_nobody_once(there: Scene) -> None:
    assert there.daemon.tell(b"{}")
    there.hang_up()
    there.ask()
    assert there.answers == [None]


def test_what_is_reported_is_told_where_there_is_a_daemon(scene: Scene) -> None:
    scene.listen()
    scene.daemon.report({"ask": "x"})
    scene.daemon.connect()
    assert [asked["ask"] for asked in scene.accept()] == ["open"]
    scene.say("opened")
    scene.now += 1000
    scene.daemon.report({"ask": "y"})
    assert ([asked["ask"] for asked in scene.asked()], scene.daemon.deadline) == (["y"], None)
    scene.daemon.report({"ask": "z" * 3_000_000})
    assert scene.daemon.deadline == scene.now + PATIENCE


def test_a_daemon_that_is_away_is_looked_for_with_what_the_client_says_and_in_time(there: Scene) -> None:
    for find in (there.daemon.hear, there.daemon.expire):
        there.hang_up()
        there.daemon.read()
        if find == there.daemon.expire:
            there.now += LOOK - 0.01
            find()
            assert there.daemon.fd is None
            there.now = there.daemon.deadline or 0.0
        find()
        assert there.daemon.fd is not None
        there.accept()
        there.say("opened")


def test_a_daemon_that_nobody_asks_may_be_silent(there: Scene) -> None:
    there.now += 1000
    there.daemon.read()
    there.daemon.expire()
    assert (there.daemon.fd is not None, there.daemon.deadline) == (True, None)


def test_without_a_daemon_a_question_is_answered_by_nobody_at_once(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    assert scene.answers == [None, None]
    assert len(scene.said) == 1
    assert "UNJUDGED" in scene.said[0]


def test_a_daemon_that_comes_is_found_and_hears_what_it_missed(scene: Scene) -> None:
    scene.ask()
    scene.daemon.unjudged += 3
    scene.daemon.refused += 2
    scene.listen()
    scene.ask()  # the very next line: none passes because one was just tried in vain
    opening, question = scene.accept()
    assert (opening["unjudged"], opening["refused"], question["ask"]) == (3, 2, "client")
    assert (scene.daemon.unjudged, scene.daemon.refused) == (0, 0)


def test_a_daemon_that_lets_nobody_in_is_not_asked_with_every_line(scene: Scene) -> None:
    scene.listen()
    scene.daemon.connect()
    scene.accept()
    scene.hang_up()
    scene.daemon.read()
    scene.ask()
    assert scene.answers == [None]
    scene.now += RETRY
    scene.ask()
    assert [asked["ask"] for asked in scene.accept()] == ["open", "client"]


def test_a_line_after_a_conversation_that_broke_begins_the_next_one(there: Scene) -> None:
    there.ask()
    there.hang_up()
    there.daemon.read()
    there.ask()
    assert there.answers == [None]
    assert [asked["ask"] for asked in there.accept()] == ["open", "client"]


def test_when_the_daemon_dies_everybody_who_waits_is_told(there: Scene) -> None:
    there.ask()
    there.ask()
    there.hang_up()
    there.daemon.read()
    assert there.answers == [None, None]
    assert there.daemon.fd is None
    assert there.daemon.deadline == there.now + LOOK  # when it is looked for


def test_what_the_policy_wants_is_kept_while_the_daemon_is_away(there: Scene) -> None:
    there.say("revoke", closed=True)
    assert there.daemon.closed
    there.hang_up()
    there.daemon.read()
    assert there.daemon.closed
    assert "blocked (fail_closed)" in there.said[-1]


def test_a_denied_server_stays_so_while_the_daemon_is_away(there: Scene) -> None:
    there.say("revoke", denied=True)
    there.hang_up()
    there.daemon.read()
    assert there.daemon.wants_all
    assert "blocked (the server is denied)" in there.said[-1]


@pytest.mark.parametrize("waiting", [Scene.ask, Scene.fill], ids=["a question", "news"])
def test_what_is_reported_meanwhile_gives_a_daemon_that_hangs_no_more_time(
    there: Scene, waiting: Any
) -> None:
    waiting(there)
    there.now += PATIENCE - 1
    there.daemon.report({"ask": "x"})
    there.now += 1
    there.daemon.expire()
    assert there.daemon.fd is None


def test_a_daemon_that_does_not_answer_counts_as_away_in_time_whatever_else_it_is_asked(there: Scene) -> None:
    there.now += 1000
    there.ask()
    deadline = there.daemon.deadline
    assert deadline == there.now + PATIENCE
    there.now = deadline - 0.01
    there.ask()
    there.daemon.expire()
    assert there.answers == []
    there.now = deadline
    there.daemon.expire()
    assert there.answers == [None, None]


def test_news_give_it_no_more_time_for_a_question(there: Scene) -> None:
    there.ask()
    there.now += PATIENCE - 1
    there.fill()
    there.now += 1
    there.daemon.expire()
    assert there.answers == [None]


def test_a_sign_of_life_gives_it_more_time(there: Scene) -> None:
    there.ask()
    there.now += PATIENCE - 1
    there.say("wait")
    there.now += PATIENCE - 1
    there.daemon.expire()
    assert there.answers == []


def test_a_verdict_stands_until_it_is_revoked(there: Scene) -> None:
    assert not there.daemon.stands("ls")
    there.ask()
    there.say("pass", stands=True)
    assert there.answers[0] is not None and there.answers[0].stands
    there.daemon.stand("ls")
    assert there.daemon.stands("ls")
    assert not there.daemon.stands("rm")
    assert not there.daemon.stands("ls", "rm"), "not all of them do"
    assert there.connection is not None
    there.connection.sendall(frame({"do": "revoke", "closed": False}))
    there.daemon.hear()  # as the relay does with every read of the client, before its lines are looked at
    assert not there.daemon.stands("ls")


def test_what_the_policy_says_is_heard_with_every_frame(there: Scene) -> None:
    def heard() -> tuple[bool, ...]:
        return there.daemon.results, there.daemon.reads, there.daemon.denied, there.daemon.wants_all

    assert not any(heard())
    there.say("revoke", results=True, reads=True, denied=True, denial="no")
    assert all(heard()) and there.daemon.denial == "no"
    there.ask()
    there.say("pass")
    assert not any(heard()) and there.daemon.denial == "no"


def test_no_verdict_stands_once_the_daemon_is_gone(there: Scene) -> None:
    there.daemon.stand("ls")
    there.hang_up()
    there.daemon.hear()
    assert not there.daemon.stands("ls")


def test_standing_verdicts_are_bounded(there: Scene) -> None:
    for number in range(MAX_STANDING + 10):
        there.daemon.stand(str(number))
    assert len(there.daemon._standing) == MAX_STANDING


def test_news_are_told_at_once_or_not_at_all(there: Scene) -> None:
    assert there.daemon.tell(b"{}")
    assert there.daemon.flush()
    assert [q["ask"] for q in there.asked()] == ["called"]
    there.now += 1000
    assert 0 < there.fill() < 1000  # the socket is full: the next call has to wait for its verdict
    assert there.daemon.deadline == there.now + PATIENCE  # and the server for the last one
    assert not there.daemon.tell(b"")
    there.now += PATIENCE
    there.daemon.expire()
    assert there.daemon.fd is None


def test_a_daemon_that_takes_several_calls_is_told_of_them_in_one_frame(scene: Scene) -> None:
    scene.listen()
    scene.daemon.connect()
    scene.accept()
    scene.say("opened", declared=True, several=True)
    assert scene.daemon.tell(b"one") and scene.daemon.tell(b"two\nthree", calls=2)
    assert scene.daemon.flush()
    assert scene.connection is not None
    assert list(scene.frames.feed(scene.connection.recv(1 << 16))) == [
        ({"ask": "called", "size": 13}, b"one\ntwo\nthree")
    ]


def test_an_older_daemon_is_told_of_each_by_itself_and_not_waited_for(there: Scene) -> None:
    assert there.daemon.tell(b"one") and there.daemon.tell(b"two")
    assert there.daemon.flush()
    assert not there.daemon.tell(b"three\nfour", calls=2), "these are read one by one"
    assert [q["size"] for q in there.asked()] == [3, 3]
    there.hang_up()
    there.daemon.read()
    assert there.daemon.unrecorded == 0  # it does not say what is on record


def test_news_leave_before_the_question_that_comes_after_them(there: Scene) -> None:
    assert there.daemon.tell(b"{}")
    there.ask()
    assert [q["ask"] for q in there.asked()] == ["called", "client"]


def test_calls_that_a_daemon_took_and_did_not_note_are_counted_when_it_ends(scene: Scene) -> None:
    scene.listen()
    scene.daemon.connect()
    assert scene.accept()[0]["counts"] is True
    scene.say("opened", declared=True, several=True)
    assert scene.daemon.tell(b"1\n2\n3\n4", calls=4)
    assert scene.daemon.tell(b"5")
    assert scene.daemon.flush()
    scene.say("noted", calls=3)
    scene.hang_up()
    scene.daemon.read()
    assert scene.daemon.unrecorded == 2
    assert scene.daemon.connect()
    (opening,) = scene.accept()
    assert (opening["unrecorded"], opening["unjudged"]) == (2, 0)
    assert scene.daemon.unrecorded == 0
    scene.hang_up()
    scene.daemon.read()
    assert scene.daemon.unrecorded == 0  # they were counted


def test_telling_nobody_is_no_telling(scene: Scene) -> None:
    assert not scene.daemon.tell(b"{}")


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\n",
        frame({"do": "pass"}),
        frame({"do": "dance"}),
        frame({"do": "edit"}, b"{"),
        frame({"do": "noted"}),
    ],
)
def test_a_daemon_that_speaks_nonsense_counts_as_away(there: Scene, data: bytes) -> None:
    if b"edit" in data or b"dance" in data:
        there.ask()
    assert there.connection is not None
    there.connection.sendall(data)
    there.daemon.read()
    assert there.daemon.fd is None


def test_an_undeclared_server_is_said_once(scene: Scene) -> None:
    scene.listen()
    for _ in range(2):
        scene.daemon.connect()
        scene.accept()
        scene.say("opened", declared=False)
        scene.hang_up()
        scene.daemon.read()
    assert len([line for line in scene.said if "declares no server" in line]) == 1


def test_a_question_that_the_daemon_would_hang_up_on_is_answered_here(there: Scene) -> None:
    there.daemon.ask({"ask": "server", "asked": "x" * MAX_HEADER}, b"{}", there.answers.append)
    (answer,) = there.answers
    assert answer is not None and not answer.passes and answer.forward is None
    there.ask()  # the conversation goes on
    assert [question["ask"] for question in there.asked()] == ["client"]
