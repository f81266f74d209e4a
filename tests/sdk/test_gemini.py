"""What google-genai finally returns is what policy decided, in streams, arrays and whole answers, through real worker processes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, chunked, response
from transcripts import interactions
from transcripts.gemini import answer, array, event, part, said, text

ALLOWED, DENIED = "get_weather", "delete_files"
ASKED = {
    "allowed": [ALLOWED],
    "blocked": [DENIED],
    "both": [DENIED, ALLOWED],
    "none": [],
}
CITY = {"city": "Bern", "n": 1.5}


async def interacting(conversation: Any, asked: Any) -> None:
    steps = [interactions.told("Hello.")]
    steps += [interactions.call(n, CITY, call_id=f"c{n}") for n in asked["input"].split(",") if n]
    if asked.get("stream"):
        await conversation.send(*chunked(interactions.answer(*steps)))
    else:
        await conversation.send(response(json.dumps(interactions.interaction(*steps)).encode()))


async def provider(conversation: Any, received: Received) -> None:
    """Call the tools that the request names in its text."""
    target = received.line.split()[1].decode()
    if "/interactions" in target:
        await interacting(conversation, json.loads(received.body))
        return
    names = [n for n in json.loads(received.body)["contents"][0]["parts"][0]["text"].split(",") if n]
    answers = [
        answer(text("Hello.")),
        *(answer(part(n, CITY)) for n in names),
        answer(text(""), finish="STOP"),
    ]
    if ":generateContent" in target:
        await conversation.send(
            response(json.dumps(answer(text("Hello."), *(part(n, CITY) for n in names))).encode())
        )
    elif "alt=sse" in target:
        await conversation.send(*chunked(*map(event, answers)))
    else:
        data = array(*answers)
        pieces = [data[at : at + 50] for at in range(0, len(data), 50)]
        await conversation.send(*chunked(*pieces, content_type=b"application/json; charset=UTF-8"))


def policy(port: int, **mcp: Any) -> Any:
    return snapshot(port, proxy={"providers": {"gemini": {"base_url": f"http://127.0.0.1:{port}"}}}, **mcp)


@pytest.fixture(scope="module")
def pool() -> Iterator[RunningPool]:
    with RunningPool(provider, policy) as it:
        yield it


def client(base: str) -> genai.Client:
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=f"{base}/gemini"))


def parts_of(responses: Any) -> Iterator[types.Part]:
    for one in responses:
        yield from one.candidates[0].content.parts


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", ASKED)
def test_the_sdk_gets_what_policy_decided(pool: RunningPool, case: str, stream: bool) -> None:
    pool.events.clear()
    asking, names = client(pool.base), ASKED[case]  # a client that nobody holds closes itself
    models = asking.models
    if stream:
        got = list(parts_of(models.generate_content_stream(model="m", contents=",".join(names) or ",")))
    else:
        got = list(parts_of([models.generate_content(model="m", contents=",".join(names) or ",")]))
    assert [(p.function_call.name, p.function_call.args) for p in got if p.function_call] == [
        (name, CITY) for name in names if name == ALLOWED
    ]
    told = "".join(p.text or "" for p in got)
    assert told.startswith("Hello.")
    assert told.count("[agentsh] Tool 'delete_files' blocked by policy") == names.count(DENIED)
    events = pool.wait_for_events(len(names))
    assert [(e.tool_name, e.action, e.input, e.dialect) for e in events] == [
        (n, "block" if n == DENIED else "allow", CITY, "gemini") for n in names
    ]


@pytest.mark.parametrize("case", ASKED)
def test_the_sdk_gets_what_policy_decided_of_an_interaction(pool: RunningPool, case: str) -> None:
    pool.events.clear()
    asking, names = client(pool.base), ASKED[case]
    wanted = [(name, CITY) for name in names if name == ALLOWED]
    whole = asking.interactions.create(model="m", input=",".join(names) or ",")
    assert [(s.name, s.arguments) for s in whole.steps if s.type == "function_call"] == wanted
    told = "".join(c.text for s in whole.steps if s.type == "model_output" for c in s.content)
    assert told.count("[agentsh] Tool 'delete_files' blocked by policy") == names.count(DENIED)
    assert whole.status == ("completed" if case == "blocked" else "requires_action")
    open_: dict[int, list[str]] = {}
    listed: list[Any] = []
    for event_ in asking.interactions.create(model="m", input=",".join(names) or ",", stream=True):
        if event_.event_type == "step.start" and event_.step.type == "function_call":
            open_[event_.index] = [event_.step.name, ""]
        if event_.event_type == "step.delta" and event_.delta.type == "arguments_delta":
            open_[event_.index][1] += event_.delta.arguments
        if event_.event_type == "interaction.completed":
            listed += [(s.name, s.arguments) for s in event_.interaction.steps if s.type == "function_call"]
    assert [(name, json.loads(text)) for name, text in open_.values()] == listed == wanted
    events = pool.wait_for_events(2 * len(names))
    assert [(e.tool_name, e.action, e.input, e.dialect) for e in events] == [
        (n, "block" if n == DENIED else "allow", CITY, "interactions") for n in names
    ] * 2


def ask(base: str, method: str, body: Any) -> Any:
    request = urllib.request.Request(
        f"{base}{method}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


HELLO = {"contents": [{"parts": [{"text": f"{DENIED},{ALLOWED}"}]}]}


@pytest.mark.parametrize("prefix", ["/gemini/v1beta", "/v1beta", "/gemini/v1"])
def test_without_events_the_answer_is_an_array_that_every_parser_reads(
    pool: RunningPool, prefix: str
) -> None:
    got = ask(pool.base, f"{prefix}/models/m:streamGenerateContent", HELLO)
    parts = [p for one in got for p in one["candidates"][0]["content"]["parts"]]
    assert [set(p) for p in parts] == [{"text"}, {"text"}, {"functionCall"}, {"text"}]
    assert parts[1]["text"].startswith(said(DENIED, ""))
    assert parts[2] == part(ALLOWED, CITY)


def test_a_server_that_gemini_is_to_call_is_judged_and_refused_in_googles_shape() -> None:
    tools = [
        {"mcpServers": [{"name": "evil", "streamableHttpTransport": {"url": "https://evil.example/mcp"}}]}
    ]
    with RunningPool(provider, lambda port: policy(port, fail_closed=True)) as it:
        for method in ("m:generateContent", "m:streamGenerateContent"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                ask(it.base, f"/gemini/v1beta/models/{method}", HELLO | {"tools": tools})
            told = json.loads(caught.value.read())["error"]
            assert (told["code"], told["status"]) == (403, "PERMISSION_DENIED")
            assert "evil" in told["message"]
        assert [e.type for e in it.wait_for_events(2)] == ["mcp_connector_request"] * 2


def test_batches_are_refused_under_fail_closed() -> None:
    with RunningPool(provider, lambda port: policy(port, fail_closed=True)) as it:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(it.base, "/gemini/v1beta/models/m:batchGenerateContent", HELLO)
        assert "fail_closed" in json.loads(caught.value.read())["error"]["message"]


def test_an_upstream_that_is_gone_raises_the_sdks_own_error() -> None:
    with RunningPool(provider, lambda _: policy(9)) as it:
        asking = client(it.base)
        with pytest.raises(errors.ServerError, match=r"cannot connect to 127\.0\.0\.1:9"):
            asking.models.generate_content(model="m", contents="hi")
