"""Each connection that the gateway opens to a server is told of once, as the session's whose request led to it."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any

import pytest
from agentsh_proxy.gateway.dialing import connected
from gateway_front import INITIALIZE, GatewayFront, call, gateway_over, snapshot
from mcp_peers.roles import SseServer, legacy
from mcp_peers.scripted import Seen, Wire, run, serving

from agentsh_net.core.links import link
from agentsh_net.core.model import Server, Transport


async def plain(asked: Seen, wire: Wire) -> None:
    await wire.result(asked, {"content": []})


def connections(front: GatewayFront) -> list[dict[str, Any]]:
    return front.told("mcp_network_connection")


def test_a_connection_is_its_sessions_and_one_that_is_used_again_is_not_told_twice() -> None:
    async def main() -> None:
        async with serving(legacy(tools_call=plain)) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer])) as front:
                front.gateway.sessions = {sha256(b"tok").hexdigest(): "mine"}
                for _ in range(2):
                    assert (await front.ask("POST", call(), path="/s/tok/mcp/peer")).status == 200
                (told,) = connections(front)
                assert (told["session_id"], told["server_id"], told["layer"], told["correlated"]) == (
                    "mine",
                    "peer",
                    "proxy",
                    True,
                )
                assert told["remote_addr"] in server.url()

    run(main())


def test_the_stream_of_an_http_sse_server_is_told_of_too() -> None:
    async def main() -> None:
        async with serving(SseServer()) as server:
            peer = {"id": "peer", "type": "sse", "url": server.url("/sse")}
            async with gateway_over(snapshot([peer])) as front:
                front.gateway.sessions = {sha256(b"tok").hexdigest(): "mine"}
                assert (await front.ask("POST", INITIALIZE, path="/s/tok/mcp/peer")).status == 200
                (told,) = connections(front)
                assert (told["session_id"], told["server_type"]) == ("mine", "sse")

    run(main())


def test_who_cannot_be_reached_is_no_connection() -> None:
    async def main() -> None:
        peer = {"id": "peer", "type": "http", "url": "http://127.0.0.1:9/mcp"}
        async with gateway_over(snapshot([peer])) as front:
            assert "cannot be reached" in (await front.post(call())).json["error"]["message"]
            assert connections(front) == []

    run(main())


@pytest.mark.parametrize(
    ("host", "addr", "family"), [("10.0.0.1", "10.0.0.1:443", "inet"), ("fd00::1", "[fd00::1]:443", "inet6")]
)
def test_the_supervisor_takes_the_event(host: str, addr: str, family: str) -> None:
    server = Server("web", Transport.HTTP, url="https://web.test/mcp", host="web.test", port=443)
    event = connected(server, "mine", (host, 443))
    assert link.event_from_worker(event.to_json()) == event
    assert (event.remote_addr, event.family, event.remote_host) == (addr, family, "web.test")
    assert (event.pid, event.uid) == (os.getpid(), os.getuid())
