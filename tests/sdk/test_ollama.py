"""What the ollama SDK finally returns is what policy decided, by lines and whole, through real worker processes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import ollama
import pytest
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, chunked, response
from transcripts.ollama import answer, entry, line

ALLOWED, DENIED = "get_weather", "delete_files"
ASKED = {"allowed": [ALLOWED], "blocked": [DENIED], "both": [DENIED, ALLOWED], "none": []}
CITY = {"city": "Bern", "n": 1.5}
TYPES = (b"application/x-ndjson", b"application/json", b"text/plain")


async def provider(conversation: Any, received: Received) -> None:
    """Call the tools that the request names, under the type that it names."""
    target = received.line.split()[1]
    if target != b"/api/chat":
        await conversation.send(response(b'{"models":[]}'))
        return
    body = json.loads(received.body)
    asked, _, kind = body["messages"][0]["content"].partition(";")
    calls = [entry(name, CITY) for name in asked.split(",") if name]
    if body.get("stream") is False:
        await conversation.send(response(json.dumps(answer("Hello.", *calls, done=True)).encode()))
        return
    pieces = [
        line(answer("Hello.")),
        *(line(answer("", call)) for call in calls),
        line(answer("", done=True)),
    ]
    whole = b"".join(pieces)
    pieces = [whole[at : at + 40] for at in range(0, len(whole), 40)]
    await conversation.send(*chunked(*pieces, content_type=kind.encode() or TYPES[0]))


def policy(port: int, **mcp: Any) -> Any:
    return snapshot(port, proxy={"providers": {"ollama": {"base_url": f"http://127.0.0.1:{port}"}}}, **mcp)


@pytest.fixture(scope="module")
def pool() -> Iterator[RunningPool]:
    with RunningPool(provider, policy) as it:
        yield it


@pytest.mark.parametrize("kind", [t.decode() for t in TYPES])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", ASKED)
def test_the_sdk_gets_what_policy_decided(pool: RunningPool, case: str, stream: bool, kind: str) -> None:
    pool.events.clear()
    client, names = ollama.Client(host=f"{pool.base}/ollama"), ASKED[case]
    asked = {"model": "m", "messages": [{"role": "user", "content": ",".join(names) + ";" + kind}]}
    got = list(client.chat(**asked, stream=True)) if stream else [client.chat(**asked)]
    assert [(c.function.name, c.function.arguments) for p in got for c in p.message.tool_calls or []] == [
        (name, CITY) for name in names if name == ALLOWED
    ]
    told = "".join(part.message.content or "" for part in got)
    assert told.startswith("Hello.")
    assert told.count("[agentsh] Tool 'delete_files' blocked by policy") == names.count(DENIED)
    events = pool.wait_for_events(len(names))
    assert [(e.tool_name, e.action, e.input, e.dialect) for e in events] == [
        (n, "block" if n == DENIED else "allow", CITY, "ollama") for n in names
    ]


def test_without_a_provider_in_the_path_the_clients_default_host_works(pool: RunningPool) -> None:
    client = ollama.Client(host=pool.base)
    assert client.list().models == []
    (call,) = client.chat(model="m", messages=[{"role": "user", "content": ALLOWED}]).message.tool_calls
    assert call.function.name == ALLOWED


def test_a_request_that_does_not_speak_of_streaming_gets_a_stream(pool: RunningPool) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": DENIED}]}).encode()
    with urllib.request.urlopen(f"{pool.base}/ollama/api/chat", body, timeout=60) as reply:
        got = [json.loads(one) for one in reply.read().splitlines()]
    assert len(got) == 3
    assert "tool_calls" not in json.dumps(got)


def test_an_upstream_that_is_gone_raises_the_sdks_own_error() -> None:
    with RunningPool(provider, lambda _: policy(9)) as it:
        client = ollama.Client(host=f"{it.base}/ollama")
        with pytest.raises(ollama.ResponseError, match=r"cannot connect to 127\.0\.0\.1:9"):
            client.chat(model="m", messages=[])


def test_a_refusal_before_the_request_leaves_is_in_ollamas_shape() -> None:
    with RunningPool(provider, lambda port: policy(port, fail_closed=True)) as it:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{it.base}/ollama/api/chat", b"{", timeout=60)
        assert "could not be inspected" in json.loads(caught.value.read())["error"]
