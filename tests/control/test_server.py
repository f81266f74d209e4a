"""Over a real socket: calls are answered, strangers and nonsense are refused with words, and no client can stall the daemon."""

import asyncio
import errno
import json
import os
import subprocess
import sys

import pytest
import uvloop

from agentsh_net.control import server, tail
from agentsh_net.control.client import Client
from agentsh_net.control.errors import ControlError
from agentsh_net.control.protocol import MAX_REQUEST
from agentsh_net.control.server import Server
from agentsh_net.core.errors import ConfigError, Problem, StoreError

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def echo(args, peer):
    return {"args": dict(args), "uid": peer.uid, "pid": peer.pid}


async def bad_config(args, peer):
    raise ConfigError([Problem("sandbox.mcp", "1", "a mapping"), Problem("proxy", "2", "a mapping")])


async def full(args, peer):
    raise StoreError("the disk is full", remedy="free space")


async def refuse(args, peer):
    raise ControlError("the hash is another", kind="denied", remedy="look at the diff")


async def bug(args, peer):
    raise ZeroDivisionError


async def out_of_files(args, peer):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


HANDLERS = {
    "echo": echo,
    "bad_config": bad_config,
    "full": full,
    "refuse": refuse,
    "bug": bug,
    "out_of_files": out_of_files,
}


@pytest.fixture(params=LOOPS)
def play(request, tmp_path):
    """Run a scene (an async function of server and path) against a running server, on each kind of loop."""
    path = tmp_path / "control.sock"

    def run(scene, handlers=HANDLERS):
        async def main():
            running = Server(path, handlers)
            await running.start()
            try:
                return await asyncio.wait_for(scene(running, path), 20)
            finally:
                await running.close()

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(main())

    run.path = path
    return run


async def ask(path, *lines):
    """Send raw lines on one connection and return the answers."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"".join(lines))
    writer.write_eof()
    answers = await reader.read()
    writer.close()
    return [json.loads(line) for line in answers.splitlines()]


def test_a_call_reaches_its_handler_with_who_asks(play):
    async def scene(running, path):
        return await ask(path, b'{"call": "echo", "args": {"x": 1}}\n')

    assert play(scene) == [
        {"ok": True, "result": {"args": {"x": 1}, "uid": os.geteuid(), "pid": os.getpid()}}
    ]


def test_one_connection_may_ask_several_times(play):
    async def scene(running, path):
        return await ask(path, b'{"call": "echo"}\n' * 3)

    assert [answer["ok"] for answer in play(scene)] == [True] * 3


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ("bad_config", "config", "sandbox.mcp: found 1; expected a mapping\nproxy"),
        ("full", "store", "disk is full"),
        ("out_of_files", "kernel", "Too many open files"),
        ("refuse", "denied", "another"),
        ("nosuch", "unknown_call", "nosuch"),
    ],
)
def test_an_error_is_an_answer_and_the_connection_goes_on(play, call, kind, words):
    async def scene(running, path):
        return await ask(path, json.dumps({"call": call}).encode() + b"\n", b'{"call": "echo"}\n')

    failed, following = play(scene)
    assert failed["error"]["kind"] == kind
    assert words in failed["error"]["message"]
    assert failed["error"]["remedy"]
    assert following["ok"]


@pytest.mark.parametrize(
    "line",
    [b"nonsense\n", b"[]\n", b'{"call": "echo"', b"[" * 100_000 + b"\n", b"x" * (MAX_REQUEST + 70_000)],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(play, line):
    async def scene(running, path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(line)
        if writer.can_write_eof() and not line.endswith(b"x"):
            writer.write_eof()
        answer = await reader.readline()
        writer.close()
        return json.loads(answer)

    assert play(scene)["error"]["kind"] == "request"


def test_a_bug_in_a_handler_is_logged_and_the_daemon_lives(play):
    async def scene(running, path):
        seen = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))
        nothing = await ask(path, b'{"call": "bug"}\n')
        something = await ask(path, b'{"call": "echo"}\n')
        return seen, nothing, something

    seen, nothing, [something] = play(scene)
    assert [type(error) for error in seen] == [ZeroDivisionError]
    assert nothing == []
    assert something["ok"]


def test_a_silent_client_is_let_go(play, monkeypatch):
    monkeypatch.setattr(server, "_IDLE", 0.05)

    async def scene(running, path):
        reader, writer = await asyncio.open_unix_connection(path)
        left = await reader.read()
        writer.close()
        return left

    assert play(scene) == b""


def test_a_client_that_does_not_read_its_answer_is_let_go(play, monkeypatch):
    monkeypatch.setattr(server, "_SEND", 0.05)

    async def big(args, peer):
        return "x" * (16 << 20)

    async def scene(running, path):
        _, writer = await asyncio.open_unix_connection(path, limit=1)
        writer.transport.pause_reading()
        writer.write(b'{"call": "big"}\n')
        while not running._tasks:
            await asyncio.sleep(0)
        while running._tasks:
            await asyncio.sleep(0.01)
        writer.transport.abort()
        return True

    assert play(scene, {"big": big})


def test_clients_are_bounded(play, monkeypatch):
    monkeypatch.setattr(server, "MAX_CLIENTS", 1)

    async def scene(running, path):
        _, first = await asyncio.open_unix_connection(path)
        while not running._tasks:
            await asyncio.sleep(0)
        [answer] = await ask(path, b'{"call": "echo"}\n')
        first.close()
        return answer["error"]["kind"]

    assert play(scene) == "busy"


AS_NOBODY = (
    "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534);"
    "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.makefile().readline())"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to connect as another user")
def test_a_stranger_is_refused_even_if_the_mode_lets_it_in(play):
    async def scene(running, path):
        for parent in [path.parent, *list(path.parents)[:-2]]:  # pytest's directories are closed to others
            parent.chmod(0o711)
        path.chmod(0o666)
        stranger = [sys.executable, "-c", AS_NOBODY, str(path)]
        return await asyncio.to_thread(subprocess.run, stranger, capture_output=True, text=True)

    answer = json.loads(play(scene).stdout)
    assert answer["error"]["kind"] == "forbidden"
    assert "65534" in answer["error"]["message"]


def follow(path, ready, **filters):
    """Read a stream as the CLI does, in a thread; return its events and the notice that ended it."""
    seen = []
    try:
        for event in Client(path).stream("tail", **filters):
            seen.append(event)
            ready(event)
    except ControlError as notice:
        return seen, notice.kind
    return seen, None


def test_a_follower_gets_events_as_they_happen_and_is_told_of_the_end(play):
    async def scene(running, path):
        loop, first = asyncio.get_running_loop(), asyncio.Event()
        following = asyncio.create_task(
            asyncio.to_thread(follow, path, lambda _: loop.call_soon_threadsafe(first.set), type="a*")
        )
        while not running._followers._wanted:
            await asyncio.sleep(0.001)
        running.publish({"type": "b"})
        running.publish({"type": "a1", "text": "\ud800"})
        await first.wait()
        await running.close()
        return await following

    assert play(scene) == ([{"type": "a1", "text": "\ud800"}], "stopping")


def test_a_follower_that_never_reads_is_dropped_and_the_daemon_never_waits(play, monkeypatch):
    monkeypatch.setattr(tail, "_LINGER", 0.0)

    async def scene(running, path):
        _, writer = await asyncio.open_unix_connection(path, limit=1)
        writer.transport.pause_reading()
        writer.write(b'{"call": "tail"}\n')
        while not running._followers._wanted:
            await asyncio.sleep(0.001)
        sent = 0
        while running._followers._wanted:
            running.publish({"type": "x", "text": "x" * 10_000})
            sent += 1
        while running._tasks:
            await asyncio.sleep(0.001)
        writer.transport.abort()
        return sent

    assert play(scene) < 1000  # the bound of the buffer and what the kernel holds


def test_a_follower_with_a_bad_filter_is_refused(play):
    async def scene(running, path):
        return await ask(path, b'{"call": "tail", "args": {"colour": "red"}}\n')

    assert play(scene)[0]["error"]["kind"] == "request"


def test_closing_removes_the_socket_and_ends_every_client(play):
    async def scene(running, path):
        reader, writer = await asyncio.open_unix_connection(path)
        while not running._tasks:
            await asyncio.sleep(0)
        await running.close()
        left = await reader.read()
        writer.close()
        return left

    assert play(scene) == b""
    assert list(play.path.parent.iterdir()) == []
