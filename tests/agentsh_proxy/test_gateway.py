"""The gateway lets in who may ask, finds the server that is meant, and says what is wrong with everything else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import pytest
from gateway_front import GatewayFront, call, gateway_over, request, snapshot
from mcp_peers.roles import legacy
from mcp_peers.scripted import Scripted, Seen, Wire, run, serving

from agentsh_net.core.joining import Intent
from agentsh_net.core.snapshot import Snapshot

ACCEPTING = ("Content-Type: application/json", "Accept: application/json, text/event-stream")


async def plain(asked: Seen, wire: Wire) -> None:
    await wire.result(asked, {"content": []})


def play(
    scene: Callable[[GatewayFront, Scripted, dict[str, Any]], Awaitable[None]], gateway: dict[str, Any] | None = None, **mcp: Any
) -> None:  # fmt: skip
    async def main() -> None:
        async with serving(legacy(tools_call=plain)) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer], gateway=gateway, **mcp)) as front:
                await scene(front, server, peer)

    run(main())


def test_a_host_that_is_not_the_gateways_is_refused_as_a_rebound_name() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        for host in ("evil.example", "evil.example:8485", "127.0.0.1.evil.example"):
            answer = await front.raw(
                f"POST /mcp/peer HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
            )
            assert answer.startswith(b"HTTP/1.1 421 ")
        assert server.seen == []

    play(scene)


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://evil.example", 403), ("null", 403), ("http://localhost:6274", 200), ("https://ok.corp", 200)],
)
def test_pages_of_other_origins_are_refused(origin: str, status: int) -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.post(call(), Origin=origin)
        assert answer.status == status
        if status == 200:
            assert answer.headers["access-control-allow-origin"] == origin
            assert "origin" not in server.seen[0].headers
            preflight = await front.ask("OPTIONS", Origin=origin)
            assert (preflight.status, preflight.headers["access-control-allow-methods"]) == (
                204,
                "GET, POST, DELETE",
            )

    play(scene, {"allowed_origins": ["https://ok.corp"]})


def test_a_server_that_is_not_declared_is_404_and_the_known_ones_are_named() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.post(call(), server="nope")
        assert answer.status == 404
        assert "'nope' is not declared; declared servers: peer" in answer.json["error"]["message"]
        assert (await front.ask("GET", path="/elsewhere")).status == 404

    play(scene)


def test_an_id_is_found_whatever_its_case() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        assert (await front.post(call(), server="PEER")).status == 200

    play(scene)


def test_a_denied_server_is_refused_in_json_rpc_and_its_calls_are_told_of() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.post(request("initialize", "i"))
        assert (answer.status, answer.json["id"]) == (200, "i")
        assert "denied by policy" in answer.json["error"]["message"]
        assert (await front.post(call(id_=2))).json["id"] == 2
        assert (await front.ask("GET")).status == 403
        assert server.seen == []
        assert front.told("mcp_tool_called")[0]["action"] == "block"

    play(scene, server_policy="denylist", denied_servers=[{"id": "peer"}])


def test_methods_that_mcp_does_not_know_are_refused() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.ask("PUT", call())
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, DELETE")

    play(scene)


def test_a_token_in_the_path_names_the_session_and_an_unknown_one_is_refused() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.gateway.sessions = {sha256(b"tok").hexdigest(): "agent-7"}
        assert (await front.ask("POST", call(), path="/s/tok/mcp/peer")).status == 200
        assert front.told("mcp_tool_called")[0]["session_id"] == "agent-7"
        assert (await front.ask("POST", call(), path="/s/other/mcp/peer")).status == 403

    play(scene)


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

    play(scene, rate_limits={"default_rpm": 60})


def test_a_rate_that_is_used_up_blocks() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.charges.left = 1
        assert "result" in (await front.post(call())).json
        assert "error" in (await front.post(call())).json

    play(scene, rate_limits={"default_rpm": 60})


def test_a_reload_bites_at_the_next_call() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: Any) -> None:
        assert "result" in (await front.post(call("rm"))).json
        front.follow(snapshot([peer], generation=2, denied_tools=[{"tool": "rm"}]))
        assert "error" in (await front.post(call("rm"))).json
        front.follow(snapshot([], generation=3))
        assert (await front.post(call("rm"))).status == 404

    play(scene)


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
                async with asyncio.timeout(5):
                    await front.gateway.drain(20)

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

    play(scene, {"servers": {"peer": {"passthrough": True}}})


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

    play(scene, denied_tools=[{"server": "peer", "tool": "rm"}])


async def same(
    front: GatewayFront, change: Callable[[], None], path: str = "/mcp/peer", *fields: str
) -> list[bytes]:
    """Send one request twice on a connection, with the change between; return how each was answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    body = json.dumps(call()).encode()
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{front.port}",
        f"Content-Length: {len(body)}",
        *ACCEPTING,
        *fields,
    ]
    answers = []
    for _ in range(2):
        writer.write("\r\n".join((*head, "", "")).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", answer)
        assert length is not None
        answers.append(answer[9:12] + b" " + await reader.readexactly(int(length[1])))
        change()
    writer.close()
    return answers


def test_a_head_that_comes_again_is_held_against_what_is_in_force_by_then() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: dict[str, Any]) -> None:
        key = {"id": "k", "type": "apiKey", "in": "header", "name": "X-Key", "credential": "one"}

        def secured(credential: str) -> Snapshot:
            scheme = key | {"credential": credential}
            return snapshot(
                [peer],
                gateway={"security_schemes": [scheme], "servers": {"peer": {"downstream_security": "k"}}},
            )

        def revoke() -> None:
            front.gateway.sessions = {}

        denied = await same(front, lambda: front.follow(snapshot([peer], denied_servers=["peer"])))
        front.follow(secured("one"))
        rotated = await same(front, lambda: front.follow(secured("two")), "/mcp/peer", "X-Key: one")
        front.follow(snapshot([peer]))
        front.gateway.sessions = {sha256(b"token").hexdigest(): "agent"}
        ended = await same(front, revoke, "/s/token/mcp/peer")
        gone = await same(front, lambda: front.follow(snapshot([])))
        assert [[a[:3] for a in answers] for answers in (denied, rotated, ended, gone)] == [
            [b"200", b"200"], [b"200", b"401"], [b"200", b"403"], [b"200", b"404"],
        ]  # fmt: skip
        assert b"is denied by" in denied[1]
        assert len(server.seen) == 4, "what was refused did not reach the server"

    play(scene)


def test_a_connection_of_the_first_second_is_not_taken_for_a_quiet_one() -> None:
    """The clock of the loop began long before the gateway."""

    async def scene(front: GatewayFront, _server: Scripted, _: Any) -> None:
        shared, now = front.gateway.front, asyncio.get_running_loop().time()
        assert await same(front, lambda: shared.tick(now + 1)), "it was not closed between the two"

    play(scene)
