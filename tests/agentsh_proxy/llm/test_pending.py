"""A request that goes on from an answer with a refused call brings the call's result, whose provider waits for it; no other changes."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from agentsh_proxy.llm import pending
from agentsh_proxy.llm.pending import Pending
from loopback import on_loop
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, response
from transcripts import openai_responses as wire

from agentsh_net.core.dialects.base import Judged
from agentsh_net.core.dialects.openai_responses.items import stand_in_id
from agentsh_net.core.model import Action, ToolCall, Verdict

PATH = "/openai/v1/responses"
BAD = wire.function_call("mcp__files__delete_files", {"path": "/x"}, at=0)
GOOD = wire.function_call("mcp__weather__get_weather", {"city": "Bern"}, at=1)
DENIED = Verdict(Action.BLOCK, "denied")
TEXT = "[agentsh] Tool 'rm' blocked by policy: denied"


def refused(number: int = 0, kept_in: str = "resp_1") -> Judged:
    return Judged(ToolCall("rm", f"call_{number}", kept_in=kept_in, item_id=f"fc_{number}"), DENIED)


def result(number: int = 0, text: str = TEXT) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": text}


def going_on(given: Any, answer: str = "resp_1") -> tuple[dict[str, Any], bytes]:
    asked = {"model": "m", "previous_response_id": answer, "input": given}
    return asked, orjson.dumps(asked)


@pytest.mark.parametrize("streamed", [True, False])
@on_loop
async def test_the_next_request_brings_the_result_that_the_provider_waits_for(opened, *, streamed):
    stream = wire.numbered([*wire.begin(), *wire.call(0, BAD), *wire.call(1, GOOD), *wire.end(BAD, GOOD)])
    whole = json.dumps(wire.response(BAD, GOOD, status="completed")).encode()
    answer = response(stream, content_type=b"text/event-stream") if streamed else response(whole)

    async def script(conversation, _):
        await conversation.send(answer)

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    asked = {"model": "m", "input": "x", "stream": streamed}
    first = await client.ask(request(PATH, orjson.dumps(asked)))
    assert b"blocked by policy" in first.body
    kept = wire.response()["id"]
    brought = {"type": "function_call_output", "call_id": GOOD["call_id"], "output": "sunny"}
    asked, body = going_on([brought], kept)
    for _ in range(2):  # a retry needs it as well
        await client.ask(request(PATH, body))
        left = orjson.loads(upstream.requests[-1].body)
        told, rest = left["input"]
        assert (told["type"], told["call_id"], rest) == ("function_call_output", BAD["call_id"], brought)
        assert "blocked by policy" in told["output"]
        assert {**left, "input": asked["input"]} == asked
    _, other = going_on([brought], "resp_other")
    await client.ask(request(PATH, other))
    assert upstream.requests[-1].body == other


def test_a_question_in_words_stays_one():
    waiting = Pending()
    waiting.note("s", refused())
    left = orjson.loads(waiting.answered("s", *going_on("And now?")))
    assert left["input"] == [result(), {"role": "user", "content": "And now?"}]


@pytest.mark.parametrize(
    ("session", "given", "answer"),
    [
        ("s", "x", "resp_2"),
        ("other", "x", "resp_1"),
        ("s", [result(text="brought by the client")], "resp_1"),
        ("s", None, "resp_1"),
        ("s", "x", ["resp_1"]),
    ],
)
def test_what_waits_for_nothing_leaves_as_it_came(session, given, answer):
    waiting = Pending()
    waiting.note("s", refused())
    asked, body = going_on(given, answer)
    assert waiting.answered(session, asked, body) is body


@pytest.mark.parametrize(
    "judged",
    [
        Judged(ToolCall("rm", "call_0", kept_in="resp_1"), Verdict(Action.ALLOW, "")),
        Judged(ToolCall("rm", "call_0", kept_in="resp_1"), Verdict(Action.BLOCK, "denied", steered=True)),
        Judged(ToolCall("rm", "call_0"), DENIED),
        Judged(ToolCall("rm", "", kept_in="resp_1"), DENIED),
        Judged(ToolCall("rm", "c" * 257, kept_in="resp_1"), DENIED),
        Judged(ToolCall("rm", "call_0", kept_in="resp_1", item_id="f" * 257), DENIED),
    ],
)
def test_only_calls_that_nobody_else_answers_are_remembered(judged):
    waiting = Pending()
    waiting.note("s", judged)
    asked, body = going_on("x")
    assert waiting.answered("s", asked, body) is body


def referring(*more: Any, answer: str | None = None) -> tuple[dict[str, Any], bytes]:
    ours = {"type": "item_reference", "id": stand_in_id("fc_0", "call_0")}
    asked = {"model": "m", "input": [{"type": "item_reference", "id": "rs_0"}, ours, *more]}
    asked |= {} if answer is None else {"previous_response_id": answer}
    return asked, orjson.dumps(asked)


CALL = {"type": "item_reference", "id": "fc_0"}


@pytest.mark.parametrize(
    ("answer", "stands_for"), [(None, [CALL, result()]), ("resp_2", [CALL, result()]), ("resp_1", [result()])]
)
def test_a_reference_to_our_message_becomes_one_to_the_call_and_its_result(answer, stands_for):
    waiting = Pending()
    waiting.note("s", refused())
    asked, body = referring("more", answer=answer)
    left = orjson.loads(waiting.answered("s", asked, body))
    assert left["input"] == [asked["input"][0], *stands_for, "more"]
    assert waiting.answered("other", asked, body) is body


def test_a_long_name_is_remembered_in_part():
    waiting = Pending()
    waiting.note("s", Judged(ToolCall("n" * 100_000, "call_0", kept_in="resp_1"), DENIED))
    left = orjson.loads(waiting.answered("s", *going_on([])))
    assert left["input"] == [result(text=TEXT.replace("rm", "n" * 256))]


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(pending, "MAX_ANSWERS", 2)
    monkeypatch.setattr(pending, "MAX_CALLS", 3)
    monkeypatch.setattr(pending, "MAX_MESSAGES", 4)
    waiting = Pending()
    for answer in range(4):
        for number in range(5):
            waiting.note("s", refused(number, f"resp_{answer}"))
    assert [len(calls) for calls in waiting._by_answer.values()] == [3, 3]
    assert {key for _, key in waiting._by_answer} == {"resp_2", "resp_3"}
    assert len(waiting._by_message) == 4
