"""The pool keeps unprivileged workers serving the newest policy, whatever happens to any of them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from loopback import until
from loopback.client import Client, request
from loopback.proxy import snapshot
from loopback.upstream import Upstream, answering, response

from agentsh_net.core.errors import ConfigError
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.workers import listening, pool, unprivileged
from agentsh_net.workers.arbiter import Arbiter
from agentsh_net.workers.pool import Pool

MESSAGES = "/anthropic/v1/messages"
BLOCKED = b"blocked by policy"


def answer_with(name: str) -> bytes:
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": "/etc"}}
    return response(
        orjson.dumps({"type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"})
    )


class Running:
    """A pool with an upstream behind it."""

    def __init__(self, count: int = 1, name: str = "delete_files", **policy) -> None:
        self.upstream = Upstream(answering(answer_with(name)))
        self.events = []
        self.reports = []
        self._count = count
        self._policy = policy

    def snapshot(self, generation: int = 1, **policy):
        return snapshot(
            self.upstream.port,
            generation=generation,
            proxy={"workers": self._count},
            **(self._policy | policy),
        )

    async def __aenter__(self):
        await self.upstream.__aenter__()
        first = self.snapshot()
        self.arbiter = Arbiter(Buckets(first.config.sandbox.mcp.rate_limits), time.monotonic)
        self.arbiter.start()
        self.pool = Pool(
            first.config.proxy,
            on_event=self.events.append,
            on_report=self.reports.append,
            arbiter=self.arbiter,
        )
        self.port = urlsplit(self.pool.url).port
        await self.pool.start(first)
        return self

    async def __aexit__(self, *_):
        await self.pool.stop(1)
        self.arbiter.stop()
        await self.upstream.__aexit__()

    async def ask(self, path: str = MESSAGES, body: bytes = b"{}"):
        async with Client(self.port) as client:
            return await client.ask(request(path, body))


def running(test):
    """Run an async test on the supervisor's kind of loop, with a minute for slow machines."""

    def run(**arguments):
        async def bounded():
            async with asyncio.timeout(60):
                await test(**arguments)

        asyncio.run(bounded())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    run.__signature__ = __import__("inspect").signature(test)
    return run


@running
async def test_a_worker_blocks_and_tells_the_supervisor():
    async with Running() as it:
        answer = await it.ask()
        assert BLOCKED in answer.body
        await until(lambda: it.events)
        (event,) = it.events
        assert (event.type, event.action, event.server_id) == ("mcp_tool_call_intercepted", "block", "files")
        assert event.input == {"path": "/etc"}


@running
async def test_a_published_policy_is_in_force_in_every_worker_when_publish_returns():
    async with Running(count=2, name="get_weather") as it:
        assert len(it.pool.pids) == 2
        for generation, denied in ((2, True), (3, False)):
            rules = {"denied_tools": [{"server": "weather", "tool": "*"}]} if denied else {}
            await it.pool.publish(it.snapshot(generation, **rules))
            answers = [(await it.ask()).body for _ in range(12)]
            assert all((BLOCKED in body) is denied for body in answers)


@running
async def test_sessions_are_known_when_publishing_them_returns():
    async with Running() as it:
        assert (await it.ask("/s/tok" + MESSAGES)).status == 403
        await it.pool.publish_sessions({sha256(b"tok").hexdigest(): "agent"}, placed=False)
        assert (await it.ask("/s/tok" + MESSAGES)).status == 200
        await until(lambda: len(it.events) == 2)
        told = [(event.type, event.session_id) for event in it.events]
        assert told == [("llm_request_refused", "default"), ("mcp_tool_call_intercepted", "agent")]


@running
async def test_whose_a_connection_is_is_asked_while_a_session_has_a_cgroup_also_by_the_next_worker():
    async with Running() as it:
        it.arbiter.whose = lambda packet: "mine"
        for placed in (False, True):
            await it.pool.publish_sessions({}, placed=placed)
            await it.ask()
        os.kill(it.pool.pids[0], signal.SIGKILL)
        await it.ask()
        await until(lambda: len([e for e in it.events if e.type == "mcp_tool_call_intercepted"]) == 3)
        calls = [event for event in it.events if event.type == "mcp_tool_call_intercepted"]
        assert [call.session_id for call in calls] == ["default", "mine", "mine"]


@running
async def test_a_killed_worker_comes_back_with_the_newest_policy_and_sessions(monkeypatch):
    async with Running(name="get_weather") as it:
        await it.pool.publish(it.snapshot(2, denied_tools=[{"server": "weather", "tool": "*"}]))
        await it.pool.publish_sessions({sha256(b"tok").hexdigest(): "agent"}, placed=False)
        (first,) = it.pool.pids
        os.kill(first, signal.SIGKILL)
        # The port never closes: a client that comes in between waits for the successor.
        answer = await it.ask("/s/tok" + MESSAGES)
        assert BLOCKED in answer.body
        (second,) = it.pool.pids
        assert second != first
        exited = [e for e in it.events if e.type == "worker_exited"]
        assert [(e.pid, e.status) for e in exited] == [(first, "signal SIGKILL")]


@pytest.mark.parametrize("error", [BlockingIOError(11, "no process left"), RuntimeError("no thread left")])
@running
async def test_where_the_host_lets_none_start_it_is_tried_again_and_told_once(monkeypatch, error):
    monkeypatch.setattr(pool, "BACKOFF", (0.001, 0.001))
    async with Running(name="get_weather") as it:
        tries, start = [], unprivileged.start

        async def refused(*words, **options):
            tries.append(words)
            raise error

        monkeypatch.setattr(unprivileged, "start", refused)
        (first,) = it.pool.pids
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(tries) > 3)
        assert it.pool.trouble == "1 of 1 workers are not running"
        monkeypatch.setattr(unprivileged, "start", start)
        assert (await it.ask()).status == 200
        exited = [(e.pid, e.reason) for e in it.events if e.type == "worker_exited"]
        assert exited[1:] == [(0, f"no proxy worker starts: {error}")]


@running
async def test_a_worker_is_known_as_ours_before_it_can_connect_and_when_it_has_ended():
    async with Running() as it:
        (first,) = it.pool.pids
        known = []
        it.pool.employ = lambda pid: known.append((pid in it.pool.processes, it.pool.pids))
        os.kill(first, signal.SIGKILL)
        await until(lambda: not it.pool.pids)
        assert it.pool.processes == {first}
        await until(lambda: it.pool.pids)
        assert known == [(True, [])]


@running
async def test_a_worker_that_does_not_acknowledge_is_replaced(monkeypatch):
    monkeypatch.setattr(pool, "ACK_SECONDS", 0.3)
    async with Running(name="get_weather") as it:
        (first,) = it.pool.pids
        os.kill(first, signal.SIGSTOP)
        await it.pool.publish(it.snapshot(2, denied_tools=[{"server": "weather", "tool": "*"}]))
        assert BLOCKED in (await it.ask()).body
        assert it.pool.pids != [first]
        assert "did not acknowledge" in next(e for e in it.events if e.type == "worker_exited").status


@running
async def test_a_worker_that_is_not_heard_any_more_is_told_of_and_replaced(monkeypatch):
    async with Running() as it:
        (first,) = it.pool.pids
        assert it.pool.trouble == ""
        os.kill(first, signal.SIGSTOP)
        monkeypatch.setattr(pool.link, "COUNTERS_EVERY", 0.05)
        await until(lambda: it.pool.trouble.startswith("1 of 1 workers have not been heard"))
        assert BLOCKED in (await it.ask()).body
        assert it.pool.pids != [first]
        assert [e.pid for e in it.events if "was not heard" in getattr(e, "status", "")] == [first]


@pytest.mark.parametrize("greeted", [True, False])
@running
async def test_a_worker_that_is_starting_as_the_pool_stops_ends_with_it(monkeypatch, greeted):
    started = []

    async def silent(*_, passing):
        fds = tuple(each.fileno() for each in passing.values())
        started.append(await asyncio.create_subprocess_exec("sleep", "600", pass_fds=fds))
        return started[0]

    async with Running() as it:
        (worker,) = it.pool._workers
        monkeypatch.setattr(unprivileged, "start", silent)
        if not greeted:  # as `stop` does, in the moment before there is a link
            monkeypatch.setattr(it.pool, "employ", lambda _: worker._keeper.cancel())
        os.kill(it.pool.pids[0], signal.SIGKILL)
        await until(lambda: started)
        await until(lambda: it.pool.processes == {started[0].pid})
    assert await started[0].wait() == -signal.SIGKILL


@running
async def test_a_worker_that_breaks_the_rules_of_its_link_is_ended(monkeypatch):
    async with Running() as it:
        (worker,) = it.pool._workers
        (first,) = it.pool.pids
        link = worker._running.link
        link.get_buffer(-1)[:4] = b"\xff\xff\xff\xff"
        link.buffer_updated(4)
        await until(lambda: it.pool.pids not in ([], [first]))
        assert "broke the rules of its link" in next(e for e in it.events if e.type == "worker_exited").status
        assert BLOCKED in (await it.ask()).body


@running
async def test_rate_limits_are_exact_over_all_workers():
    limits = {"enabled": True, "default_rpm": 1, "default_burst": 5}
    async with Running(count=2, name="get_weather", rate_limits=limits) as it:
        answers = [(await it.ask()).body for _ in range(16)]
        assert sum(BLOCKED not in body for body in answers) == 5


@running
async def test_a_stream_under_way_ends_before_its_worker_does():
    async with Running() as it:
        go = asyncio.Event()

        async def slow(conversation, _):
            await go.wait()
            await conversation.send(response(b'{"late": 1}'))

        it.upstream.script = slow
        asking = asyncio.ensure_future(it.ask())
        await it.upstream.arrived.wait()
        stopping = asyncio.ensure_future(it.pool.stop(10))
        await asyncio.sleep(0.3)
        go.set()
        assert (await asking).body == b'{"late": 1}'
        await stopping
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", it.port), 1).close()


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
@running
async def test_a_worker_of_root_has_no_privilege_left():
    async with Running() as it:
        (pid,) = it.pool.pids
        who = unprivileged.identity()
        told = status(pid)
        assert told["Uid"].split() == [str(who.uid)] * 4 != ["0"] * 4
        assert told["Gid"].split() == [str(who.gid)] * 4
        assert told["Groups"] == ""
        assert [int(told[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 5
        assert told["NoNewPrivs"] == "1"
        assert "SECRET" not in Path(f"/proc/{pid}/environ").read_text()


@running
async def test_a_worker_dies_with_its_supervisor():
    async with Running() as it:
        (worker,) = it.pool._workers
        running = worker._running
        it.pool.stopping = True
        running.link.close()
        assert await running.process.wait() == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_port_in_use_is_a_problem_of_the_configuration(count):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        proxy = snapshot(1, proxy={"port": port, "workers": count}).config.proxy
        with pytest.raises(ConfigError, match=f"proxy.port: found 127.0.0.1:{port}"):
            listening.bind(proxy)


def test_two_pools_never_share_a_port():
    first = listening.bind(snapshot(1, proxy={"workers": 2}).config.proxy)
    port = first[0].getsockname()[1]
    assert [s.getsockname()[1] for s in first] == [port, port]
    for listener in first:
        listener.listen()
    with pytest.raises(ConfigError):
        listening.bind(snapshot(1, proxy={"port": port, "workers": 2}).config.proxy)
    for listener in first:
        listener.close()
