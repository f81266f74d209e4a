"""A request that goes on from an answer with a refused call brings the call's result, whose provider waits for it; no other changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from agentsh_proxy.charging import Charges
from agentsh_proxy.llm.pending import answered, note
from loopback import on_loop
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, response
from transcripts import openai_responses as wire

from agentsh_net.core.dialects.base import Judged
from agentsh_net.core.dialects.openai_responses.items import Call, stand_in_id
from agentsh_net.core.dialects.openai_responses.kept_calls import kept, reference
from agentsh_net.core.links.link import MAX_TOLD
from agentsh_net.core.model import Action, ToolCall, Verdict

PATH = "/openai/v1/responses"
BAD = wire.function_call("mcp__files__delete_files", {"path": "/x"}, at=0)
GOOD = wire.function_call("mcp__weather__get_weather", {"city": "Bern"}, at=1)
DENIED = Verdict(Action.BLOCK, "denied")
TEXT = "[agentsh] Tool 'rm' blocked by policy: denied"


@pytest.fixture
def charges(arbiter) -> Iterator[Charges]:
    with arbiter.attach() as connection, arbiter.refusing() as refusing:
        connection.settimeout(60)
        yield Charges(connection, lambda: True, refusing.read(1))


@pytest.fixture
def other(arbiter) -> Iterator[Charges]:
    """Another worker's, or that of one which was started later."""
    with arbiter.attach() as connection:
        yield Charges(connection, lambda: True)


def refused(number: int = 0, kept_in: str = "resp_1", arguments: str = "{}") -> Judged:
    call = Call("function_call", "rm", call_id=f"call_{number}", id=f"fc_{number}", arguments=arguments)
    return Judged(ToolCall("rm", call.call_id, kept=kept(call, (kept_in,), TEXT)), DENIED)


def result(number: int = 0, text: str = TEXT) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": text}


def going_on(given: Any, answer: str = "resp_1") -> tuple[dict[str, Any], bytes]:
    asked = {"model": "m", "previous_response_id": answer, "input": given}
    return asked, orjson.dumps(asked)


class Script:
    """A provider that answers each request with the next of its answers, the last for good."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)

    async def __call__(self, conversation, _) -> None:
        await conversation.send(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def whole(*items: dict[str, Any], **fields: Any) -> bytes:
    return response(json.dumps({**wire.response(*items, status="completed"), **fields}).encode())


def streamed() -> bytes:
    events = [*wire.begin(), *wire.call(0, BAD), *wire.call(1, GOOD), *wire.end(BAD, GOOD)]
    return response(wire.numbered(events), content_type=b"text/event-stream")


def asking(given: Any, **fields: Any) -> bytes:
    return request(PATH, orjson.dumps({"model": "m", "input": given, **fields}))


@pytest.mark.parametrize("streams", [True, False])
@on_loop
async def test_the_next_request_brings_the_result_whichever_worker_gets_it(opened, arbiter, *, streams):
    upstream = await opened(Upstream(Script(streamed() if streams else whole(BAD, GOOD))))
    policy = snapshot(upstream.port)
    one, two = await opened(Proxy(policy, arbiter=arbiter)), await opened(Proxy(policy, arbiter=arbiter))
    client, later = await opened(Client(one.port)), await opened(Client(two.port))
    first = await client.ask(asking("x", stream=streams))
    assert b"blocked by policy" in first.body
    answer = wire.response()["id"]
    brought = {"type": "function_call_output", "call_id": GOOD["call_id"], "output": "sunny"}
    asked, body = going_on([brought], answer)
    for _ in range(2):  # a retry needs it as well
        await later.ask(request(PATH, body))
        left = orjson.loads(upstream.requests[-1].body)
        told, rest = left["input"]
        assert (told["type"], told["call_id"], rest) == ("function_call_output", BAD["call_id"], brought)
        assert "blocked by policy" in told["output"]
        assert {**left, "input": asked["input"]} == asked
    _, another = going_on([brought], "resp_other")
    await later.ask(request(PATH, another))
    assert upstream.requests[-1].body == another


@on_loop
async def test_a_conversation_is_told_once_and_again_where_that_failed(opened, arbiter):
    conversation = {"conversation": {"id": "conv_1"}}
    failed = response(b'{"error": {"message": "busy"}}', status=b"500 Internal Server Error")
    upstream = await opened(
        Upstream(Script(whole(BAD, **conversation), failed, whole(BAD | {"id": "fc_9", "call_id": "call_9"}, **conversation), whole()))
    )  # fmt: skip
    proxy = await opened(Proxy(snapshot(upstream.port), arbiter=arbiter))
    client = await opened(Client(proxy.port))
    for _ in range(5):
        await client.ask(asking([{"role": "user", "content": "x"}], conversation="conv_1"))
    told = [
        [item["call_id"] for item in orjson.loads(each.body)["input"] if item.get("type")]
        for each in upstream.requests
    ]
    assert told == [[], [BAD["call_id"]], [BAD["call_id"]], ["call_9"], []]


@pytest.mark.parametrize("tools", [{}, {"tools": []}])
@on_loop
async def test_a_history_that_a_client_repeats_has_the_call_again(opened, arbiter, tools):
    upstream = await opened(Upstream(Script(whole(BAD), whole())))
    proxy = await opened(Proxy(snapshot(upstream.port), arbiter=arbiter))
    client = await opened(Client(proxy.port))
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    ours = orjson.loads((await client.ask(asking("x"))).body)["output"][0]
    assert ours["type"] == "message"
    await client.ask(asking([thought, ours, {"role": "user", "content": "y"}], **tools))
    left = orjson.loads(upstream.requests[-1].body)["input"]
    text = ours["content"][0]["text"]
    call = {key: BAD[key] for key in ("type", "id", "call_id", "name", "arguments")}
    told = {"type": "function_call_output", "call_id": BAD["call_id"], "output": text}
    assert left == [thought, call, told, {"role": "user", "content": "y"}]


CALL = {"type": "function_call", "id": "c1", "name": "mcp__files__delete_files", "arguments": {"path": "/x"}}


def interaction(**fields: Any) -> dict[str, Any]:
    return {"id": "int_1", "object": "interaction", "status": "requires_action", **fields}


def told(**event: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["event_type"].encode(), orjson.dumps(event))


INTERACTION = b"".join(
    (
        told(event_type="interaction.created", interaction=interaction(status="in_progress")),
        told(event_type="step.start", index=0, step=CALL),
        told(event_type="step.stop", index=0),
        told(event_type="interaction.completed", interaction=interaction()),
    )
)


@pytest.mark.parametrize(
    "answer",
    [
        response(orjson.dumps(interaction(steps=[CALL]))),
        response(INTERACTION, content_type=b"text/event-stream"),
    ],
    ids=["whole", "streamed"],
)
@on_loop
async def test_the_next_interaction_brings_the_result(opened, arbiter, answer):
    upstream = await opened(Upstream(Script(answer)))
    at = {"google": {"dialect": "gemini", "base_url": f"http://127.0.0.1:{upstream.port}"}}
    proxy = await opened(Proxy(snapshot(proxy={"providers": at}), arbiter=arbiter))
    client = await opened(Client(proxy.port))
    path = "/google/v1beta/interactions"
    first = await client.ask(request(path, b'{"model": "m", "input": "x"}'))
    assert b"blocked by policy" in first.body
    await client.ask(
        request(path, b'{"model": "m", "previous_interaction_id": "int_1", "input": "And now?"}')
    )
    result, question = orjson.loads(upstream.requests[-1].body)["input"]
    assert (result["type"], result["call_id"], result["is_error"]) == ("function_result", "c1", True)
    assert "blocked by policy" in result["result"]
    assert question == {"type": "user_input", "content": [{"type": "text", "text": "And now?"}]}
    other = b'{"model": "m", "previous_interaction_id": "int_2", "input": "And now?"}'
    await client.ask(request(path, other))
    assert upstream.requests[-1].body == other


def test_a_question_in_words_stays_one(charges, other):
    note(charges, "s", refused())
    left = answered(other, "s", *going_on("And now?"))
    assert orjson.loads(left.plain)["input"] == [result(), {"role": "user", "content": "And now?"}]


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
def test_what_waits_for_nothing_leaves_as_it_came(other, session, given, answer):
    note(other, "s", refused())
    asked, body = going_on(given, answer)
    assert answered(other, session, asked, body).plain is body


def test_nobody_is_asked_before_a_call_was_refused(charges, other):
    note(other, "s", refused())
    asked, body = going_on("x")
    assert answered(charges, "s", asked, body).plain is body
    assert answered(other, "s", asked, body).plain is not body


@pytest.mark.parametrize(
    "judged",
    [
        Judged(refused().call, Verdict(Action.ALLOW, "")),
        Judged(ToolCall("rm", "call_0"), DENIED),
    ],
)
def test_only_refused_calls_that_are_kept_are_remembered(other, judged):
    note(other, "s", judged)
    asked, body = going_on("x")
    assert answered(other, "s", asked, body).plain is body


OURS = stand_in_id("fc_0", "call_0")


@pytest.mark.parametrize(
    ("answer", "stands_for"),
    [
        (None, [reference("fc_0"), result()]),
        ("resp_2", [reference("fc_0"), result()]),
        ("resp_1", [result()]),
    ],
)
def test_a_reference_to_our_message_becomes_one_to_the_call_and_its_result(other, answer, stands_for):
    note(other, "s", refused())
    before = {"type": "item_reference", "id": "rs_0"}
    asked = {"model": "m", "input": [before, reference(OURS), "more"]}
    asked |= {} if answer is None else {"previous_response_id": answer}
    left = answered(other, "s", asked, orjson.dumps(asked))
    assert orjson.loads(left.plain)["input"] == [before, *stands_for, "more"]


def test_what_is_too_long_to_be_remembered_is_referred_to(other):
    note(other, "s", refused(arguments=json.dumps({"text": "x" * MAX_TOLD})))
    asked = {"input": [reference(OURS)]}
    left = answered(other, "s", asked, orjson.dumps(asked))
    assert orjson.loads(left.plain)["input"] == [reference("fc_0"), result()]
    repeated = {"input": [{"type": "message", "id": OURS, "content": []}]}
    body = orjson.dumps(repeated)
    assert answered(other, "s", repeated, body).plain is body


def test_a_reference_to_what_nobody_remembers_becomes_words(other):
    asked = {"input": [reference(OURS)]}
    left = orjson.loads(answered(other, "s", asked, orjson.dumps(asked)).plain)
    assert [item["role"] for item in left["input"]] == ["assistant"]
