"""The gateway lets in who may ask, finds the server that is meant, and says what is wrong with everything else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from gateway_front import GatewayFront, call, gateway_over, play_plainly, request, same, snapshot
from mcp_peers.roles import legacy
from mcp_peers.scripted import Scripted, Seen, Wire, run, serving

from agentsh_net.core.audit.joining import Intent


def test_a_denied_server_is_refused_in_json_rpc_and_its_calls_are_told_of() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.post(request("initialize", "i"))
        assert (answer.status, answer.json["id"]) == (200, "i")
        assert "denied by policy" in answer.json["error"]["message"]
        assert (await front.post(call(id_=2))).json["id"] == 2
        assert (await front.ask("GET")).status == 403
        assert server.seen == []
        assert front.told("mcp_tool_called")[0]["action"] == "block"
        told = [(e["action"], e["rule"], e["method"]) for e in front.told("mcp_server_refused")]
        rule = "sandbox.mcp.denied_servers[0]"
        assert told == [("block", rule, "initialize"), ("block", rule, "GET")]

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
                async with asyncio.timeout(60):
                    await front.gateway.drain(600)

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
