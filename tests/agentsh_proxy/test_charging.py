"""A rate question costs a call once in its answer; without an answer in time fail_closed decides, and it shows."""

from __future__ import annotations

import socket
import threading

import orjson
import pytest
from agentsh_proxy import charging
from agentsh_proxy.charging import Charges

from agentsh_net.core.link import MAX_CHARGE_NAME
from agentsh_net.core.model import Crossing


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield ours, theirs
    ours.close()
    theirs.close()


def answering(connection: socket.socket, *answers) -> list:
    """Answer as many questions, each by a function of the question; return the questions."""
    asked = []

    def run():
        for answer in answers:
            question = orjson.loads(connection.recv(4096))
            asked.append(question)
            for reply in answer(question):
                connection.send(orjson.dumps(reply))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return asked


def test_the_answer_is_the_supervisors(pair):
    ours, theirs = pair
    asked = answering(theirs, lambda q: [[q[0], True]], lambda q: [[q[0], False]])
    charge = Charges(ours, lambda: True).of_one_answer()
    assert charge("weather", "get", "c1", "s") is True
    assert charge("weather", "get", "c2", "s") is False
    assert [q[1] for q in asked] == ["weather", "weather"]


def test_a_call_is_known_again_within_its_answer_and_not_in_another(pair):
    ours, theirs = pair
    asked = answering(theirs, *[lambda q: [[q[0], True]]] * 6)
    charges = Charges(ours, lambda: True)
    first, second = charges.of_one_answer(), charges.of_one_answer()
    for charge, call in (
        (first, "c1"),
        (first, "c1"),
        (second, "c1"),
        (first, "c2"),
        (first, ""),
        (first, "\ud800" * 9999),
    ):
        charge("weather", "get", call, "s")
    keys = [q[2] for q in asked]
    assert keys[0] == keys[1]
    assert len({*keys}) == 5
    assert keys[4] == ""


@pytest.mark.parametrize("fail_closed", [True, False])
def test_without_an_answer_fail_closed_decides(pair, monkeypatch, fail_closed):
    monkeypatch.setattr(charging, "PATIENCE", 0.05)
    charges = Charges(pair[0], lambda: fail_closed)
    assert charges.of_one_answer()("weather", "get", "c1", "s") is not fail_closed
    assert charges.unanswered


def test_without_a_supervisor_it_does_not_wait(pair):
    pair[1].close()
    charges = Charges(pair[0], lambda: True)
    assert charges.of_one_answer()("weather", "get", "c1", "s") is False
    assert charges.unanswered


def test_a_late_answer_is_not_taken_for_the_next_one(pair):
    ours, theirs = pair
    answering(theirs, lambda q: [[q[0] - 1, False], [q[0], True]])
    assert Charges(ours, lambda: True).of_one_answer()("weather", "get", "c1", "s") is True


AGAINST = {"rule": "flow", "severity": "high", "reason": "r", "related": [{"server_id": "db"}]}


def test_what_a_session_rule_has_against_a_call_comes_back_whole(pair):
    ours, theirs = pair
    asked = answering(theirs, lambda q: [[q[0], AGAINST]])
    answer = Charges(ours, lambda: True).of_one_answer()("mail", "send", "c1", "s")
    assert answer == Crossing("flow", "high", "r", ({"server_id": "db"},))
    number, server, _, tool, session, turn, call_id = asked[0]
    assert (number, server, tool, session, call_id) == (1, "mail", "send", "s", "c1")
    assert turn


def test_calls_of_one_answer_are_of_one_turn_and_others_are_not(pair):
    ours, theirs = pair
    asked = answering(theirs, *[lambda q: [[q[0], True]]] * 3)
    charges = Charges(ours, lambda: True)
    first, second = charges.of_one_answer(), charges.of_one_answer()
    for charge in (first, first, second):
        charge("mail", "send", "c", "s")
    turns = [question[5] for question in asked]
    assert turns[0] == turns[1] != turns[2]


@pytest.mark.parametrize("answer", [{"rule": "flow"}, {}, "yes", None, 7])
def test_an_answer_of_another_shape_is_no_answer(pair, monkeypatch, answer):
    monkeypatch.setattr(charging, "PATIENCE", 0.05)
    ours, theirs = pair
    answering(theirs, lambda q: [[q[0], answer]])
    charges = Charges(ours, lambda: True)
    assert charges.of_one_answer()("mail", "send", "c1", "s") is False
    assert charges.unanswered


def test_names_of_any_length_fit_a_question(pair):
    ours, theirs = pair
    asked = answering(theirs, lambda q: [[q[0], True]])
    assert (
        Charges(ours, lambda: True).of_one_answer()("mail", "\ud800" * 9999, "c" * 9999, "s" * 9999) is True
    )
    assert all(len(name) <= MAX_CHARGE_NAME for name in asked[0][3:])
