"""A rate question costs a call once in its answer; without an answer in time fail_closed decides, and it shows."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator

import orjson
import pytest
from agentsh_proxy import charging
from agentsh_proxy.charging import Charges
from situations import situation
from transcripts import anthropic, openai_chat, openai_responses

from agentsh_net.core.configuration.settings import RateLimits
from agentsh_net.core.dialects.base import Judge, Limits
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.links.link import MAX_CHARGE_NAME
from agentsh_net.core.model import Crossing
from agentsh_net.workers.arbiter import Arbiter


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


def test_a_worker_that_follows_another_is_not_taken_for_it(pair):
    ours, theirs = pair
    asked = answering(theirs, *[lambda q: [[q[0], True]]] * 2)
    for charges in (Charges(ours, lambda: True), Charges(ours, lambda: True)):
        charges._number = len(asked)  # each has a socket of its own in life
        charges.of_one_answer()("weather", "get", "1:c", "s")
    assert asked[0][2] != asked[1][2]


def test_the_audit_of_a_session_names_calls_by_their_ids_and_not_by_their_places(pair):
    ours, theirs = pair
    asked = answering(theirs, *[lambda q: [[q[0], True]]] * 3)
    charge = Charges(ours, lambda: True).of_one_answer()
    for key in ("3:toolu_1", "3:", "toolu:1"):
        charge("weather", "get", key, "s")
    assert [question[6] for question in asked] == ["toolu_1", "", "toolu:1"]


# Whole answers through the policy, the charges and the arbiter that the daemon has.

TOOL = "mcp__weather__get"
BURST = 3


@pytest.fixture
def charges() -> Iterator[Charges]:
    arbiter = Arbiter(Buckets(RateLimits(True, 0.001, BURST)), lambda: 0.0)
    arbiter.start()
    connection = arbiter.attach()
    yield Charges(connection, lambda: True)
    connection.close()
    arbiter.stop()


def judging(charges: Charges) -> Judge:
    """Return the judge of one answer."""
    policy = situation(["weather"], {"weather": ["get"]}, rate_limits=RateLimits(True, 0.001, BURST))
    charge = charges.of_one_answer()
    return lambda call: policy.judge(call, session_id="s", charge=charge)


def anthropic_answer(ids: list[str]) -> bytes:
    calls = [anthropic.call(at, TOOL, call_id=call_id) for at, call_id in enumerate(ids)]
    return anthropic.begin() + b"".join(calls) + anthropic.end()


def chat_answer(ids: list[str]) -> bytes:
    calls = [openai_chat.call(at, TOOL, call_id=call_id) for at, call_id in enumerate(ids)]
    return b"".join(calls) + openai_chat.end() + openai_chat.DONE


def responses_answer(ids: list[str]) -> bytes:
    items = [
        openai_responses.function_call(TOOL, {}, at=at) | {"call_id": call_id, "id": call_id}
        for at, call_id in enumerate(ids)
    ]
    calls = [event for at, item in enumerate(items) for event in openai_responses.call(at, item)]
    return openai_responses.numbered([*openai_responses.begin(), *calls, *openai_responses.end(*items)])


def whole_message(ids: list[str]) -> bytes:
    content = [{"type": "tool_use", "id": call_id, "name": TOOL, "input": {}} for call_id in ids]
    return json.dumps({"type": "message", "role": "assistant", "content": content}).encode()


def whole_completion(ids: list[str]) -> bytes:
    calls = [{"id": i, "type": "function", "function": {"name": TOOL, "arguments": "{}"}} for i in ids]
    return openai_chat.completion({"tool_calls": calls})


def whole_response(ids: list[str]) -> bytes:
    items = [
        openai_responses.function_call(TOOL, {}, at=at) | {"call_id": call_id, "id": call_id}
        for at, call_id in enumerate(ids)
    ]
    return json.dumps(openai_responses.response(*items, status="completed")).encode()


STREAMED = {
    "anthropic": (BY_NAME["anthropic"], anthropic_answer),
    "openai": (BY_NAME["openai"], chat_answer),
    "openai_responses": (openai_responses.DIALECT, responses_answer),
}
WHOLE = {
    "anthropic": (BY_NAME["anthropic"], whole_message),
    "openai": (BY_NAME["openai"], whole_completion),
    "openai_responses": (openai_responses.DIALECT, whole_response),
}


def outcomes(charges: Charges, name: str, ids: list[str], *, stream: bool) -> list[bool]:
    """Return which calls of one answer were blocked, in the order in which they were judged."""
    dialect, answer = (STREAMED if stream else WHOLE)[name]
    judge = judging(charges)
    if stream:
        machine = dialect.stream(judge, limits=Limits(), fail_closed=False)
        steps = [machine.feed(answer(ids)), machine.finish()]
    else:
        steps = [dialect.body(answer(ids), judge, fail_closed=False)]
    return [judged.verdict.blocked for step in steps for judged in step.judged]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("ids", [list("abcde"), ["same"] * 5], ids=["own ids", "one id"])
def test_each_call_of_an_answer_costs_once_whatever_its_id(charges, name, ids, stream):
    blocked = outcomes(charges, name, ids, stream=stream)
    assert blocked[:BURST] == [False] * BURST
    assert set(blocked[BURST:]) == {True}  # what repeats a refused id may be refused without a second verdict


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", STREAMED)
def test_an_id_that_another_answer_repeats_costs_again(charges, name, stream):
    answers = [outcomes(charges, name, ["same"], stream=stream) for _ in range(BURST + 1)]
    assert answers == [[False]] * BURST + [[True]]


def test_what_some_client_might_read_is_judged_and_not_charged(charges):
    pieces = openai_chat.calls(
        openai_chat.entry(0, name="mcp__weather", args="", call_id="a"),
        openai_chat.entry(1, name="__get", args="{}", call_id="a"),
    )
    judge, asked = judging(charges), []
    dialect = BY_NAME["openai"]
    machine = dialect.stream(lambda c: asked.append(c) or judge(c), limits=Limits(), fail_closed=False)
    for _ in range(BURST + 1):
        machine.feed(pieces + openai_chat.end())
    assert any(call.hypothetical and call.name == TOOL for call in asked)
    assert outcomes(charges, "openai", list("abc"), stream=True) == [False] * BURST


def test_a_call_on_the_wire_claims_what_a_model_wrote_and_is_charged_each_time(pair):
    ours, theirs = pair
    intent = {"event_id": "e1", "session_id": "s1", "tool_call_id": "t1"}
    asked = answering(theirs, lambda q: [[q[0], intent]], lambda q: [[q[0], None]], lambda q: [[q[0], False]])
    charges = Charges(ours, lambda: True)
    found = charges.claim("fs", "read", lambda: "mark", "s1")
    assert (found.event_id, found.session_id, found.tool_call_id) == ("e1", "s1", "t1")
    assert charges.claim("fs", "read", lambda: "mark", "s1") is None
    assert charges.of_the_wire("fs", "read", "s1") is False
    assert [q[1:] for q in asked] == [["fs", "read", "s1", "mark"]] * 2 + [["fs", "", "read", "s1", "", ""]]


def test_a_supervisor_that_is_gone_joins_nothing_and_fail_closed_decides(pair):
    ours, theirs = pair
    theirs.close()
    charges = Charges(ours, lambda: True)
    assert charges.claim("fs", "read", lambda: "mark", "s1") is None
    assert charges.of_the_wire("fs", "read", "s1") is False
    assert charges.unanswered


class Transport(asyncio.BaseTransport):
    def __init__(self, peer: tuple[str, int] | None) -> None:
        super().__init__({"peername": peer, "sockname": ("127.0.0.1", 80)})


def placed(connection: socket.socket) -> Charges:
    """Return what asks while some session has a cgroup."""
    charges = Charges(connection, lambda: False)
    charges.placed = True
    return charges


def test_while_no_session_has_a_cgroup_nobody_is_asked_whose_a_connection_is(pair):
    assert Charges(pair[0], lambda: True).whose(Transport(None)) == ""


def test_whose_a_connection_is_is_asked_by_its_ends(pair):
    ours, theirs = pair
    asked = answering(theirs, lambda q: [[q[0], "mine"]], lambda q: [[q[0], ""]])
    charges = placed(ours)
    assert [charges.whose(Transport(("::1", 9, 0, 0))) for _ in range(2)] == ["mine", ""]
    assert asked[0][1] == {"whose": ["::1", 9, "127.0.0.1", 80]}


@pytest.mark.parametrize("answers", [(), (None,), (True,)])
def test_without_an_answer_nobody_can_say_whose_a_connection_is(pair, monkeypatch, answers):
    monkeypatch.setattr(charging, "PATIENCE", 0.05)
    ours, theirs = pair
    answering(theirs, *[lambda q, a=answer: [[q[0], a]] for answer in answers])
    assert placed(ours).whose(Transport(("127.0.0.1", 9))) is None


def test_nor_can_anybody_where_the_client_is_gone(pair):
    assert placed(pair[0]).whose(Transport(None)) is None


def test_a_supervisor_that_does_not_answer_is_not_asked_at_once_again_whose_a_connection_is(
    pair, monkeypatch
):
    monkeypatch.setattr(charging, "PATIENCE", 0.05)
    ours, theirs = pair
    charges = placed(ours)
    assert [charges.whose(Transport(("127.0.0.1", 9))) for _ in range(5)] == [None] * 5
    theirs.setblocking(False)
    assert orjson.loads(theirs.recv(4096))[0] == 1
    with pytest.raises(BlockingIOError):
        theirs.recv(4096)
    monkeypatch.setattr(charging, "monotonic", lambda: 1e12)
    theirs.setblocking(True)
    answering(theirs, lambda q: [[q[0], "mine"]])
    assert charges.whose(Transport(("127.0.0.1", 9))) == "mine"


def test_a_contradiction_is_told_and_need_not_be_heard(pair):
    ours, theirs = pair
    asked = answering(theirs, lambda q: [[q[0], 0]])
    Charges(ours, lambda: True).contradict("mine", "other")
    assert asked[0][1] == {"contradicts": ["mine", "other"]}
    theirs.close()
    Charges(ours, lambda: True).contradict("mine", "other")
