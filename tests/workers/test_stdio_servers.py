"""A worker gets processes of declared servers and of nothing else, as the user that is configured, with none of our environment."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pwd
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from few_files import nothing_left_open
from gateway_front import snapshot
from loopback import until

from agentsh_net.core.snapshot import Snapshot
from agentsh_net.tasks import Tasks
from agentsh_net.workers.stdio_servers import StdioServers

ROOT = os.geteuid() == 0
KEY = {"id": "k", "type": "http", "scheme": "bearer", "credential": "c"}


def declared(code: str, user: str = "nobody" if ROOT else "", **mcp: Any) -> Snapshot:
    io = {
        "id": "io",
        "type": "stdio",
        "command": "/usr/bin/python3",
        "args": ["-c", code],
        "env": {"OWN": "1"},
    }
    net = {"id": "net", "type": "http", "url": "http://127.0.0.1:1/"}
    settings = {"downstream_security": "k"} | ({"user": user} if user else {})
    return snapshot([io, net], gateway={"security_schemes": [KEY], "servers": {"io": settings}}, **mcp)


class Worker:
    """The worker's end."""

    def __init__(self, servers: StdioServers) -> None:
        self.link = servers.attach()
        self.link.setblocking(False)

    async def say(self, **question: Any) -> None:
        await asyncio.get_running_loop().sock_sendall(self.link, json.dumps(question).encode())

    async def hear(self) -> tuple[dict[str, Any], list[int]]:
        while True:
            try:
                data, pipes, _, _ = socket.recv_fds(self.link, 8192, 3)
            except BlockingIOError:
                await asyncio.sleep(0.01)
                continue
            return json.loads(data), list(pipes)


def play(current: Snapshot, scene: Callable[[StdioServers, Worker], Awaitable[None]]) -> list[str]:
    logged: list[str] = []

    async def main() -> None:
        servers = StdioServers(lambda: current, logged.append, Tasks(lambda _: None, logging.getLogger("t")))
        worker = Worker(servers)
        try:
            async with asyncio.timeout(60):
                await scene(servers, worker)
        finally:
            worker.link.close()
            await servers.close()

    with nothing_left_open():
        asyncio.run(main())
    return logged


def test_a_server_runs_as_its_user_in_its_own_session_with_next_to_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    code = (
        "import json,os,sys; print(json.dumps([os.getuid(), os.getsid(0)==os.getpid(), dict(os.environ), os.getgroups(), "
        "sorted(map(int, os.listdir('/proc/self/fd')))[:4]]), flush=True); print('said', file=sys.stderr); sys.stdin.read(); sys.exit(3)"
    )

    async def scene(servers: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="IO")
        answer, pipes = await worker.hear()
        assert answer == {"started": 1} and len(pipes) == 3
        out = await asyncio.to_thread(os.read, pipes[1], 65536)
        uid, leads, env, groups, descriptors = json.loads(out)
        assert uid == (pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid())
        assert leads and env["OWN"] == "1" and "SECRET_OF_OURS" not in env
        assert 0 not in groups or not ROOT
        assert descriptors == [0, 1, 2, 3]  # the last one is the listing's own
        assert await asyncio.to_thread(os.read, pipes[2], 100) == b"said\n"
        os.close(pipes[0])
        assert await worker.hear() == ({"ended": 1, "status": "exit status 3"}, [])
        assert servers.pids == []
        for pipe in pipes[1:]:
            os.close(pipe)

    assert play(declared(code), scene) == []


def test_only_declared_stdio_servers_that_policy_does_not_deny_are_started() -> None:
    async def scene(_: StdioServers, worker: Worker) -> None:
        for server in ("net", "nope", "io"):
            await worker.say(start=1, server=server)  # what was not started has not taken the number
            answer, pipes = await worker.hear()
            assert answer["failed"] == 1 and pipes == []
        assert "denied by policy" in answer["error"]

    logged = play(declared("", server_policy="denylist", denied_servers=["io"]), scene)
    assert len(logged) == 3


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_root_runs_a_server_that_names_no_user_as_nobody() -> None:
    async def scene(_: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        answer, pipes = await worker.hear()
        assert answer == {"started": 1}
        assert os.read(pipes[1], 100) == b"65534 1\n"
        for pipe in pipes:
            os.close(pipe)
        assert (await worker.hear())[0] == {"ended": 1, "status": "exit status 0"}

    code = "import os; print(os.geteuid(), [l.split()[1] for l in open('/proc/self/status') if 'NoNewPrivs' in l][0])"
    assert play(declared(code, user=""), scene) == []


def test_no_more_than_the_bound_run_however_fast_a_worker_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh_net.workers.stdio_servers.MAX_PROCESSES", 2)

    async def scene(servers: StdioServers, worker: Worker) -> None:
        for number in range(1, 6):
            await worker.say(start=number, server="io")
        answers = [await worker.hear() for _ in range(5)]
        failed = [answer["error"] for answer, _ in answers if "failed" in answer]
        assert len(failed) == 3 and "2 processes of this server are running already" in failed[0]
        assert len(servers.pids) == 2
        for pipe in (pipe for _, pipes in answers for pipe in pipes):
            os.close(pipe)

    assert len(play(declared("import sys; sys.stdin.read()"), scene)) == 3


def test_a_command_that_is_not_there_is_an_error_that_names_it() -> None:
    current = declared("")
    servers = tuple(
        replace(s, command="/no/such/program") if s.id == "io" else s for s in current.registry.servers
    )
    current = replace(current, registry=replace(current.registry, servers=servers))

    async def scene(_: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        answer, _ = await worker.hear()
        assert "/no/such/program: No such file" in answer["error"]

    play(current, scene)


def test_a_server_that_will_not_end_is_killed_with_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh_net.workers.stdio_servers.GRACE", (0.1, 0.1))
    code = "import signal,os,time; signal.signal(15, signal.SIG_IGN); p=os.fork(); print(os.getpid(), flush=True); time.sleep(60)"

    async def scene(servers: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        _, pipes = await worker.hear()
        first, second = sorted(map(int, (await lines(pipes[1], 2))))
        await worker.say(end=1)
        assert await worker.hear() == ({"ended": 1, "status": "signal 9"}, [])
        await until(lambda: not alive(first) and not alive(second))
        for pipe in pipes:
            os.close(pipe)

    play(declared(code), scene)


@pytest.mark.parametrize("denied", [True, False])
def test_of_a_server_that_is_denied_a_child_in_another_process_group_ends_too(denied: bool) -> None:
    code = (
        "import subprocess,sys; child = subprocess.Popen(['sleep', '60'], start_new_session=True); "
        "print(child.pid, flush=True); sys.stdin.read()"
    )

    async def scene(servers: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        _, pipes = await worker.hear()
        (child,) = map(int, await lines(pipes[1], 1))
        if denied:
            servers._snapshot = lambda: declared(code, denied_servers=[{"id": "io"}])
        servers.follow()
        os.close(pipes[0])  # it ends by itself, before anybody asks
        assert await worker.hear() == ({"ended": 1, "status": "exit status 0"}, [])
        if denied:
            await until(lambda: not alive(child))
        else:
            assert alive(child)
            os.kill(child, signal.SIGKILL)
        for pipe in pipes[1:]:
            os.close(pipe)

    play(declared(code), scene)


def test_what_a_denied_server_starts_before_it_ends_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh_net.workers.stdio_servers.GRACE", (0.1, 0.1))
    code = (
        "import signal,subprocess,sys; signal.signal(15, signal.SIG_IGN); sys.stdin.readline(); "
        "print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True); signal.pause()"
    )

    async def scene(servers: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        _, pipes = await worker.hear()
        servers._snapshot = lambda: declared(code, denied_servers=[{"id": "io"}])
        servers.follow()
        os.write(pipes[0], b"\n")
        (child,) = map(int, await lines(pipes[1], 1))
        await worker.say(end=1)
        assert await worker.hear() == ({"ended": 1, "status": "signal 9"}, [])
        await until(lambda: not alive(child))
        for pipe in pipes:
            os.close(pipe)

    play(declared(code), scene)


async def lines(pipe: int, count: int) -> list[bytes]:
    data = b""
    while data.count(b"\n") < count:
        data += await asyncio.to_thread(os.read, pipe, 100)
    return data.split()


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "nonsense", [b"no json", b'{"start":"1"}', b"[]", b'{"run":"sh"}', b'{"start":1,"server":"io"}']
)
def test_a_worker_that_talks_nonsense_gets_nothing_more_and_its_servers_end(nonsense: bytes) -> None:
    async def scene(servers: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        _, pipes = await worker.hear()
        for pipe in pipes:
            os.close(pipe)
        worker.link.send(nonsense)
        while servers.pids:
            await asyncio.sleep(0.01)
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            worker.link.send(b"{}")

    play(declared("import sys; sys.stdin.read()"), scene)


def test_what_a_worker_had_started_ends_when_another_takes_its_place() -> None:
    async def scene(servers: StdioServers, worker: Worker) -> None:
        await worker.say(start=1, server="io")
        _, pipes = await worker.hear()
        for pipe in pipes:
            os.close(pipe)
        await worker.say(start=2, server="io")
        await until(lambda: servers._starting or len(servers.pids) == 2)
        servers.attach().close()  # mostly before the second has started
        assert await asyncio.get_running_loop().sock_recv(worker.link, 1) == b""
        await until(lambda: not servers.pids and not servers._starting)

    play(declared("import signal; signal.pause()"), scene)
