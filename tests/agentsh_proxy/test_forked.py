"""What a fork computes comes back whole, one after the other, and holds up nothing; a process that dies or is not wanted leaves nothing."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import mmap
import os
import resource
import signal
import socket

import pytest
from agentsh_proxy import forked
from agentsh_proxy.forked import Forked
from loopback import on_loop, until

from agentsh_net.core.errors import ProtocolError


def shared() -> mmap.mmap:
    """Return memory that a forked process shares."""
    return mmap.mmap(-1, 4096)


def wait_for(memory: mmap.mmap, at: int) -> None:
    while not memory[at]:
        os.sched_yield()


@on_loop
async def test_the_loop_turns_while_work_is_done_and_gets_all_of_its_outcome(opened):
    memory = shared()

    def work() -> bytes:
        memory[0] = 1
        wait_for(memory, 1)
        return b"abc" * (1 << 20)

    computing = asyncio.ensure_future(Forked().run(work))
    await until(lambda: memory[0])  # in turns of this loop
    assert not computing.done()
    memory[1] = 1
    assert await computing == b"abc" * (1 << 20)


@on_loop
async def test_one_computes_at_a_time_in_the_order_in_which_they_came(opened):
    memory, forked = shared(), Forked()

    def work(number: int) -> bytes:
        order = memory[0] = memory[0] + 1
        return bytes([number, order])

    def first() -> bytes:
        memory[1] = 1
        wait_for(memory, 2)
        return work(0)

    asked = [asyncio.ensure_future(forked.run(first))]
    asked += [asyncio.ensure_future(forked.run(lambda at=at: work(at))) for at in range(1, 4)]
    await until(lambda: memory[1])
    memory[2] = 1
    assert await asyncio.gather(*asked) == [bytes([at, at + 1]) for at in range(4)]


@pytest.mark.parametrize("how", ["raises", "is killed"])
@on_loop
async def test_work_that_comes_to_nothing_is_an_error_and_the_next_is_done(opened, how):
    def work() -> bytes:
        if how == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError

    forked = Forked()
    with pytest.raises(ProtocolError, match="died") as failed:
        await forked.run(work)
    assert failed.value.status == 503
    assert await forked.run(lambda: b"x") == b"x"


@on_loop
async def test_a_process_that_cannot_be_started_is_an_error(opened, monkeypatch):
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ProtocolError, match="temporarily unavailable"):
        await Forked().run(lambda: b"x")
    assert len(os.listdir("/proc/self/fd")) == before


@on_loop
async def test_what_is_not_wanted_any_more_is_killed_and_reaped(opened):
    memory = shared()

    def work() -> bytes:
        memory[1:5] = os.getpid().to_bytes(4, "little")
        memory[0] = 1
        wait_for(memory, 9)
        return b""

    computing = asyncio.ensure_future(Forked().run(work))
    await until(lambda: memory[0])
    pid = int.from_bytes(memory[1:5], "little")
    os.kill(pid, 0)
    computing.cancel()

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    await until(gone)
    assert computing.cancelled()


@on_loop
async def test_a_process_that_is_gone_is_not_killed_its_number_may_be_anothers(opened, monkeypatch):
    bury, killed = os.waitpid, []

    def reaped(pid: int, flags: int) -> tuple[int, int]:
        status = bury(pid, flags)
        computing.cancel()  # in the very turn in which it ended
        return status

    monkeypatch.setattr(os, "waitpid", reaped)
    monkeypatch.setattr(os, "kill", lambda *told: killed.append(told))
    computing = asyncio.ensure_future(Forked().run(lambda: b"x"))
    with pytest.raises(asyncio.CancelledError):
        await computing
    assert killed == []


@pytest.mark.parametrize("number", [0, 500], ids=["below its pipe", "above its pipe"])
@on_loop
async def test_it_holds_no_socket_of_the_workers(opened, number):
    made, peer = socket.socketpair()
    with made:
        ours = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, number)
    memory = shared()

    def work() -> bytes:
        memory[0] = 1
        wait_for(memory, 1)
        return b""

    computing = asyncio.ensure_future(Forked().run(work))
    await until(lambda: memory[0])
    os.close(ours)
    peer.setblocking(False)
    # The end of the connection is its end, though a process was forked while it was open.
    assert peer.recv(1) == b""
    memory[1] = 1
    assert await computing == b""
    peer.close()


@on_loop
async def test_it_stands_behind_the_worker_ends_some_day_and_takes_no_signal_for_the_workers(opened):
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, told.set)

    def work() -> bytes:
        limit = resource.getrlimit(resource.RLIMIT_CPU)
        deaf = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and signal.set_wakeup_fd(-1) == -1
        return repr((os.nice(0), limit, gc.isenabled(), deaf)).encode()

    try:
        found = await Forked().run(work)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
    nice = min(19, os.nice(0) + forked._NICE)
    assert found.decode() == repr((nice, (forked.MAX_SECONDS, forked.MAX_SECONDS), False, True))


@on_loop
async def test_nothing_of_it_stays_open(opened):
    before = os.listdir("/proc/self/fd")
    assert await Forked().run(lambda: b"x") == b"x"
    assert os.listdir("/proc/self/fd") == before
