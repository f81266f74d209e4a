"""The shim's line to the daemon: answers in order, standing verdicts until they are revoked, and a daemon that is away never a hang."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
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
    return scene


def test_answers_are_given_in_the_order_of_the_questions(there: Scene) -> None:
    there.ask()
    there.ask()
    there.say("pass")
    there.say("edit", {"forward": "x", "replies": ["r"]})
    first, second = there.answers
    assert first is not None and first.passes
    assert second is not None and (second.passes, second.forward, second.replies) == (False, b"x", (b"r",))


def test_without_a_daemon_a_question_is_answered_by_nobody_at_once(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    assert scene.answers == [None, None]
    assert len(scene.said) == 1
    assert "UNJUDGED" in scene.said[0]


def test_a_daemon_that_comes_is_found_and_hears_what_it_missed(scene: Scene) -> None:
    scene.ask()
    scene.daemon.unjudged += 3
    scene.listen()
    scene.ask()  # the very next line: none passes because one was just tried in vain
    opening, question = scene.accept()
    assert (opening["unjudged"], question["ask"]) == (3, "client")
    assert scene.daemon.unjudged == 0


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


def test_a_daemon_that_does_not_answer_counts_as_away_in_time(there: Scene) -> None:
    there.ask()
    deadline = there.daemon.deadline
    assert deadline == there.now + PATIENCE
    there.now = deadline - 0.01
    there.daemon.expire()
    assert there.answers == []
    there.now = deadline
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


def test_whether_results_matter_is_heard_with_every_frame(there: Scene) -> None:
    assert not there.daemon.results
    there.say("revoke", results=True)
    assert there.daemon.results
    there.ask()
    there.say("pass")
    assert not there.daemon.results


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
    told = 0
    while there.daemon.tell(b"x" * 60_000) and there.daemon.flush():
        told += 1
    assert 0 < told < 1000  # the socket is full: the next call has to wait for its verdict
    assert there.daemon.behind  # and the server for the last one
    assert there.daemon.deadline is not None
    assert not there.daemon.tell(b"")


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
