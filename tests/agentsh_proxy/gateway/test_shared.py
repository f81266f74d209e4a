"""Requests without a session share a server: ids and tokens of different clients never meet, and a closed stream is a cancellation."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from agentsh_proxy.gateway.bridge import SHARED_IDLE
from gateway_front import call, request, snapshot
from gateway_pipes import META, RESULT, VERSION, FakePipe, headers, modern, play

from agentsh_net.core.trust.pins import Pins, tool_of, trust


async def first(pipes: list[FakePipe], number: int = 0) -> FakePipe:
    """Return a server that was started, once it was told which era it speaks."""
    while len(pipes) <= number:
        await asyncio.sleep(0)
    opening = await pipes[number].heard("server/discover")
    assert opening is pipes[number].sent.pop(0) and opening["id"] == 0
    assert opening["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == VERSION
    return pipes[number]


class SlowPipe(FakePipe):
    """One that is open when it is told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = asyncio.Event()

    async def open(self) -> None:
        await self.ready.wait()


async def opening(front: Any) -> tuple[asyncio.Task[Any], SlowPipe]:
    """Ask a server that takes its time to start; return the asking and the server."""
    pipe, begun = SlowPipe(), asyncio.Event()

    def start(*_: Any) -> FakePipe:
        begun.set()
        return pipe

    front.gateway._pipe = lambda server: start
    asked = modern(call())
    task = asyncio.create_task(front.post(asked, **headers(asked)))
    await begun.wait()
    return task, pipe


async def sent(pipe: FakePipe, count: int) -> None:
    while len(pipe.sent) < count:
        await asyncio.sleep(0)


def test_two_clients_with_one_id_each_have_their_own_answer() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = [modern(call("add", "x", n=n)) for n in (1, 2)]
        tasks = [asyncio.create_task(front.post(m, **headers(m))) for m in asked]
        pipe = await first(pipes)
        await sent(pipe, 2)
        assert len({m["id"] for m in pipe.sent}) == 2
        for message in reversed(pipe.sent):
            number = message["params"]["arguments"]["n"]
            pipe.say({"jsonrpc": "2.0", "id": message["id"], "result": {"n": number}})
        answers = [await task for task in tasks]
        assert [(a.json["id"], a.json["result"]["n"]) for a in answers] == [("x", 1), ("x", 2)]
        assert len(pipes) == 1

    play(scene)


def test_a_batch_is_refused_before_any_of_its_calls_is_judged_or_told_of() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        got = await front.post([modern(call()), modern(call("add", 2))], **headers(modern(call())))
        assert (got.status, "knows no batches" in got.json["error"]["message"]) == (400, True)
        assert front.told("mcp_tool_called") == []
        (refused,) = front.told("mcp_request_refused")
        assert (refused["status"], "no batches" in refused["reason"]) == (400, True)
        assert (await first(pipes)).sent == []

    play(scene)


def test_what_a_client_was_shown_of_the_shared_server_holds_for_its_next_requests() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        tool = tool_of("peer", {"name": "add"})
        current = front.gateway.view.snapshot
        registry, _ = current.registry.register("peer", [tool])
        trusting = current.evolve(registry=registry, pins=Pins.of([trust(tool, "now")]))
        front.follow(trusting)
        front.on_report = lambda _: front.follow(trusting)  # by then another was shown the pinned one
        listing = modern(request("tools/list"))
        task = asyncio.create_task(front.post(listing, **headers(listing)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        pipe.say({"jsonrpc": "2.0", "id": pipe.sent[0]["id"], "result": {"tools": [{"name": "add", "title": "evil"}]}})  # fmt: skip
        await task
        asked = modern(call())
        got = await front.post(asked, **headers(asked))
        assert "not the version that was trusted" in got.json["error"]["message"]

    play(scene)


@pytest.mark.parametrize(
    "said",
    [
        b'{"jsonrpc": "2.0", "id": %d, "result": {"n": NaN}}',
        b'{"jsonrpc": "2.0", "id": %d, "result": {"n": 1, "n": 2}}',
        b'[{"jsonrpc": "2.0", "id": %d, "result": {}}]',
        b'{"jsonrpc": "2.0", "id": %d, "result": {"n": 1}}, {"x": 1}',
    ],
)
@pytest.mark.parametrize("closed", [True, False])
def test_an_answer_that_cannot_be_read_for_certain_is_told_at_once_and_by_an_event(
    said: bytes, closed: bool
) -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(request("resources/list", "mine"))
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        pipe.say(said % pipe.sent[0]["id"])
        if b"}}," in said:  # no JSON: whose answer it is cannot be known
            pipe.say({"jsonrpc": "2.0", "id": pipe.sent[0]["id"], "result": RESULT})
            assert (await task).json == {"jsonrpc": "2.0", "id": "mine", "result": RESULT}
        else:
            got = (await task).json
            assert (got["id"], "cannot be read" in got["error"]["message"]) == ("mine", True)
        (event,) = front.told("mcp_message_uninspected")
        assert (event["sender"], event["via"]) == ("server", "gateway")

    play(scene, fail_closed=closed)


def test_the_end_of_a_subscription_has_the_clients_own_name() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(request("subscriptions/listen", "sub"))
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        number = pipe.sent[0]["id"]
        ended = {"_meta": {"io.modelcontextprotocol/subscriptionId": number}}
        pipe.say({"jsonrpc": "2.0", "id": number, "result": ended})
        (answer,) = (await task).messages
        assert answer["id"] == "sub"
        assert answer["result"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}

    play(scene)


def test_what_is_no_request_gets_no_answer_of_the_servers() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        note = modern(request("notifications/cancelled", requestId=1))
        del note["id"]
        assert (await front.post(note, **headers(note))).status == 202
        answer = {"jsonrpc": "2.0", "id": 5, "result": RESULT}
        got = await front.post(answer, **headers(modern(call())))
        assert (got.status, got.json["error"]["message"]) == (400, "agentsh-net: one request is expected")
        assert (await first(pipes)).sent == []

    play(scene)


def test_a_call_that_takes_long_has_a_stream_that_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    for where in ("shared", "delivery"):
        monkeypatch.setattr(f"agentsh_proxy.gateway.{where}.PING", 0.05)

    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call())
        opening = asyncio.create_task(front.open("POST", asked, **headers(asked)))
        pipe = await first(pipes)
        stream = await opening
        assert (stream.status, await stream.next()) == (200, b": ping\n\n")
        await pipe.answer("tools/call", RESULT)
        told = b""
        while data := await stream.next():
            told += data
        assert b'"result"' in told
        stream.close()

    play(scene)


def test_who_asks_a_server_that_cannot_be_started_is_told_and_the_next_one_tries_again() -> None:
    async def scene(front: Any, _: list[FakePipe]) -> None:
        tried: list[FakePipe] = []

        def start(*_: Any) -> FakePipe:
            tried.append(FakePipe("no such program"))
            return tried[-1]

        front.gateway._pipe = lambda server: start
        asked = modern(call())
        for number in (1, 2):
            got = await front.post(asked, **headers(asked))
            assert (got.status, "no such program" in got.json["error"]["message"]) == (502, True)
            assert (len(tried), tried[-1].sent) == (number, [])

    play(scene)


def test_what_names_no_request_goes_to_the_only_one_there_is_and_to_none_of_two() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        asked = [modern(call("add", id_)) for id_ in (1, 2)]
        tasks = [asyncio.create_task(front.post(m, **headers(m))) for m in asked]
        pipe = await first(pipes)
        await sent(pipe, 2)
        told = []
        for message, task in zip(pipe.sent, tasks, strict=True):
            pipe.say(note)
            pipe.say({"jsonrpc": "2.0", "id": message["id"], "result": RESULT})
            told.append((await task).messages[:-1])
        assert told == [[], [note]]

    play(scene)


def test_what_cannot_be_read_while_nobody_waits_ends_nothing() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call())
        for _ in range(2):
            task = asyncio.create_task(front.post(asked, **headers(asked)))
            while not pipes:
                await asyncio.sleep(0)
            await pipes[0].answer("tools/call", RESULT)
            assert (await task).json["result"] == RESULT
            pipes[0].say(b"nonsense")
        assert len(pipes) == 1

    play(scene)


def test_too_many_requests_at_once_are_refused_and_the_others_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentsh_proxy.gateway.shared.MAX_IN_FLIGHT", 1)

    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call())
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        refused = await front.post(asked, **headers(asked))
        assert (refused.status, "too many requests" in refused.json["error"]["message"]) == (503, True)
        await pipe.answer("tools/call", RESULT)
        assert (await task).json["result"] == RESULT

    play(scene)


def test_progress_finds_its_request_under_the_clients_own_token() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call(), progressToken="mine")
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        (message,) = pipe.sent
        token = message["params"]["_meta"]["progressToken"]
        assert token != "mine"
        pipe.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1},
            }
        )
        pipe.say({"jsonrpc": "2.0", "id": message["id"], "result": RESULT})
        step, answer = (await task).messages
        assert step["params"]["progressToken"] == "mine" and answer["id"] == 1

    play(scene)


def test_a_subscription_keeps_its_own_name_and_ends_with_its_stream() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(request("subscriptions/listen", "sub"))
        opening = asyncio.create_task(front.open("POST", asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        number = pipe.sent[0]["id"]
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": number}}
        pipe.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta})
        stream = await opening
        assert b'"io.modelcontextprotocol/subscriptionId":"sub"' in (await stream.next()).replace(b": ", b":")
        async with asyncio.timeout(10):
            await front.gateway.front.quiet()  # a gateway that ends waits for no subscription
        stream.close()
        cancelled = await pipe.heard("notifications/cancelled")
        assert cancelled["params"]["requestId"] == number
        assert len(front.told("mcp_tools_list_changed")) == 1

    play(scene)


@pytest.mark.parametrize(("code", "status"), [(-32601, 404), (-32022, 400), (-32602, 400), (-32000, 200)])
def test_an_error_that_is_the_whole_answer_has_its_status(code: int, status: int) -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(request("server/discover", 1))
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        pipe.say({"jsonrpc": "2.0", "id": pipe.sent[0]["id"], "error": {"code": code, "message": "no"}})
        answer = await task
        assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (status, 1, code)

    play(scene)


@pytest.mark.parametrize("missing", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_request_without_its_headers_is_refused(missing: str) -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call())
        answer = await front.post(asked, **{n: v for n, v in headers(asked).items() if n != missing})
        assert (answer.status, answer.json["error"]["code"]) == (400, -32020)
        assert (await first(pipes)).sent == []

    play(scene)


def test_a_blocked_call_is_answered_here() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call("rm"))
        assert (await front.post(asked, **headers(asked))).json["error"]["code"] == -31090
        assert (await first(pipes)).sent == []

    play(scene, denied_tools=[{"tool": "rm"}])


def test_streams_that_this_revision_does_not_know_are_refused() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        for method in ("GET", "DELETE"):
            assert (await front.ask(method, **{"MCP-Protocol-Version": VERSION})).status == 405

    play(scene)


def test_a_server_that_ends_is_told_to_everybody_and_the_next_request_starts_another() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call())
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await sent(pipe, 1)
        pipe.say({"jsonrpc": "2.0", "id": 0, "result": {}})
        pipe.end()
        answer = await task
        assert (answer.status, answer.json["id"]) == (502, 1)
        again = asyncio.create_task(front.post(asked, **headers(asked)))
        await (await first(pipes, 1)).answer("tools/call", RESULT)
        assert (await again).json["result"] == RESULT

    play(scene)


def test_a_server_that_knows_no_request_before_initialize_lets_its_client_begin_with_that() -> None:
    """Its end at the very first message is no 5xx, which clients take for a fault of the server's day, but an error of no revision."""

    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(request("server/discover", 1))
        task = asyncio.create_task(front.post(asked, **headers(asked)))
        (await first(pipes)).end()
        answer = await task
        assert (answer.status, answer.json["error"]["code"]) == (400, -32603)

    play(scene)


def test_no_client_begins_a_session_in_the_server_that_others_share() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        for extra in ({}, {"_meta": META}):
            asked = request("initialize", 1)
            asked["params"] = {"protocolVersion": VERSION, "capabilities": {}} | extra
            answer = await front.post(asked, **headers(asked))
            assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (404, -32601, 1)
        assert (await first(pipes)).sent == [] and len(pipes) == 1

    play(scene)


def test_a_server_that_fell_silent_is_left_to_whom_it_still_serves_and_others_get_a_new_one() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        listening = modern(request("subscriptions/listen", "sub"))
        opening = asyncio.create_task(front.open("POST", listening, **headers(listening)))
        pipe = await first(pipes)
        number = (await pipe.heard("subscriptions/listen"))["id"]
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": number}}
        pipe.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta})
        stream = await opening
        asked = modern(call())
        assert (await front.post(asked, **headers(asked))).status == 504
        again = asyncio.create_task(front.post(asked, **headers(asked)))
        await (await first(pipes, 1)).answer("tools/call", RESULT)
        assert (await again).json["result"] == RESULT
        assert not pipe.closed
        stream.close()
        await pipe.heard("notifications/cancelled")
        (carrier,) = front.gateway._carriers.values()
        while not pipe.closed:
            carrier.tick(carrier._now)
            await asyncio.sleep(0)
        assert not pipes[1].closed

    play(scene, {"servers": {"peer": {"timeout": "300ms"}}})


def test_a_server_that_is_slow_with_one_request_but_answers_others_stays() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call("slow", "a"))
        slow = asyncio.create_task(front.post(asked, **headers(asked)))
        pipe = await first(pipes)
        await pipe.heard("tools/call")
        pipe.say({"jsonrpc": "2.0", "id": 0, "result": {}})
        assert (await slow).status == 504
        pipe.sent.clear()
        again = asyncio.create_task(front.post(asked, **headers(asked)))
        await pipe.answer("tools/call", RESULT)
        assert (await again).json["result"] == RESULT and len(pipes) == 1

    play(scene, {"servers": {"peer": {"timeout": "300ms"}}})


def test_arguments_that_headers_repeat_have_to_be_those_of_the_body() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
        tool = {"name": "add", "inputSchema": schema}
        registry, _ = front.gateway.view.snapshot.registry.register("peer", [tool_of("peer", tool)])
        front.follow(replace(front.gateway.view.snapshot, registry=registry))
        asked = modern(call("add", region="eu"))
        for fields in ({}, {"Mcp-Param-Region": "us"}):
            answer = await front.post(asked, **headers(asked), **fields)
            assert (answer.status, answer.json["error"]["code"]) == (400, -32020)
        task = asyncio.create_task(front.post(asked, **headers(asked), **{"Mcp-Param-Region": "eu"}))
        await (await first(pipes)).answer("tools/call", RESULT)
        assert (await task).json["result"] == RESULT

    play(scene)


def test_a_server_that_takes_its_time_to_start_is_not_taken_for_an_idle_one() -> None:
    async def scene(front: Any, _: list[FakePipe]) -> None:
        task, pipe = await opening(front)
        (carrier,) = front.gateway._carriers.values()
        carrier.tick(asyncio.get_running_loop().time() + 1)
        assert not pipe.closed
        pipe.ready.set()
        await first([pipe])
        await sent(pipe, 1)
        pipe.say({"jsonrpc": "2.0", "id": pipe.sent[0]["id"], "result": RESULT})
        assert (await task).json["result"] == RESULT

    play(scene)


def test_a_server_that_nobody_asks_any_more_is_let_go_and_the_next_request_starts_another() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        async def served_by(number: int) -> FakePipe:
            asked = modern(call())
            task = asyncio.create_task(front.post(asked, **headers(asked)))
            while len(pipes) <= number:
                await asyncio.sleep(0)
            await pipes[number].answer("tools/call", RESULT)
            assert (await task).json["result"] == RESULT
            return pipes[number]

        for _ in range(2):
            pipe = await served_by(0)
            (carrier,) = front.gateway._carriers.values()
            carrier.tick(carrier._now + SHARED_IDLE - 1)
            assert not pipe.closed
        carrier.tick(carrier._now + 2)
        assert pipe.closed
        await served_by(1)

    play(scene)


def test_who_waits_for_a_server_that_is_let_go_before_it_has_started_is_told() -> None:
    async def scene(front: Any, _: list[FakePipe]) -> None:
        task, pipe = await opening(front)
        front.follow(snapshot([], generation=2))
        answer = await task
        assert (answer.status, pipe.closed) == (503, True)
        assert "let go" in answer.json["error"]["message"]

    play(scene)
