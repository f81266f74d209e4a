"""Requests without a session share a server: ids and tokens of different clients never meet, and a closed stream is a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gateway_front import call, request
from gateway_pipes import RESULT, FakePipe, play

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}


def modern(message: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return message | {"params": message["params"] | {"_meta": META | meta}}


def headers(message: dict[str, Any]) -> dict[str, str]:
    named = message["params"].get("name")
    fields = {"MCP-Protocol-Version": VERSION, "Mcp-Method": message["method"]}
    return fields | ({"Mcp-Name": named} if named else {})


async def first(pipes: list[FakePipe]) -> FakePipe:
    while not pipes:
        await asyncio.sleep(0)
    return pipes[0]


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
        assert not pipes or pipes[0].sent == []

    play(scene)


def test_a_blocked_call_is_answered_here() -> None:
    async def scene(front: Any, pipes: list[FakePipe]) -> None:
        asked = modern(call("rm"))
        assert (await front.post(asked, **headers(asked))).json["error"]["code"] == -32090
        assert pipes[0].sent == []

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
        pipe.end()
        answer = await task
        assert (answer.status, answer.json["id"]) == (502, 1)
        again = asyncio.create_task(front.post(asked, **headers(asked)))
        while len(pipes) < 2:
            await asyncio.sleep(0)
        await sent(pipes[1], 1)
        await pipes[1].answer("tools/call", RESULT)
        assert (await again).json["result"] == RESULT

    play(scene)
