"""Rate questions get one exact answer whoever asks, and a worker that talks nonsense gets none."""

from __future__ import annotations

import contextlib
import socket
import threading

import orjson
import pytest

from agentsh_net import arbiter as module
from agentsh_net.arbiter import Arbiter
from agentsh_net.core.ratelimit import Buckets
from agentsh_net.core.settings import RateLimits


@pytest.fixture
def arbiter():
    it = Arbiter(Buckets(RateLimits(enabled=True, default_rpm=60, default_burst=3)), lambda: 100.0)
    it.start()
    yield it
    it.stop()


def ask(connection: socket.socket, *question) -> bool:
    connection.settimeout(5)
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
    bad.settimeout(5)
    bad.send(said)
    with contextlib.suppress(ConnectionResetError):  # what it had not read yet was dropped
        assert bad.recv(10) == b""
    assert ask(good, 1, "weather", "k")


def test_a_worker_cannot_make_buckets_without_end(arbiter, monkeypatch):
    monkeypatch.setattr(module, "MAX_SERVERS", 3)
    connection = arbiter.attach()
    assert all(ask(connection, n, f"server{n}", "k") for n in range(3))
    connection.send(orjson.dumps([9, "server9", "k"]))
    assert connection.recv(10) == b""
