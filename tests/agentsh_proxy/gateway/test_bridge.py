"""In front of servers without HTTP the gateway is the strict server of the specification: what it takes, what it names, what it lets go."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from agentsh_proxy.gateway import bridge as module
from agentsh_proxy.gateway.bridge import SESSION_IDLE
from gateway_front import INITIALIZE, call, gateway_over, request, snapshot
from gateway_pipes import FakePipe, begun, play
from loopback import until
from mcp_peers.roles import INITIALIZED, result_of
from mcp_peers.scripted import STREAM, Seen, Wire, run, serving

from agentsh_net.core.mcp.gateway_http import VERSION_KEY


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Accept": "application/json"}, 406),
        ({"Accept": "text/event-stream"}, 406),
        ({"Accept": "*/*"}, 400),
        ({"Mcp-Session-Id": "nobody's"}, 404),
        ({}, 400),
    ],
)
def test_what_is_no_proper_request_is_refused_by_its_status(headers: dict[str, str], status: int) -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        assert (await front.post(call(), **headers)).status == status
        assert pipes == []

    play(scene)


def test_a_revision_that_nobody_knows_is_refused() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        session, _ = await begun(front, pipes)
        answer = await front.post(call(), **session | {"MCP-Protocol-Version": "1999-01-01"})
        assert answer.status == 400 and "2025-11-25" in answer.json["error"]["message"]

    play(scene)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_is_about_a_session_names_it(method: str) -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        answer = await front.ask(method)
        assert (answer.status, answer.json["error"]["message"]) == (400, "Mcp-Session-Id is required")

    play(scene)


def test_a_session_is_its_agents_own() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        session, _ = await begun(front, pipes)

        front.gateway.sessions = {sha256(b"tok").hexdigest(): "agent-7"}
        assert (await front.ask("POST", call(), path="/s/tok/mcp/peer", **session)).status == 404

    play(scene)


def test_a_server_that_cannot_be_opened_is_an_error_under_the_requests_id() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        front.gateway._pipe = lambda server: lambda *_: FakePipe("no such program")
        answer = await front.post(INITIALIZE)
        assert (answer.status, answer.json["id"]) == (502, 0)
        assert "no such program" in answer.json["error"]["message"]

    play(scene)


def test_a_session_that_nobody_uses_is_ended() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        (carrier,) = front.gateway._carriers.values()
        carrier.tick(carrier._now + SESSION_IDLE - 1)
        assert not pipe.closed
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await front.post(note, **session)).status == 202
        used_at = carrier._now
        carrier.tick(used_at + SESSION_IDLE - 1)
        assert not pipe.closed
        carrier.tick(used_at + SESSION_IDLE + 1)
        assert pipe.closed and carrier.sessions == 0

    play(scene)


def test_a_session_that_is_listened_to_is_used_until_its_stream_ends() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        (carrier,) = front.gateway._carriers.values()
        (live,) = carrier._sessions.values()
        stream = await front.open("GET", **session)
        carrier.tick(carrier._now + 3 * SESSION_IDLE)
        stream.close()
        await until(lambda: not live.busy)
        carrier.tick(carrier._now + SESSION_IDLE - 1)
        assert not pipe.closed  # its client may come back for the rest
        carrier.tick(carrier._now + 2)
        assert pipe.closed

    play(scene)


def test_sessions_that_are_all_in_use_make_no_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 1)

    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        stream = await front.open("GET", **session)
        refused = await front.post(INITIALIZE)
        assert (refused.status, "1 sessions with this server are in use" in refused.json["error"]["message"]) == (503, True)  # fmt: skip
        assert (len(pipes), pipe.closed) == (1, False)
        stream.close()

    play(scene)


def test_a_reload_that_takes_the_server_away_ends_its_sessions() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:

        _, pipe = await begun(front, pipes)
        front.follow(snapshot([], generation=2))
        assert pipe.closed

    play(scene)


def test_a_session_too_many_ends_the_one_that_was_used_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 2)

    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        kept = []
        for _ in range(3):
            number = len(pipes)
            asking = asyncio.create_task(front.post(INITIALIZE))
            while len(pipes) == number:
                await asyncio.sleep(0)
            await pipes[-1].answer("initialize", {"protocolVersion": "2025-11-25"})
            kept.append((await asking).headers["mcp-session-id"])
            (carrier,) = front.gateway._carriers.values()
            carrier.tick(carrier._now + 1)
        assert [pipe.closed for pipe in pipes] == [True, False, False]
        assert (await front.post(call(), **{"Mcp-Session-Id": kept[0]})).status == 404

    play(scene)


@pytest.mark.parametrize("extra", [{"MCP-Protocol-Version": "2025-11-25"}, {}])
def test_an_initialize_begins_a_session_whatever_newer_headers_it_has(extra: dict[str, str]) -> None:
    """Clients of both eras send Mcp-Method always; the server that others share must never see their handshake."""

    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asking = asyncio.create_task(front.post(INITIALIZE, **extra, **{"Mcp-Method": "initialize"}))
        while not pipes:
            await asyncio.sleep(0)
        await pipes[0].answer("initialize", {"protocolVersion": "2025-11-25"})
        assert (await asking).headers["mcp-session-id"]
        assert pipes[0].sent == []

    play(scene)


MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "get"}


def modern_call(tool: str = "get") -> dict[str, Any]:
    return request("tools/call", name=tool, arguments={}, _meta={VERSION_KEY: "2026-07-28"})


class Streams:
    """An HTTP+SSE server of many clients: each has a stream of its own."""

    def __init__(self) -> None:
        self.streams: list[Wire] = []

    async def __call__(self, asked: Seen, wire: Wire) -> None:
        if asked.method == "GET":
            self.streams.append(wire)
            await wire.raw(STREAM)
            await wire.event(f"/messages?n={len(self.streams) - 1}", event="endpoint")
            return
        await wire.answer(202)
        stream = self.streams[int(asked.target.rpartition("=")[2])]
        if asked.rpc == "initialize":
            await stream.event(result_of(asked, INITIALIZED | {"protocolVersion": "2025-11-25"}))
        elif asked.rpc == "tools/call":
            await stream.event(result_of(asked, {"content": []}))
        elif "id" in asked.json:
            error = {"code": -32601, "message": "Method not found"}
            await stream.event({"jsonrpc": "2.0", "id": asked.json["id"], "error": error})


def test_clients_without_a_session_share_no_stream_that_anothers_credential_opened() -> None:
    sse = Streams()

    async def main() -> None:
        async with serving(sse) as server:
            peer = {"id": "peer", "type": "sse", "url": server.url("/sse")}
            settings = {"servers": {"peer": {"passthrough": True}}}
            async with gateway_over(snapshot([peer], gateway=settings)) as front:
                for key in ("one", "two", "one"):
                    assert (await front.post(modern_call(), **MODERN, **{"X-Team-Key": key})).status == 200
                keys = [(s.method, s.headers["x-team-key"]) for s in server.seen]
                assert keys.count(("GET", "one")) == keys.count(("GET", "two")) == 1
                called = [s.headers["x-team-key"] for s in server.seen if s.rpc == "tools/call"]
                assert called == ["one", "two", "one"]

    run(main())


def test_a_session_is_continued_with_the_credential_that_its_stream_was_opened_with() -> None:
    sse = Streams()

    async def main() -> None:
        async with serving(sse) as server:
            peer = {"id": "peer", "type": "sse", "url": server.url("/sse")}
            settings = {"servers": {"peer": {"passthrough": True}}}
            async with gateway_over(snapshot([peer], gateway=settings)) as front:
                mine = {"Authorization": "Bearer mine", "X-Request-Id": "1"}
                begun = await front.post(INITIALIZE, **mine)
                session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
                assert (await front.post(call(), **session, **mine | {"X-Request-Id": "2"})).status == 200
                for other in ({}, {"Authorization": "Bearer other"}, mine | {"X-Team-Key": "k"}):
                    for method in ("POST", "GET", "DELETE"):
                        message = call() if method == "POST" else None
                        answer = await front.ask(method, message, **session, **other)
                        assert (answer.status, answer.json["error"]["message"]) == (404, "Session not found")
                assert len([s for s in server.seen if s.rpc == "tools/call"]) == 1
                assert (await front.post(call(), **session, **mine)).status == 200

    run(main())


def test_a_tool_of_an_http_sse_server_has_a_credential_of_its_own() -> None:
    schemes = [{"id": i, "type": "http", "scheme": "bearer", "credential": i} for i in ("usual", "own")]
    sse = Streams()

    async def main() -> None:
        async with serving(sse) as server:
            peer = {"id": "peer", "type": "sse", "url": server.url("/sse")}
            place = {"upstream_security": "usual", "tools": {"pay": {"upstream_security": "own"}}}
            settings = {"security_schemes": schemes, "servers": {"peer": place}}
            async with gateway_over(snapshot([peer], gateway=settings)) as front:
                for tool in ("pay", "get"):
                    assert (await front.post(modern_call(tool), **MODERN | {"Mcp-Name": tool})).status == 200
                sent = [(s.rpc, s.headers["authorization"]) for s in server.seen]
                assert [a for rpc, a in sent if rpc == "tools/call"] == ["Bearer own", "Bearer usual"]
                assert {a for rpc, a in sent if rpc != "tools/call"} == {"Bearer usual"}

    run(main())


def test_ways_of_clients_without_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SHARED", 2)
    sse = Streams()

    async def main() -> None:
        async with serving(sse) as server:
            peer = {"id": "peer", "type": "sse", "url": server.url("/sse")}
            settings = {"servers": {"peer": {"passthrough": True}}}
            async with gateway_over(snapshot([peer], gateway=settings)) as front:
                for key in ("one", "two", "three", "four"):
                    assert (await front.post(modern_call(), **MODERN, **{"X-Team-Key": key})).status == 200
                bridge: Any = front.gateway._carriers["peer"]
                assert len(bridge._shared) == 2

    run(main())
