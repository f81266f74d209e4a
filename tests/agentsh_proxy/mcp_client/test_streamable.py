"""Streamable HTTP keeps to the server's words: sessions, resumption and news as each revision has them."""

from __future__ import annotations

import asyncio

import pytest
from agentsh_proxy.mcp_client.session import Session
from agentsh_proxy.mcp_client.streamable import MAX_RESUMPTIONS
from mcp_peers.roles import declared, legacy, modern
from mcp_peers.scripted import STREAM, Handler, Scripted, Seen, Wire, run, serving

from agentsh_net.core.errors import ProtocolError


def listing_fails(handler: Handler) -> tuple[str, Scripted]:
    result: list[tuple[str, Scripted]] = []

    async def scene() -> None:
        async with serving(handler) as server, Session(declared(server)) as session:
            with pytest.raises(ProtocolError) as fault:
                await session.list(20)
            result.append((str(fault.value), server))

    run(scene())
    return result[0]


async def primed(request: Seen, wire: Wire) -> None:
    await wire.raw(STREAM)
    await wire.chunk(b"id: e1\nretry: 1\ndata:\n\n")
    await wire.end()


def test_an_answer_that_is_always_promised_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentsh_proxy.mcp_client.site.RETRY_BOUNDS", (0.0, 0.0))
    message, server = listing_fails(legacy(tools_list=primed, GET=primed))
    assert message == "the stream ended without the answer to tools/list"
    assert server.asked.count("GET") == MAX_RESUMPTIONS


def test_a_resumption_that_is_refused_ends_it() -> None:
    message, server = listing_fails(legacy(tools_list=primed))
    assert "ended without the answer" in message
    assert server.asked.count("GET") == 1


def test_a_modern_stream_is_never_resumed() -> None:
    message, server = listing_fails(modern(tools_list=primed))
    assert "ended without the answer" in message
    assert "GET" not in server.asked


@pytest.mark.parametrize("id_", ["x" * 2000, "a\x01b"])
def test_an_event_id_that_no_header_can_carry_is_not_sent_back(id_: str) -> None:
    async def odd(request: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await wire.chunk(f"id: {id_}\ndata:\n\n".encode())
        await wire.end()

    _, server = listing_fails(legacy(tools_list=odd))
    assert "GET" not in server.asked


def test_a_refused_notification_is_told() -> None:
    async def refuse(request: Seen, wire: Wire) -> None:
        await wire.answer(403)

    message, _ = listing_fails(legacy(notifications_initialized=refuse))
    assert message == "notifications/initialized was refused with HTTP 403"


def test_a_request_on_the_stream_of_news_is_answered_by_post() -> None:
    async def asking(request: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await wire.event({"jsonrpc": "2.0", "id": "ping-1", "method": "ping"})
        await asyncio.Event().wait()

    async def scene() -> None:
        async with serving(legacy(GET=asking)) as server, Session(declared(server)) as session:
            await session.list(10)
            session.listen()
            await server.until(lambda: any(s.body and "method" not in s.json for s in server.seen))
            (reply,) = [s for s in server.seen if s.body and "method" not in s.json]
            assert reply.json == {"jsonrpc": "2.0", "id": "ping-1", "result": {}}
            assert reply.headers["mcp-session-id"] == "s-1"

    run(scene())


def test_a_subscription_that_ends_in_good_order_is_made_again() -> None:
    subscriptions: list[int] = []

    async def graceful(request: Seen, wire: Wire) -> None:
        subscriptions.append(request.json["id"])
        await wire.raw(STREAM)
        await wire.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}, retry=50)
        if len(subscriptions) == 1:
            await wire.event(
                {"jsonrpc": "2.0", "id": request.json["id"], "result": {"resultType": "complete"}}
            )
        await asyncio.Event().wait()

    async def scene() -> None:
        async with (
            serving(modern(subscriptions_listen=graceful)) as server,
            Session(declared(server)) as session,
        ):
            await session.list(10)
            session.listen()
            await server.until(lambda: server.asked.count("subscriptions/listen") == 2)
            assert session.stale.is_set()

    run(scene())


def test_an_error_body_of_another_shape_is_a_plain_refusal() -> None:
    async def detail(request: Seen, wire: Wire) -> None:
        await wire.json({"detail": "Rate limited"}, 429)

    message, _ = listing_fails(legacy(tools_list=detail))
    assert message == "tools/list was refused with HTTP 429"
