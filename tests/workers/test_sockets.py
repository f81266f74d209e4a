"""A thread waits for all its workers at once, takes new ones up while it waits, and leaves nothing open."""

from __future__ import annotations

import itertools
import socket
import threading
import time

from few_files import nothing_left_open

from agentsh_net.workers.sockets import WorkerSockets


def numbered() -> WorkerSockets[int]:
    return WorkerSockets(itertools.count().__next__)


def heard(sockets: WorkerSockets[int]) -> list[tuple[int, bytes]]:
    """Wait until somebody says something."""
    while not (ready := sockets.wait(20)):
        pass
    return sorted((state, connection.recv(99)) for connection, state in ready)


def test_what_a_worker_says_comes_with_its_own_state() -> None:
    sockets = numbered()
    first, second = sockets.attach(), sockets.attach()
    assert sockets.wait(20) == []  # woken: they are taken up
    second.send(b"from the second")
    assert heard(sockets) == [(1, b"from the second")]
    first.send(b"from the first")
    assert heard(sockets) == [(0, b"from the first")]
    sockets.close()


def test_a_worker_attached_while_the_thread_waits_is_heard() -> None:
    sockets = numbered()
    told: list[list[tuple[int, bytes]]] = []
    thread = threading.Thread(target=lambda: told.append(heard(sockets)))
    thread.start()
    sockets.attach().send(b"late")
    thread.join(60)
    assert told == [[(0, b"late")]]
    sockets.close()


def test_a_dropped_worker_is_told_so_and_heard_no_more() -> None:
    sockets = numbered()
    theirs = sockets.attach()
    sockets.wait(20)
    ((ours, _),) = sockets.all()
    sockets.drop(ours)
    assert theirs.recv(1) == b""
    assert sockets.all() == []
    sockets.close()


def test_closing_ends_those_too_that_were_never_taken_up() -> None:
    with nothing_left_open():
        sockets = numbered()
        known = sockets.attach()
        sockets.wait(20)
        unknown = sockets.attach()
        sockets.close()
        assert (known.recv(1), unknown.recv(1)) == (b"", b"")
        known.close()
        unknown.close()


def test_no_worker_and_no_wake_up_holds_up_a_thread() -> None:
    sockets = numbered()
    theirs = sockets.attach()
    for _ in range(10_000):  # more than the system keeps for who does not wait
        sockets.wake()
    while sockets.wait(0) or not sockets.all():
        pass
    ((ours, _),) = sockets.all()
    assert not ours.getblocking()  # nor does one that reads nothing
    theirs.close()
    sockets.close()


def test_who_was_woken_sleeps_again() -> None:
    sockets = numbered()
    sockets.wake()
    sockets.wait(20)
    began = time.monotonic()
    assert sockets.wait(0.1) == []
    assert time.monotonic() - began >= 0.1
    sockets.close()


def test_messages_stay_whole_where_the_kind_keeps_them_so() -> None:
    sockets = WorkerSockets(lambda: 7, socket.SOCK_SEQPACKET)
    theirs = sockets.attach()
    theirs.send(b"one")
    theirs.send(b"two")
    assert heard(sockets) == [(7, b"one")]
    assert heard(sockets) == [(7, b"two")]
    sockets.close()
