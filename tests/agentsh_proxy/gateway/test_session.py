"""A session of an older revision: each answer goes where it was asked for, and a client that lost a stream has the rest of it."""

from __future__ import annotations

import asyncio
from typing import Any

from agentsh_proxy.gateway.reply import PROMPT
from gateway_front import GatewayFront, call, request
from gateway_pipes import RESULT, FakePipe, begun, play
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh_net.apart import LONG

OLD = {"MCP-Protocol-Version": "2025-06-18"}


def test_a_session_begins_with_initialize_and_ends_with_delete() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await front.post(note, **session)).status == 202
        await pipe.heard("notifications/initialized")
        assert (await front.ask("DELETE", **session)).status == 200
        assert pipe.closed
        gone = await front.post(call(), **session)
        assert (gone.status, gone.json["error"]["code"]) == (404, -32001)

    play(scene)


def test_answers_find_their_requests_whatever_their_order_and_type_of_id() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asked = [asyncio.create_task(front.post(call("add", id_), **session)) for id_ in (1, "1", 2)]
        while len(pipe.sent) < 3:
            await asyncio.sleep(0)
        for id_ in ("1", 2, 1):
            pipe.say({"jsonrpc": "2.0", "id": id_, "result": {"for": repr(id_)}})
        answers = [await task for task in asked]
        assert [a.json["result"]["for"] for a in answers] == ["1", "'1'", "2"]

    play(scene)


def test_an_id_that_is_under_way_is_not_used_again() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        first = asyncio.create_task(front.post(call(), **session))
        await pipe.heard("tools/call")
        second = await front.post(call(), **session)
        assert second.status == 400 and "under way" in second.json["error"]["message"]
        await pipe.answer("tools/call", RESULT)
        assert (await first).json["result"] == RESULT

    play(scene)


def test_progress_travels_on_the_stream_of_its_request() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asked = call() | {"params": {"name": "add", "_meta": {"progressToken": "t"}}}
        asking = asyncio.create_task(front.post(asked, **session))
        await pipe.heard("tools/call")
        step = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": "t", "progress": 1},
        }
        pipe.say(step)
        await pipe.answer("tools/call", RESULT)
        answer = await asking
        assert answer.messages == [step, {"jsonrpc": "2.0", "id": 1, "result": RESULT}]

    play(scene)


def test_a_blocked_call_is_answered_here_and_the_server_hears_nothing() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        assert "error" in (await front.post(call("rm"), **session)).json
        assert pipe.sent == []
        assert front.told("mcp_tool_called")[0]["action"] == "block"

    play(scene, denied_tools=[{"tool": "rm"}])


def test_what_a_server_asks_by_itself_goes_to_the_open_stream_and_its_answer_back() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        stream = await front.open("GET", **session)
        assert (await stream.next()).startswith(b"id: 0-")
        pipe.say(request("roots/list", 5))
        assert b'"roots/list"' in await stream.next()
        assert (await front.ask("GET", **session)).status == 409
        async with asyncio.timeout(10):
            await front.gateway.front.quiet()  # a gateway that ends waits for no such stream
        answer = {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}}
        assert (await front.post(answer, **session)).status == 202
        assert answer in pipe.sent
        stream.close()
        while (again := await front.open("GET", **session)).status == 409:  # until it is seen to be closed
            again.close()
        assert again.status == 200
        again.close()

    play(scene)


def test_nothing_overtakes_a_message_that_takes_its_time() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        stream = await front.open("GET", **session | OLD)
        for data in ("x" * LONG, "short"):
            note = request("notifications/message", level="info", data=data)
            del note["id"]
            pipe.say(note)
            while not pipe._said.empty():  # the first is being taken
                await asyncio.sleep(0)
        told = b""
        while b"short" not in told:
            told += await stream.next()
        assert b"xxx" in told.partition(b"short")[0]
        stream.close()

    play(scene)


def test_blocked_sampling_is_answered_to_the_server() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        pipe.say(request("sampling/createMessage", 8))
        while not pipe.sent:
            await asyncio.sleep(0)
        assert (pipe.sent[0]["id"], pipe.sent[0]["error"]["code"]) == (8, -31090)
        assert front.told("mcp_sampling_request")[0]["action"] == "block"
        assert session

    play(scene, sampling={"policy": "block"})


def test_a_client_that_lost_its_stream_has_the_rest_of_it() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asked = call() | {"params": {"name": "add", "_meta": {"progressToken": 3}}}
        opening = asyncio.create_task(front.open("POST", asked, **session))
        await pipe.heard("tools/call")
        step = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": 3, "progress": 1},
        }
        pipe.say(step)
        stream = await opening
        first = b""
        while b"progressToken" not in first:
            first += await stream.next()
        last = [line for line in first.decode().splitlines() if line.startswith("id: ")][-1][4:]
        stream.close()
        while any(c.busy for c in front.gateway.front.connections):
            await asyncio.sleep(0.01)
        pipe.say(step)
        await pipe.answer("tools/call", RESULT)
        rest = await front.ask("GET", **session, **{"Last-Event-ID": last})
        assert rest.messages == [step, {"jsonrpc": "2.0", "id": 1, "result": RESULT}]
        # A lost stream is no cancellation.
        assert not [m for m in pipe.sent if m.get("method") == "notifications/cancelled"]

    play(scene)


def test_a_server_that_ends_is_told_to_who_waits_and_its_session_is_over() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asking = asyncio.create_task(front.post(call(), **session))
        await pipe.heard("tools/call")
        pipe.end()
        answer = await asking
        assert (answer.status, answer.json["id"]) == (502, 1)
        assert "the server ended" in answer.json["error"]["message"]
        assert (await front.post(call(), **session)).status == 404

    play(scene)


def test_a_silent_server_is_given_up_and_told_so() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        answer = await front.post(call(id_="x"), **session | OLD)
        assert (answer.status, answer.json["id"]) == (504, "x")
        assert (await pipe.heard("notifications/cancelled"))["params"]["requestId"] == "x"
        pipe.sent.clear()
        answer = await front.post(call(id_="y"), **session)  # its stream had begun: the status was sent
        assert (answer.status, answer.messages[0]["id"], answer.messages[0]["error"]["code"]) == (
            200,
            "y",
            -32603,
        )
        assert (await pipe.heard("notifications/cancelled"))["params"]["requestId"] == "y"

    play(scene, {"servers": {"peer": {"timeout": "300ms"}}})


def test_a_call_that_takes_its_time_has_a_stream_to_come_back_to_before_the_server_says_anything() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        stream = await front.open("POST", call(), **session)
        first = await stream.next()
        assert first == b"id: 2-0\nretry: 1000\ndata: \n\n"
        stream.close()
        while any(c.busy for c in front.gateway.front.connections):
            await asyncio.sleep(0.01)
        await pipe.answer("tools/call", RESULT)
        rest = await front.ask("GET", **session, **{"Last-Event-ID": "2-0"})
        assert rest.messages == [{"jsonrpc": "2.0", "id": 1, "result": RESULT}]

    play(scene)


def test_a_client_of_an_earlier_revision_is_sent_no_event_without_data() -> None:
    """Their clients read every event's data as JSON."""

    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        stream = await front.open("GET", **session | OLD)
        pipe.say(request("ping", 5))
        assert (await stream.next()).startswith(b"event: message\n")
        stream.close()
        asking = asyncio.create_task(front.post(call(), **session | OLD))
        await pipe.heard("tools/call")
        await asyncio.sleep(2 * PROMPT)
        await pipe.answer("tools/call", RESULT)
        assert (await asking).json["result"] == RESULT

    play(scene)


def test_of_a_batch_what_is_blocked_and_what_is_not_come_in_one_answer() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asking = asyncio.create_task(front.ask("POST", [call("rm", 1), call("add", 2)], **session))
        while not pipe._said.empty() or not front.told("mcp_tool_called"):
            await asyncio.sleep(0)
        pipe.say([{"jsonrpc": "2.0", "id": 2, "result": RESULT}])
        ids = {
            m["id"] for part in (await asking).messages for m in (part if isinstance(part, list) else [part])
        }
        assert ids == {1, 2}

    async def batch(front: GatewayFront, pipes: list[FakePipe]) -> None:
        FakePipe.send = _sends_anything  # type: ignore[method-assign] # batches are no objects
        try:
            await scene(front, pipes)
        finally:
            FakePipe.send = _SEND  # type: ignore[method-assign] # as it was

    play(batch, denied_tools=[{"tool": "rm"}])


def test_of_a_batch_the_blocked_member_has_its_own_error_where_the_server_is_gone() -> None:
    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        for others in ([note], [call("add", 2), call("add", 3)]):
            pipes.clear()
            session, pipe = await begun(front, pipes)
            pipe.broken = True
            got = await front.ask("POST", [call("rm", 1), *others], **session)
            assert got.status == 200
            errors = {m["id"]: m["error"]["message"] for m in got.json}
            assert "blocked by policy" in errors.pop(1)
            assert errors == {m["id"]: "[agentsh] the server ended" for m in others if "id" in m}
        actions = [event["action"] for event in front.told("mcp_tool_called")]
        assert actions == ["block", "block", "allow", "allow"]

    play(scene, denied_tools=[{"tool": "rm"}])


SAID = st.lists(
    st.tuples(st.sampled_from(["progress", "answer", "note", "error", "ask", "long"]), st.integers(1, 3)),
    max_size=8,
)


@settings(max_examples=30, deadline=None)
@given(SAID)
def test_a_client_gets_the_same_whether_its_server_is_heard_at_once_or_awaited(
    said: list[tuple[str, int]],
) -> None:
    got: list[list[Any]] = []

    async def scene(front: GatewayFront, pipes: list[FakePipe]) -> None:
        session, pipe = await begun(front, pipes)
        asking = []
        for id_ in (1, 2, 3):
            params = {"name": "add", "_meta": {"progressToken": f"t{id_}"}}
            asking.append(
                asyncio.create_task(front.post(call("add", id_) | {"params": params}, **session | OLD))
            )
            while len(pipe.sent) < id_:  # the newest is the same each time
                await asyncio.sleep(0)
        open_ = {1, 2, 3}
        for kind, id_ in (*said, ("answer", 1), ("answer", 2), ("answer", 3)):
            if kind not in {"note", "ask"} and id_ not in open_:
                continue  # what follows an answer is of nobody, or of whoever was not gone yet
            open_ -= {id_} if kind in {"answer", "error", "long"} else set()
            pipe.say(_message(kind, id_))
        got.append([(answer.status, answer.messages) for answer in await asyncio.gather(*asking)])

    play(scene, sampling={"policy": "allow"})
    assert got[0] == got[1]
    assert [messages[-1]["id"] for _, messages in got[0]] == [1, 2, 3]


def _message(kind: str, id_: int) -> dict[str, Any]:
    match kind:
        case "progress":
            note = request("notifications/progress", progressToken=f"t{id_}", progress=1)
        case "note":
            note = request("notifications/message", level="info", data=id_)
        case "ask":
            return request("sampling/createMessage", 100 + id_, messages=[])
        case "error":
            return {"jsonrpc": "2.0", "id": id_, "error": {"code": -1, "message": "no"}}
        case "long":
            return {
                "jsonrpc": "2.0",
                "id": id_,
                "result": {"content": [{"type": "text", "text": "x" * 5000}]},
            }
        case _:
            return {"jsonrpc": "2.0", "id": id_, "result": RESULT}
    del note["id"]
    return note


_SEND = FakePipe.send


async def _sends_anything(self: FakePipe, message: bytes) -> None:
    if not message.startswith(b"["):
        await _SEND(self, message)
