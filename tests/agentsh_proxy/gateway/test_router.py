"""The gateway lets in who may ask, finds the server that is meant, and says what is wrong with everything else."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import Mock

import pytest
from gateway_front import (
    INITIALIZE,
    GatewayFront,
    call,
    empty,
    gateway_over,
    play_plainly,
    request,
    same,
    snapshot,
)
from gateway_pipes import FakePipe, begun
from gateway_pipes import play as play_pipes
from mcp_peers.roles import SseServer, legacy
from mcp_peers.scripted import Scripted, Seen, Wire, run, serving

from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.errors import ProtocolError


def test_a_denied_server_is_refused_in_json_rpc_and_its_calls_are_told_of() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.post(request("initialize", "i"))
        assert (answer.status, answer.json["id"]) == (200, "i")
        assert "denied by policy" in answer.json["error"]["message"]
        assert (await front.post(call(id_=2))).json["id"] == 2
        assert (await front.ask("GET")).status == 403
        assert server.seen == []
        assert front.told("mcp_tool_called")[0]["action"] == "block"
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        said = await front.post(note)
        assert (said.status, said.body) == (202, b"")  # nobody waits for an answer
        batch = (await front.post([call(id_=3), note, request("ping", "4")])).json
        assert [(error["id"], "peer is denied by" in error["error"]["message"]) for error in batch] == [
            (3, True),
            ("4", True),
        ]
        assert (await front.post(b'{"id":5,"x":1,"x":2}')).json["id"] == 5
        assert server.seen == []
        told = [(e["action"], e["rule"], e["method"]) for e in front.told("mcp_server_refused")]
        rule = "sandbox.mcp.denied_servers[0]"
        assert told == [("block", rule, "initialize"), ("block", rule, "GET"), ("block", rule, "ping")]

    play_plainly(scene, server_policy="denylist", denied_servers=[{"id": "peer"}])


def test_a_call_that_a_model_wrote_is_joined_and_not_charged_again() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.charges.intents.append(Intent("e-1", "agent-7", "toolu_1", None, (), 0.0))
        await front.post(call())
        assert front.charges.charged == []
        await front.post(call())
        assert front.charges.charged == [("peer", "add", "default")]
        joined, alone = front.told("mcp_tool_called")
        assert (joined["intercepted_id"], joined["tool_call_id"], joined["session_id"]) == (
            "e-1",
            "toolu_1",
            "agent-7",
        )
        assert alone["intercepted_id"] == ""

    play_plainly(scene, rate_limits={"default_rpm": 60})


def test_a_rate_that_is_used_up_blocks() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.charges.left = 1
        assert "result" in (await front.post(call())).json
        assert "error" in (await front.post(call())).json

    play_plainly(scene, rate_limits={"default_rpm": 60})


def test_a_reload_bites_at_the_next_call() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: Any) -> None:
        assert "result" in (await front.post(call("rm"))).json
        front.follow(snapshot([peer], generation=2, denied_tools=[{"tool": "rm"}]))
        assert "error" in (await front.post(call("rm"))).json
        front.follow(snapshot([], generation=3))
        assert (await front.post(call("rm"))).status == 404

    play_plainly(scene)


def test_a_server_that_is_declared_otherwise_is_reached_there() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: Any) -> None:
        async with serving(legacy(tools_call=empty)) as other:
            moved = peer | {"url": other.url()}
            for declared, there in ((peer, server), (moved, other), (moved, other)):
                front.follow(snapshot([declared]))
                assert (await front.post(call())).status == 200
                assert there.seen.pop().rpc == "tools/call"
            assert (server.seen, other.connections) == ([], 1)
            while server.tasks:  # until what was kept open to where it was is closed
                await asyncio.sleep(0)
            assert (front.counts.requests, front.counts.calls_judged, front.counts.calls_blocked) == (3, 3, 0)

    play_plainly(scene)


def test_what_is_under_way_ends_before_the_gateway_does_and_nothing_begins() -> None:
    go_on = asyncio.Event()

    async def slow(asked: Seen, wire: Wire) -> None:
        await go_on.wait()
        await wire.result(asked, {"content": []})

    async def main() -> None:
        async with serving(legacy(tools_call=slow)) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer])) as front:
                reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
                calling = asyncio.create_task(front.post(call()))
                await server.until(lambda: len(server.seen) == 1)
                ending = asyncio.create_task(front.gateway.drain(600))
                assert await reader.read() == b""  # nobody waits for what an idle client may ask
                assert not ending.done()
                go_on.set()
                assert "result" in (await calling).json
                await ending
                while front.gateway.front.connections:
                    await asyncio.sleep(0)
                writer.close()

    run(main())


def test_of_a_gateway_that_ended_nothing_goes_on() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        calling = asyncio.create_task(front.post(call(), **session))
        await pipe.heard("tools/call")
        gateway = front.gateway
        gateway._spawn(asyncio.sleep(600))
        tasks, timer = tuple(gateway._tasks), gateway._timer
        gateway.close()
        with pytest.raises(ProtocolError):
            await calling  # it is cut
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert (timer.cancelled(), pipe.closed) == (True, True)

    play_pipes(scene)


def test_what_fails_in_the_background_is_told() -> None:
    async def failing() -> None:
        raise ZeroDivisionError

    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        for work in (failing(), asyncio.sleep(0)):
            front.gateway._spawn(work)
        while front.gateway._tasks:
            await asyncio.sleep(0)
        assert [type(bug) for bug in front.bugs] == [ZeroDivisionError]
        front.bugs.clear()

    play_plainly(scene)


def test_every_second_each_carrier_and_connection_is_looked_at() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        gateway, carrier = front.gateway, Mock()
        gateway._carriers["other"] = carrier
        gateway._timer.cancel()
        former, gateway.front.now = gateway._timer, 0.0
        gateway._tick()
        assert gateway.front.now > 0
        carrier.tick.assert_called_once_with(gateway.front.now)
        assert gateway._timer is not former and not gateway._timer.cancelled()

    play_plainly(scene)


def test_a_stdio_server_is_not_started_where_nobody_starts_them() -> None:
    async def main() -> None:
        async with gateway_over(snapshot([{"id": "peer", "type": "stdio", "command": "x"}])) as front:
            answer = await front.post(request("initialize"))
            assert answer.status == 503
            assert "stdio server peer cannot be started here" in answer.json["error"]["message"]

    run(main())


def test_what_a_client_sends_with_every_request_goes_with_the_stream_of_an_older_server() -> None:
    async def main() -> None:
        async with serving(SseServer()) as server:
            peer = {"id": "peer", "type": "sse", "url": server.url("/sse")}
            async with gateway_over(snapshot([peer])) as front:
                fields = {
                    "User-Agent": "me",
                    "MCP-Protocol-Version": "2025-11-25",
                    "Cache-Control": "no-cache",
                }
                assert (await front.post(INITIALIZE, **fields)).status == 200
                (opened,) = (seen for seen in server.seen if seen.method == "GET")
                assert (opened.headers["user-agent"], opened.headers["cache-control"]) == ("me", "no-store")
                assert not opened.headers.keys() & {"mcp-protocol-version", "content-type"}

    run(main())


def test_a_stream_that_is_open_does_not_hold_up_the_end() -> None:
    async def quiet(_: Seen, wire: Wire) -> None:
        await wire.raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await wire.chunk(b": on\n\n")
        await asyncio.sleep(30)

    async def main() -> None:
        async with serving(legacy(GET=quiet)) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer])) as front:
                response = await front.open("GET")
                await response.next()
                await front.gateway.drain(600)
                with pytest.raises(ProtocolError):
                    await response.read(1 << 20)  # it is cut

    run(main())


@pytest.mark.parametrize(
    "fields",
    [{"Content-Encoding": "gzip"}, {"Content-Type": "application/json; charset=utf-7"}],
    ids=["gzip", "utf-7"],
)
def test_a_body_that_the_server_would_decode_into_another_call_does_not_reach_it(
    fields: dict[str, str],
) -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        assert (await front.post(call(), **fields)).status == 415
        assert server.seen == []
        assert (await front.post(call())).status == 200

    play_plainly(scene, {"servers": {"peer": {"passthrough": True}}})


@pytest.mark.parametrize("coding", ["utf-16", "utf-32-be", "trailing"])
def test_a_call_that_only_lenient_servers_read_does_not_reach_them_whatever_fail_closed_says(
    coding: str,
) -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        text = json.dumps(call("rm"))
        answer = await front.post(f"{text} x".encode() if coding == "trailing" else text.encode(coding))
        assert answer.json["error"]["code"] == -32600
        assert server.seen == []
        (event,) = front.told("mcp_message_uninspected")
        assert (event["action"], event["reason"] != "") == ("block", True)

    play_plainly(scene, denied_tools=[{"server": "peer", "tool": "rm"}])


def test_a_connection_of_the_first_second_is_not_taken_for_a_quiet_one() -> None:
    """The clock of the loop began long before the gateway."""

    async def scene(front: GatewayFront, _server: Scripted, _: Any) -> None:
        shared, now = front.gateway.front, asyncio.get_running_loop().time()
        assert await same(front, lambda: shared.tick(now + 1)), "it was not closed between the two"

    play_plainly(scene)


def test_the_end_tells_how_many_refused_requests_were_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh_proxy.refused_requests.REFUSALS", 1)
    monkeypatch.setattr("agentsh_proxy.refused_requests.REFUSALS_A_SECOND", 1e-9)

    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        for _ in range(4):
            assert (await front.ask("PUT")).status == 405
        front.gateway.close()
        assert [event["lost"] for event in front.told("events_lost")] == [1, 2]
        assert server.seen == []

    play_plainly(scene)
