"""A process of a server is asked for and spoken to line by line; however it ends, whoever waits is told how."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from typing import Any

import pytest
from agentsh_proxy.gateway.stdio import Starter, StdioPipe
from loopback import until
from mcp_peers.scripted import run

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Server, Transport

PEER = Server("peer", Transport.STDIO, command="x")


class Supervisor:
    """The other end: hears questions, hands out pipes."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.setblocking(False)
        self.starter = Starter(theirs, asyncio.get_running_loop())
        self.kept: list[int] = []

    async def question(self) -> Any:
        return json.loads(await asyncio.get_running_loop().sock_recv(self.ours, 4096))

    async def give(self) -> tuple[int, int, int]:
        """Answer the next question with pipes; return the server's ends: input, output, errors."""
        asked = await self.question()
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        socket.send_fds(
            self.ours, [json.dumps({"started": asked["start"]}).encode()], [in_write, out_read, err_read]
        )
        for fd in (in_write, out_read, err_read):
            os.close(fd)
        self.kept += [in_read, out_write, err_write]
        return in_read, out_write, err_write

    def say(self, **answer: Any) -> None:
        self.ours.send(json.dumps(answer).encode())

    def close(self, *fds: int) -> None:
        for fd in fds:
            os.close(fd)
            self.kept.remove(fd)

    def end(self) -> None:
        self.starter.close()
        self.ours.close()
        self.close(*tuple(self.kept))


async def opened(supervisor: Supervisor, max_line: int = 1000) -> tuple[StdioPipe, int, int, int]:
    pipe = StdioPipe(PEER, supervisor.starter, lambda: max_line)
    opening = asyncio.create_task(pipe.open())
    ends = await supervisor.give()
    await opening
    return pipe, *ends


def play(scene: Any) -> None:
    async def main() -> None:
        supervisor = Supervisor()
        try:
            await scene(supervisor)
        finally:
            supervisor.end()

    run(main())


def test_lines_go_in_and_come_out() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe, given, out, _ = await opened(supervisor)
        await pipe.send(b'{"a":1}')
        assert os.read(given, 100) == b'{"a":1}\n'
        for part in (b'{"b"', b":2}\n\n{", b"}\n"):
            os.write(out, part)
            await asyncio.sleep(0.01)
        assert [await pipe.receive(), await pipe.receive()] == [b'{"b":2}', b"{}"]
        pipe.close()
        assert (await supervisor.question())["end"] == 1
        assert os.read(given, 1) == b""  # the input ends first: a server may end by itself

    play(scene)


def test_what_is_heard_at_once_waits_for_nobody_and_the_rest_keeps_its_order() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe, given, out, _ = await opened(supervisor)
        heard: list[bytes] = []
        ready = [True, False, True]

        def hear(line: bytes) -> bool:
            heard.append(line)
            return ready.pop(0)

        pipe.attach(hear)
        assert pipe.start(b"{}", lambda _: None)
        assert os.read(given, 100) == b"{}\n"
        os.write(out, b"1\n2\n3\n")
        assert [await pipe.receive(), await pipe.receive()] == [b"2", b"3"]
        os.write(out, b"4\n")
        while len(heard) < 3:
            await asyncio.sleep(0)
        assert heard == [b"1", b"2", b"4"], "behind one that waits nothing is heard"
        pipe.close()
        assert not pipe.start(b"{}", lambda _: None)

    play(scene)


def test_a_full_pipe_takes_no_more_at_once() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe, given, _, _ = await opened(supervisor)
        while pipe.start(b"x" * 60_000, lambda _: None):
            await asyncio.sleep(0)
        sending = asyncio.create_task(pipe.send(b"last"))
        await asyncio.sleep(0.01)
        assert not sending.done()
        os.set_blocking(given, False)
        while not sending.done():
            with contextlib.suppress(BlockingIOError):
                os.read(given, 1 << 16)
            await asyncio.sleep(0)
        pipe.close()

    play(scene)


def test_a_server_that_ends_is_told_of_with_its_last_words() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe, _, out, err = await opened(supervisor)
        os.write(err, b"cannot find module\x1b[31m\n")
        supervisor.say(ended=1, status="exit status 1")
        await until(lambda: "exit status 1" in pipe.why() and "module" in pipe.why())
        supervisor.close(out)
        with pytest.raises(
            ProtocolError, match=r"peer ended \(exit status 1\): cannot find module"
        ) as caught:
            await pipe.receive()
        assert "\x1b" not in str(caught.value)
        pipe.close()
        with pytest.raises(ProtocolError):
            await pipe.send(b"{}")

    play(scene)


def test_a_line_without_end_is_an_error_and_no_memory() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe, _, out, _ = await opened(supervisor, max_line=1000)
        os.write(out, b"x" * 2000)
        with pytest.raises(ProtocolError, match="more than 1000 bytes"):
            await pipe.receive()
        pipe.close()

    play(scene)


def test_a_process_that_cannot_be_had_is_an_error() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe = StdioPipe(PEER, supervisor.starter, lambda: 1000)
        opening = asyncio.create_task(pipe.open())
        asked = await supervisor.question()
        assert asked["server"] == "peer"
        supervisor.say(failed=asked["start"], error="there is no user nobody2")
        with pytest.raises(ProtocolError, match="no user nobody2"):
            await opening
        supervisor.ours.close()
        with pytest.raises(ProtocolError, match="does not listen"):
            await StdioPipe(PEER, supervisor.starter, lambda: 1000).open()
        supervisor.ours = socket.socket()

    play(scene)


def test_a_flood_of_lines_waits_in_the_pipe() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe, _, out, _ = await opened(supervisor, max_line=100_000)
        os.set_blocking(out, False)
        line, written = b"x" * 65_535 + b"\n", 0
        for _ in range(200):
            try:
                written += os.write(out, line)
            except BlockingIOError:
                await asyncio.sleep(0.005)
        assert written < 4 << 20
        pipe.close()

    play(scene)


def test_a_process_that_nobody_wants_any_more_when_it_has_started_is_ended() -> None:
    async def scene(supervisor: Supervisor) -> None:
        pipe = StdioPipe(PEER, supervisor.starter, lambda: 1000)
        opening = asyncio.create_task(pipe.open())
        await asyncio.sleep(0)
        pipe.close()
        in_read, _, _ = await supervisor.give()
        with pytest.raises(ProtocolError, match="let go"):
            await opening
        assert await supervisor.question() == {"end": 1}
        assert os.read(in_read, 1) == b""  # nobody holds its input open

    play(scene)


def test_one_whose_starting_was_given_up_is_ended() -> None:
    async def scene(supervisor: Supervisor) -> None:
        opening = asyncio.create_task(StdioPipe(PEER, supervisor.starter, lambda: 1000).open())
        assert (await supervisor.question())["start"] == 1
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await supervisor.question() == {"end": 1}

    play(scene)
