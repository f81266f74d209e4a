"""A declared server's headers go to its origin with every request, and its streams are read event by event."""

from __future__ import annotations

import asyncio

import pytest
from agentsh_proxy.mcp_client import site as site_module
from agentsh_proxy.mcp_client.site import Site, bounded_retry, is_json, is_stream
from mcp_peers.roles import declared
from mcp_peers.scripted import STREAM, Seen, Wire, run, serving

from agentsh_net.core.configuration.settings import SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.stream import StreamEvent
from agentsh_net.core.model import Server, Transport


def test_redirects_inside_the_origin_carry_body_and_headers_along() -> None:
    async def moved(request: Seen, wire: Wire) -> None:
        if request.target == "/mcp":
            await wire.answer(307, Location="/mcp/")
        else:
            await wire.json({})

    async def scene() -> None:
        async with serving(moved) as server:
            site = Site(declared(server, headers={"X-Key": "k"}), None)
            async with await site.send("POST", site.url, (("X-Ours", "o"),), b"body") as response:
                assert is_json(response)
            assert [s.target for s in server.seen] == ["/mcp", "/mcp/"]
            for seen in server.seen:
                assert (seen.body, seen.headers["x-key"], seen.headers["x-ours"]) == (b"body", "k", "o")
            site.http.close()

    run(scene())


def test_a_get_follows_what_a_post_may_not() -> None:
    async def moved(request: Seen, wire: Wire) -> None:
        if request.target == "/sse":
            await wire.answer(302, Location="/stream")
        else:
            await wire.raw(STREAM)
            await wire.event("x", event="endpoint", id_="1", retry=10)
            await wire.end()

    async def scene() -> None:
        async with serving(moved) as server:
            site = Site(declared(server), None)
            async with await site.send("GET", server.url("/sse"), ()) as response:
                assert is_stream(response)
                assert [e async for e in site.events(response)] == [StreamEvent("endpoint", b"x", "1", 10)]
            with pytest.raises(ProtocolError, match="redirects a POST"):
                await site.send("POST", server.url("/sse"), (), b"{}")
            site.http.close()

    run(scene())


def test_a_flood_of_events_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "EVENT_BURST", 5)
    monkeypatch.setattr(site_module, "EVENT_RATE", 50.0)

    async def flood(_: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        for _ in range(15):
            await wire.event("x")
        await wire.end()

    async def scene() -> None:
        async with serving(flood) as server:
            site = Site(declared(server), None)
            begun = asyncio.get_running_loop().time()
            async with await site.send("GET", site.url, ()) as response:
                assert len([e async for e in site.events(response)]) == 15
            assert asyncio.get_running_loop().time() - begun >= 0.1  # ten beyond the burst
            site.http.close()

    run(scene())


@pytest.mark.parametrize("url", ["http://user:pw@127.0.0.1/", "mcp", "unix:///run/x"])
def test_a_url_that_cannot_be_used_is_an_error_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        Site(Server("x", Transport.HTTP, url=url), None)
    assert "pw" not in str(refused.value)


def test_a_pause_that_a_server_asks_for_is_bounded() -> None:
    assert [bounded_retry(ms) for ms in (0, 250, 10**9)] == [0.05, 0.25, 30.0]


def test_a_credential_in_the_query_goes_with_every_request() -> None:
    async def plain(_: Seen, wire: Wire) -> None:
        await wire.json({})

    async def scene() -> None:
        async with serving(plain) as server:
            scheme = SecurityScheme("q", "apiKey", "a&b", location="query", name="key")
            site = Site(declared(server), None, scheme)
            for url in (site.url, server.url("/messages?session=1")):
                await (await site.send("POST", url, (), b"{}")).release()
            assert [s.target for s in server.seen] == ["/mcp?key=a%26b", "/messages?session=1&key=a%26b"]
            site.http.close()

    run(scene())
