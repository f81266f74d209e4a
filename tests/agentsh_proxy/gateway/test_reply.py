"""A request is answered whole by whoever hears the answer, as a stream where there is more to say, and with an error where there is none."""

from __future__ import annotations

import asyncio

from agentsh_proxy.gateway.reply import PROMPT
from gateway_front import GatewayFront, call, request
from gateway_pipes import RESULT, FakePipe, begun, play

from agentsh_net.core.errors import ProtocolError

OLD = {"MCP-Protocol-Version": "2025-06-18"}


def test_a_quick_answer_needs_no_task() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asking = asyncio.create_task(front.post(call(), **session))
        await pipe.heard("tools/call")
        (client,) = [c for c in front.gateway.front.connections if c.busy]
        assert isinstance(client._work, asyncio.Task) == pipe.waits
        await pipe.answer("tools/call", RESULT)
        assert (await asking).json["result"] == RESULT

    play(scene)


def test_an_answer_that_was_given_whole_is_not_kept() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        if pipe.waits:
            return
        asking = asyncio.create_task(front.post(call(), **session))
        await pipe.answer("tools/call", RESULT)
        assert (await asking).json["result"] == RESULT
        assert (await front.ask("GET", **session, **{"Last-Event-ID": "2-0"})).messages == []

    play(scene)


def test_requests_on_one_connection_are_answered_one_after_another() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        fields = "".join(f"{name}: {value}\r\n" for name, value in session.items())
        for id_ in (1, 2):
            body = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % id_
            head = f"POST /mcp/peer HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\nAccept: */*\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        for id_ in (1, 2):
            asked = await pipe.heard("ping")
            assert [m["id"] for m in pipe.sent] == [id_], "the second waits for its turn"
            pipe.sent.clear()
            pipe.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].split(b"\r")[0])
            assert b'"id": %d' % id_ in await reader.readexactly(length)
        writer.close()

    play(scene)


def test_a_message_that_turns_out_not_to_be_taken_is_an_error_of_its_own() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        if pipe.waits:
            return  # then `send` says so, which test_session has
        first = asyncio.create_task(front.post(call("add", 1), **session))
        await pipe.heard("tools/call")
        pipe.sent.clear()
        pipe.failed(ProtocolError("the server refused a message with HTTP 400"))
        answer = await first
        assert (answer.status, answer.json["id"]) == (502, 1)
        assert "HTTP 400" in answer.json["error"]["message"]
        assert (await pipe.heard("notifications/cancelled"))["params"]["requestId"] == 1
        second = asyncio.create_task(front.post(call("add", 2), **session))
        await pipe.answer("tools/call", RESULT)
        assert (await second).json["result"] == RESULT

    play(scene)


def test_a_message_that_is_not_taken_ends_a_stream_that_was_begun() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        if pipe.waits:
            return
        asked = call() | {"params": {"name": "add", "_meta": {"progressToken": "t"}}}
        asking = asyncio.create_task(front.post(asked, **session))
        await pipe.heard("tools/call")
        progress = request("notifications/progress", progressToken="t", progress=1)
        del progress["id"]
        pipe.say(progress)
        await asyncio.sleep(0.02)
        pipe.failed(ProtocolError("the server refused a message with HTTP 400"))
        answer = await asking
        assert answer.status == 200 and "HTTP 400" in answer.messages[-1]["error"]["message"]

    play(scene)


def test_a_server_that_says_nothing_in_time_is_given_up_and_told_so() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        answer = await front.post(call(), **session | OLD)
        assert (answer.status, answer.json["id"]) == (504, 1)
        assert (await pipe.heard("notifications/cancelled"))["params"]["requestId"] == 1
        await pipe.answer("tools/call", RESULT)  # too late: of nobody
        while not front.told("mcp_message_uninspected"):
            await asyncio.sleep(0)

    play(scene, {"servers": {"peer": {"timeout": "50ms"}}})


def test_a_client_that_goes_leaves_its_answer_to_who_comes_back() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asking = asyncio.create_task(front.post(call(), **session | OLD))
        await pipe.heard("tools/call")
        asking.cancel()
        await asyncio.wait((asking,))
        for connection in tuple(front.gateway.front.connections):
            connection.abort()
        while front.gateway.front.connections:
            await asyncio.sleep(0)
        pipe.say({"jsonrpc": "2.0", "id": 1, "result": RESULT})
        await asyncio.sleep(2 * PROMPT)  # longer than any timer of the one who is gone
        listened = await front.ask("GET", **session, **{"Last-Event-ID": "2-0"})
        assert listened.messages == [{"jsonrpc": "2.0", "id": 1, "result": RESULT}]

    play(scene)


def test_a_client_that_goes_as_its_answer_becomes_a_stream_leaves_it() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        if pipe.waits:
            return  # then a task waits for the server, and has long begun
        asked = call() | {"params": {"name": "add", "_meta": {"progressToken": "t"}}}
        asking = asyncio.create_task(front.post(asked, **session))
        await pipe.heard("tools/call")
        (client,) = [c for c in front.gateway.front.connections if c.busy]
        progress = request("notifications/progress", progressToken="t", progress=1)
        del progress["id"]
        pipe.say(progress)  # from here on a task answers ...
        client.connection_lost(None)  # ... that has not begun
        asking.cancel()
        await asyncio.wait((client._work, asking))
        (bridge,) = front.gateway._carriers.values()
        (kept,) = bridge._sessions.values()
        assert not kept.busy, "nobody reads it any more"

    play(scene)
