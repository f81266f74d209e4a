"""Rate questions get one exact answer whoever asks, and a worker that talks nonsense gets none."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import orjson
import pytest

from agentsh_net.core.audit.joining import mark
from agentsh_net.core.configuration.settings import Burst, CrossServer, ProviderLimits, RateLimits
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.links.link import MAX_CHARGE, MAX_CHARGE_NAME, MAX_TOLD
from agentsh_net.core.model import Crossing
from agentsh_net.core.registry import Registry
from agentsh_net.workers import arbiter as module
from agentsh_net.workers.arbiter import Arbiter


@pytest.fixture
def arbiter():
    it = Arbiter(Buckets(RateLimits(enabled=True, default_rpm=60, default_burst=3)), lambda: 100.0)
    it.start()
    yield it
    it.stop()


def ask(connection: socket.socket, *question) -> bool:
    connection.settimeout(60)
    connection.send(orjson.dumps(question))
    number, within = orjson.loads(connection.recv(4096))
    assert number == question[0]
    return within


def test_a_burst_is_shared_by_all_who_ask(arbiter):
    one, two = arbiter.attach(), arbiter.attach()
    answers = [ask((one, two)[n % 2], n, "weather", f"call{n}") for n in range(6)]
    assert answers == [True] * 3 + [False] * 3
    assert ask(two, 9, "files", "call9")


def test_the_same_call_costs_once_and_a_call_without_a_key_each_time(arbiter):
    connection = arbiter.attach()
    assert [ask(connection, n, "weather", "same") for n in range(5)] == [True] * 5
    assert [ask(connection, n, "weather", "") for n in range(3)] == [True, True, False]


def test_limits_can_be_replaced(arbiter):
    connection = arbiter.attach()
    arbiter.replace(Buckets(RateLimits(enabled=True, default_rpm=60, default_burst=1)))
    assert [ask(connection, n, "weather", f"c{n}") for n in range(2)] == [True, False]


def test_many_threads_get_exactly_the_burst(arbiter):
    answers = []

    def worker(name: int) -> None:
        connection = arbiter.attach()
        answers.extend(ask(connection, n, "weather", f"{name}.{n}") for n in range(10))

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answers) == 3


@pytest.mark.parametrize(
    "said", [b"nonsense", b"[]", b'[1,2,"x"]', b'["1","s","k"]', b'[1,"' + b"s" * 5000 + b'","k"]']
)
def test_nonsense_ends_the_conversation_and_nobody_elses(arbiter, said):
    bad, good = arbiter.attach(), arbiter.attach()
    bad.settimeout(60)
    bad.send(said)
    with contextlib.suppress(ConnectionResetError):  # what it had not read yet was dropped
        assert bad.recv(10) == b""
    assert ask(good, 1, "weather", "k")


def test_a_worker_cannot_make_buckets_without_end(arbiter, monkeypatch):
    monkeypatch.setattr(module, "MAX_SERVERS", 3)
    connection, another = arbiter.attach(), arbiter.attach()
    assert all(ask(connection, n, f"server{n}", "k") for n in range(3))
    connection.send(orjson.dumps([9, "server9", "k"]))
    assert connection.recv(10) == b""
    assert ask(another, 1, "server0", "k"), "nobody else is cut off for it"


def test_session_rules_are_asked_with_the_rate_and_over_all_workers(arbiter):
    arbiter.follow(CrossServer(enabled=True), Registry(), audit=False)
    one, two = arbiter.attach(), arbiter.attach()
    assert ask(one, 1, "db", "k1", "query", "s", "t1", "c1") is True
    against = ask(two, 2, "mail", "k2", "send", "s", "t2", "c2")
    assert (against["rule"], against["severity"]) == ("read_then_send", "critical")
    assert against["related"] == [
        {"server_id": "db", "tool_name": "query", "tool_call_id": "c1", "kind": "read"}
    ]
    assert ask(two, 3, "mail", "k3", "send", "other session", "t2", "c2") is True


def test_the_daemon_itself_asks_alike(arbiter):
    arbiter.follow(CrossServer(enabled=True), Registry(), audit=False)
    assert arbiter.charge("db", "query", "s") is True
    assert isinstance(arbiter.charge("mail", "send", "s"), Crossing)
    assert [arbiter.charge("weather") for _ in range(4)] == [True] * 3 + [False]


def test_the_longest_answer_fits_its_bound(arbiter):
    arbiter.follow(CrossServer(enabled=True, burst=Burst(1000, 5.0)), Registry(), audit=False)
    connection = arbiter.attach()
    connection.settimeout(60)
    name = "\u202e" * (MAX_CHARGE_NAME // 2)
    for n in range(20):
        connection.send(orjson.dumps([n, "db", f"k{n}", f"read {name}", "s", "t", name]))
        assert len(connection.recv(1 << 20)) <= MAX_CHARGE
        arbiter.replace(Buckets(RateLimits()))
    connection.send(orjson.dumps([99, "mail", "k", f"send {name}", "s", "t", name]))
    answer = connection.recv(1 << 20)
    assert b"read_then_send" in answer
    assert len(answer) <= MAX_CHARGE


@pytest.mark.parametrize(
    "said", [[1, "s", "k", "tool"], [1, "s", "k", "t", "s", "t", 5], [1, "s", "k", "t" * 600, "s", "t", "c"]]
)
def test_half_a_question_is_none(arbiter, said):
    connection = arbiter.attach()
    connection.settimeout(60)
    connection.send(orjson.dumps(said))
    assert connection.recv(10) == b""


def test_a_providers_limits_are_shared_by_all_who_ask_and_settled(arbiter):
    arbiter.limit({"openai": ProviderLimits(requests_per_minute=60, tokens_per_minute=1000)})
    one, two = arbiter.attach(), arbiter.attach()
    assert ask(one, 1, {"admit": ["openai", 600]}) == 0
    assert ask(two, 2, {"admit": ["openai", 600]}) == 12
    assert ask(one, 3, {"settle": ["openai", -600]}) == 0
    assert ask(two, 4, {"admit": ["openai", 600]}) == 0
    assert ask(two, 5, {"admit": ["anthropic", 600]}) == 0


def test_a_question_about_limits_that_a_sound_worker_cannot_ask_is_the_last(arbiter):
    for about in ({"admit": ["openai", -1]}, {"settle": ["openai", 10**12]}, {"admit": "openai"}, {"x": []}):
        connection = arbiter.attach()
        connection.settimeout(60)
        connection.send(orjson.dumps([1, about]))
        assert connection.recv(100) == b""


def test_a_call_on_the_wire_is_joined_with_what_a_model_wrote_once_whoever_asks(arbiter):
    written = {
        "id": "e1", "type": "mcp_tool_call_intercepted", "action": "allow", "session_id": "s1", "tool_call_id": "t1", "input": {"a": 1},
        "candidates": [{"server_id": "fs", "tool_name": "read", "tool_hash": ""}],
    }  # fmt: skip
    arbiter.note(written)
    one, two = arbiter.attach(), arbiter.attach()
    assert ask(one, 1, "fs", "read", "default", mark({"a": 2})) is None
    found = ask(two, 2, "FS", "read", "default", mark({"a": 1}))
    assert found == {"event_id": "e1", "session_id": "s1", "tool_call_id": "t1"}
    assert ask(one, 3, "fs", "read", "default", mark({"a": 1})) is None
    assert arbiter.claim("fs", "read", lambda: mark({"a": 1}), "s1") is None


def test_it_knows_whether_a_call_may_be_one_that_a_model_wrote(arbiter):
    written = {
        "id": "e1", "type": "mcp_tool_call_intercepted", "action": "allow", "session_id": "s1", "tool_call_id": "t1", "input": {"a": 1},
        "candidates": [{"server_id": "fs", "tool_name": "read", "tool_hash": ""}],
    }  # fmt: skip
    assert not arbiter.awaits("fs", "read")
    arbiter.note(written)
    assert arbiter.awaits("FS", "read")
    assert not arbiter.awaits("fs", "write")
    arbiter.claim("fs", "read", lambda: mark({"a": 1}), "s1")
    assert not arbiter.awaits("fs", "read")


def test_whose_a_connection_is_is_asked_by_its_ends(arbiter):
    asked = []
    arbiter.whose = lambda packet: asked.append(packet) or {1: "mine", 2: ""}.get(packet.source_port)
    connection = arbiter.attach()
    answers = [
        ask(connection, n, {"whose": [client, n, server, 80]})
        for n, client, server in (
            (1, "127.0.0.1", "127.0.0.2"), (2, "::ffff:10.0.0.1", "::ffff:10.0.0.2"), (3, "fe80::1%eth0", "::1"),
        )
    ]  # fmt: skip
    assert answers == ["mine", "", None]
    assert [(str(p.source), p.source_port, str(p.destination), p.destination_port) for p in asked] == [
        ("127.0.0.1", 1, "127.0.0.2", 80), ("10.0.0.1", 2, "10.0.0.2", 80), ("fe80::1", 3, "::1", 80),
    ]  # fmt: skip


def test_a_token_of_another_session_is_told_on(arbiter):
    told = []
    arbiter.contradicted = lambda *pair: told.append(pair)
    ask(arbiter.attach(), 1, {"contradicts": ["mine", "other"]})
    assert told == [("mine", "other")]


@pytest.mark.parametrize(
    "about",
    [
        {"whose": ["x", 1, "127.0.0.1", 2]},
        {"whose": ["127.0.0.1", 0, "127.0.0.1", 2]},
        {"whose": ["127.0.0.1", 1, "127.0.0.1", 65536]},
        {"whose": ["127.0.0.1", 1]},
        {"contradicts": ["s" * 600, "t"]},
        {},
    ],
)
def test_a_question_about_no_connection_is_none(arbiter, about):
    connection = arbiter.attach()
    connection.settimeout(60)
    connection.send(orjson.dumps([1, about]))
    assert connection.recv(10) == b""


def test_what_is_told_of_refused_calls_is_shared_by_all_who_ask(arbiter):
    one, two = arbiter.attach(), arbiter.attach()
    with arbiter.refusing() as refusing:
        assert os.pread(refusing.fileno(), 1, 0) == b"\0"
        for number, told in enumerate(("a", "b")):
            ask(one, number, {"refuses": ["here", told]})
        assert os.pread(refusing.fileno(), 1, 0) == b"\1"
    assert [ask(two, n, {"refused": ["here", n]}) for n in range(3)] == ["a", "b", None]
    ask(two, 4, {"forgets": ["here", 1]})
    assert [ask(one, n, {"refused": ["here", n]}) for n in range(2)] == ["b", None]


@pytest.mark.parametrize(
    "question",
    [
        {"refuses": ["p" * (MAX_CHARGE_NAME + 1), ""]},
        {"refuses": ["p", "t" * (MAX_TOLD + 1)]},
        {"refused": ["p", -1]},
        {"forgets": ["p", -1]},
    ],
)
def test_who_asks_for_more_of_refused_calls_than_there_can_be_is_dropped(arbiter, question):
    connection = arbiter.attach()
    connection.settimeout(60)
    connection.send(orjson.dumps([1, question]))
    assert connection.recv(64) == b""
