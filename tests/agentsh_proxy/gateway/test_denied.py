"""A server that policy comes to deny: what is in flight gets the policy's error, its sessions end, and nobody reaches it any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from gateway_front import GatewayFront, call, gateway_over, play_plainly, request, snapshot
from gateway_pipes import PEER, FakePipe, begun, headers, modern
from gateway_pipes import play as play_pipes
from mcp_peers.roles import legacy
from mcp_peers.scripted import STREAM, Scripted, Seen, Wire, run, serving

from agentsh_net.core.mcp.gate import BLOCKED

DENIED = {"denied_servers": [{"id": "peer"}]}


def refused(message: Any) -> Any:
    """Return the id of what got the policy's error."""
    assert message["error"]["code"] == BLOCKED
    assert "server peer is denied by " in message["error"]["message"]
    return message["id"]


def stopped(front: GatewayFront) -> dict[str, Any]:
    (told,) = front.told("mcp_server_stopped")
    kept = ("action", "rule", "server_id", "via", "sessions", "requests")
    return {key: told[key] for key in kept}


def told(sessions: int, requests: int) -> dict[str, Any]:
    return {
        "action": "block",
        "rule": "sandbox.mcp.denied_servers[0]",
        "server_id": "peer",
        "via": "gateway",
        "sessions": sessions,
        "requests": requests,
    }


async def _silent(asked: Seen, wire: Wire) -> None:
    await asyncio.sleep(60)


async def _begun(asked: Seen, wire: Wire) -> None:
    await wire.raw(STREAM)
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    await wire.event(note)
    await asyncio.sleep(60)


def test_of_a_server_that_speaks_http() -> None:
    async def main() -> None:
        async with serving(legacy(tools_call=_silent, resources_read=_begun, GET=_begun)) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer])) as front:
                calling = asyncio.create_task(front.post(call()))
                reading = await front.open("POST", request("resources/read", 2, uri="x"))
                listening = await front.open("GET")
                for stream in (reading, listening):
                    assert b"progress" in await stream.next()
                await server.until(lambda: len(server.seen) == 3)
                front.follow(snapshot([peer], generation=2, **DENIED))
                answer = await calling
                assert (answer.status, refused(answer.json)) == (200, 1)
                rest = await reading.read(1 << 20)
                assert refused(json.loads(rest.split(b"data: ")[1])) == 2
                assert await listening.read(1 << 20) == b""
                assert stopped(front) == told(0, 3)
                assert refused((await front.post(call())).json) == 1

    run(main())


def test_it_is_reached_again_once_policy_allows_it() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: Any) -> None:
        assert (await front.post(call())).status == 200
        front.follow(snapshot([peer], generation=2, **DENIED))
        refused((await front.post(call())).json)
        assert front.told("mcp_server_stopped") == []  # there was nothing under way
        front.follow(snapshot([peer], generation=3))
        assert "result" in (await front.post(call())).json

    play_plainly(scene)


def test_of_one_behind_a_pipe_with_sessions() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        listening = await front.open("GET", **session)
        calling = asyncio.create_task(front.post(call("add", 7), **session))
        await pipe.heard("tools/call")
        front.follow(snapshot([PEER], generation=2, **DENIED))
        assert (refused((await calling).messages[-1]), pipe.closed) == (7, True)
        with contextlib.suppress(Exception):  # it is cut
            await listening.read(1 << 20)
        assert stopped(front) == told(1, 1)
        refused((await front.post(call(), **session)).json)
        front.follow(snapshot([PEER], generation=3))
        assert (await front.post(call(), **session)).status == 404  # its client begins anew
        pipes.clear()
        assert (await begun(front, pipes))[1] is not pipe

    play_pipes(scene)


def test_of_one_whose_sessions_ask_nothing_just_then() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        _, pipe = await begun(front, pipes)
        front.follow(snapshot([PEER], generation=2, **DENIED))
        assert (stopped(front), pipe.closed) == (told(1, 0), True)

    play_pipes(scene)


def test_of_one_behind_a_pipe_without_sessions() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        asked = modern(call("add", "a")), modern(request("subscriptions/listen", "s"))
        calling, listening = (asyncio.create_task(front.post(m, **headers(m))) for m in asked)
        while not pipes or len(pipes[0].sent) < 3:
            await asyncio.sleep(0)
        front.follow(snapshot([PEER], generation=2, **DENIED))
        assert [refused((await each).messages[-1]) for each in (calling, listening)] == ["a", "s"]
        assert (stopped(front), pipes[0].closed) == (told(1, 2), True)

    play_pipes(scene)


def test_what_was_admitted_just_before_does_not_reach_it() -> None:
    async def main() -> None:
        async with serving(legacy()) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer])) as front:
                serve = front.gateway.front.handler

                def late(*asked: Any) -> Any:
                    work = serve(*asked)
                    front.follow(snapshot([peer], generation=2, **DENIED))
                    return work

                front.gateway.front.handler = late
                assert (await front.post(request("ping"))).status == 503
                assert server.seen == []

    run(main())
