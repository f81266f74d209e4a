"""A session finds out by itself how a server speaks, stays warm between listings, and ends when it is told to, whatever it does."""

from __future__ import annotations

import asyncio

import pytest
from agentsh_proxy.mcp_client.session import MAX_PAGES, Page, Session
from mcp_peers.roles import DISCOVERED, SseServer, declared, legacy, modern
from mcp_peers.scripted import STREAM, Seen, Wire, run, serving

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Transport


def test_a_second_listing_shakes_no_hands() -> None:
    async def scene() -> None:
        async with serving(legacy()) as server, Session(declared(server)) as session:
            await session.list(10)
            await session.list(10)
            assert server.asked.count("initialize") == 1
            assert server.asked.count("tools/list") == 2
            assert {s.connection for s in server.seen} == {0}

    run(scene())


def test_a_declared_http_server_that_speaks_http_sse_is_found_out() -> None:
    async def scene() -> None:
        async with serving(SseServer()) as server, Session(declared(server, "/sse")) as session:
            listing = await session.list(10)
            assert (listing.version, session.transport) == ("2024-11-05", Transport.SSE)
            assert server.asked[:4] == ["server/discover", "initialize", "GET", "initialize"]

    run(scene())


def test_a_server_that_speaks_neither_is_told_with_both_reasons() -> None:
    async def nothing(request: Seen, wire: Wire) -> None:
        await wire.answer(404)

    async def scene() -> None:
        async with serving(nothing) as server, Session(declared(server)) as session:
            with pytest.raises(ProtocolError) as fault:
                await session.list(10)
            assert str(fault.value) == (
                "initialize was refused with HTTP 404: check the path of `url`; "
                "HTTP+SSE was tried too: the event stream was refused with HTTP 404: check the path of `url`"
            )

    run(scene())


def test_a_declared_sse_server_is_not_posted_to_first() -> None:
    async def scene() -> None:
        async with serving(SseServer()) as server:
            async with Session(declared(server, "/sse", Transport.SSE)) as session:
                await session.list(10)
            assert server.asked[0] == "GET"

    run(scene())


def test_a_server_without_news_is_asked_for_them_once() -> None:
    async def scene() -> None:
        for handler in (legacy(), modern()):
            async with serving(handler) as server, Session(declared(server)) as session:
                await session.list(10)
                session.listen()
                assert session._listener is not None
                await session._listener
                assert not session.stale.is_set()

    run(scene())


def test_a_session_ends_although_the_server_never_answers_the_farewell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentsh_proxy.mcp_client.streamable.CLOSE_TIMEOUT", 0.05)

    async def silent(request: Seen, wire: Wire) -> None:
        await asyncio.Event().wait()

    async def scene() -> None:
        async with serving(legacy(DELETE=silent)) as server:
            async with Session(declared(server)) as session:
                await session.list(10)
            assert server.asked[-1] == "DELETE"

    run(scene())


def test_a_cancelled_session_leaves_no_connection_and_no_task() -> None:
    async def news(request: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await asyncio.Event().wait()

    async def scene() -> None:
        async with serving(legacy(GET=news)) as server:
            session = Session(declared(server))

            async def live() -> None:
                async with session:
                    await session.list(10)
                    session.listen()
                    await asyncio.Event().wait()

            task = asyncio.create_task(live())
            await server.until(lambda: "GET" in server.asked)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert session._listener is not None
            assert session._listener.done()
            assert not session._site.http._open

    run(scene())


PROMPTS = {"capabilities": {"tools": {}, "prompts": {}}}


def unheard(page: Page, place: str) -> None:
    raise AssertionError(page, place)


async def discovered(request: Seen, wire: Wire) -> None:
    await wire.result(request, DISCOVERED | PROMPTS)


def test_what_else_a_server_announced_is_listed_page_by_page_and_no_further_than_it_may() -> None:
    async def page(request: Seen, wire: Wire) -> None:
        number = int(request.json["params"].get("cursor", "0"))
        await wire.result(request, {"prompts": [{"name": f"p{number}"}], "nextCursor": str(number + 1)})

    async def scene() -> None:
        handler = modern(server_discover=discovered, prompts_list=page)
        async with serving(handler) as server, Session(declared(server)) as session:
            await session.list(10)
            found: list[Page] = []
            await session.others(10, lambda page, _: found.append(page))
            assert found == [{"prompts": {f"p{n}": {"name": f"p{n}"}}} for n in range(MAX_PAGES)]
            assert server.asked.count("prompts/list") == MAX_PAGES

    run(scene())


def test_a_list_that_fails_is_left_alone_for_more_and_more_listings_and_then_had_again() -> None:
    silent = True

    async def silence(request: Seen, wire: Wire) -> None:
        if silent:
            await asyncio.Event().wait()
        await wire.result(request, {"prompts": [{"name": "p"}]})

    async def scene() -> None:
        nonlocal silent
        handler = modern(server_discover=discovered, prompts_list=silence)
        async with serving(handler) as server, Session(declared(server)) as session:
            found: list[Page] = []
            asked = []
            for _ in range(9):
                assert len((await session.list(10)).tools) == 1
                before = server.asked.count("prompts/list")
                await session.others(0.05, lambda page, _: found.append(page))
                asked.append(server.asked.count("prompts/list") > before)
                assert session.unlisted == "no answer to prompts/list within 0.05 s"
            assert asked == [True, False, True, False, False, True, False, False, False]
            silent = False
            while not found:
                await session.others(10, lambda page, _: found.append(page))
            assert found == [{"prompts": {"p": {"name": "p"}}}]
            assert session.unlisted == ""

    run(scene())


def test_a_list_that_fails_keeps_no_other_from_being_had() -> None:
    async def both(request: Seen, wire: Wire) -> None:
        await wire.result(request, DISCOVERED | {"capabilities": {"prompts": {}, "resources": {}}})

    async def refused(request: Seen, wire: Wire) -> None:
        error = {"code": -32603, "message": "broken"}
        await wire.json({"jsonrpc": "2.0", "id": request.json["id"], "error": error})

    async def resources(request: Seen, wire: Wire) -> None:
        await wire.result(request, {"resources": [{"uri": "a:b"}]})

    async def scene() -> None:
        handler = modern(server_discover=both, prompts_list=refused, resources_list=resources)
        async with serving(handler) as server, Session(declared(server)) as session:
            found: list[Page] = []
            for _ in range(2):
                await session.list(10)
                await session.others(10, lambda page, _: found.append(page))
            assert found == [{"resources": {"a:b": {"uri": "a:b"}}}]
            assert session.unlisted == 'prompts/list failed: the server says "broken" (-32603)'

    run(scene())


def test_an_empty_list_is_nothing_to_tell_of() -> None:
    async def nothing(request: Seen, wire: Wire) -> None:
        await wire.result(request, {"prompts": []})

    async def scene() -> None:
        handler = modern(server_discover=discovered, prompts_list=nothing)
        async with serving(handler) as server, Session(declared(server)) as session:
            await session.list(10)
            await session.others(10, unheard)
            assert server.asked.count("prompts/list") == 1

    run(scene())


def test_a_server_that_refuses_to_list_what_it_announced_has_nothing_else() -> None:
    async def scene() -> None:
        async with (
            serving(modern(server_discover=discovered)) as server,
            Session(declared(server)) as session,
        ):
            await session.list(10)
            await session.others(10, unheard)
            assert session.unlisted == ""

    run(scene())
