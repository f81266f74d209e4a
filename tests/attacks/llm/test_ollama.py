"""No shape of an Ollama answer hands a denied call to any client: the official SDK, and homely readers of lines and of values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import ollama
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.key_readings import any_case, first_wins
from transcripts.ollama import DELETE, WEATHER, answer, cut_at, denying, entry, line, lines, run, said

from agentsh_net.core.dialects.ollama.dialect import DIALECT

Run = tuple[str, Any]
CITY = {"city": "Bern", "n": 1.5}
CUTS = st.lists(st.integers(0, 10**6), max_size=8)
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


# The official SDK, over a transport without sockets.


class Pieces(httpx.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


REPLY: list[Any] = [200, []]


def reply(_: httpx.Request) -> httpx.Response:
    return httpx.Response(REPLY[0], headers={"content-type": "application/x-ndjson"}, stream=Pieces(REPLY[1]))


SDK = ollama.Client(host="http://llm.test", transport=httpx.MockTransport(reply))
FAILURES = (
    ollama.ResponseError,
    pydantic.ValidationError,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
)


def calls_of(response: Any) -> list[Run]:
    return [(call.function.name, call.function.arguments) for call in response.message.tool_calls or []]


def by_sdk(data: bytes) -> list[Run]:
    REPLY[:] = [200, [data]]
    found: list[Run] = []
    try:
        for part in SDK.chat(**ASK, stream=True):
            found += calls_of(part)
    except FAILURES:
        pass
    return found


def by_sdk_whole(data: bytes) -> list[Run]:
    REPLY[:] = [200, [data]]
    try:
        return calls_of(SDK.chat(**ASK))
    except FAILURES:
        return []


# Homely clients: how they cut a stream, how they read JSON.


def by_lf(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def by_any_line_end(data: bytes) -> list[bytes]:
    return [one.encode() for one in data.decode("utf-8", "replace").splitlines()]


def by_values(data: bytes) -> list[bytes]:
    """Cut wherever a value ends, as decoders of a stream of values do (Go's, and JavaScript's by braces)."""
    found, at, decoder = [], 0, json.JSONDecoder()
    source = data.decode("utf-8", "replace")
    while (at := source.find("{", at)) >= 0:
        try:
            _, end = decoder.raw_decode(source, at)
        except ValueError:
            at += 1
        else:
            found.append(source[at:end].encode())
            at = end
    return found


def as_events(data: bytes) -> list[bytes]:
    return [one.removeprefix(b"data:").strip() for one in by_any_line_end(data)]


def homely(cut: Callable[[bytes], list[bytes]], hook: Any) -> Callable[[bytes], list[Run]]:
    def client(data: bytes) -> list[Run]:
        found: list[Run] = []
        for one in cut(data):
            try:
                value = json.loads(one, object_pairs_hook=hook)
            except (ValueError, RecursionError):
                continue
            for carrier in (value, value.get("message") if isinstance(value, dict) else None):
                calls = carrier.get("tool_calls") if isinstance(carrier, dict) else None
                for call in calls if isinstance(calls, list) else [calls]:
                    told = (call.get("function") or call) if isinstance(call, dict) else None
                    if isinstance(told, dict) and told.get("name"):
                        found.append((str(told["name"]), told.get("arguments")))
        return found

    return client


CUTTERS = (by_lf, by_any_line_end, by_values, as_events)
HOOKS = (None, first_wins, any_case)
CLIENTS: dict[str, Callable[[bytes], list[Run]]] = {"sdk": by_sdk} | {
    f"{cut.__name__}, {getattr(hook, '__name__', 'last wins')}": homely(cut, hook)
    for cut in CUTTERS
    for hook in HOOKS
}


def assert_nobody_runs_it(out: bytes) -> None:
    for name, client in CLIENTS.items():
        assert DELETE not in {tool for tool, _ in client(out)}, name


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_clients_here_do_run_what_is_not_stopped(client: str) -> None:
    assert (DELETE, CITY) in CLIENTS[client](lines(answer("", entry(DELETE, CITY))))


# Honest streams.

CALLS = st.sampled_from(
    [entry(WEATHER, CITY), entry(DELETE, {"path": "/"}), entry("Bash", {"tool_calls": ["x"]}, id="call_9")]
)


@given(st.lists(st.tuples(st.text(max_size=5), st.lists(CALLS, max_size=3)), max_size=4), CUTS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_sdk_hands_out_allowed_calls_intact_and_denied_ones_never(
    pieces: list[tuple[str, list[Any]]], cuts: list[int], fail_closed: bool
) -> None:
    data = lines(*(answer(content, *calls) for content, calls in pieces), answer("", done=True))
    result = run(cut_at(data, cuts), denying(DELETE), fail_closed=fail_closed)
    called = [call["function"] for _, calls in pieces for call in calls]
    want = [(call["name"], call["arguments"]) for call in called if call["name"] != DELETE]
    assert by_sdk(result.out) == want
    assert [j.call.name for j in result.judged] == [call["name"] for call in called]
    assert not result.faults
    whole = DIALECT.body(
        line(answer("", *(c for _, calls in pieces for c in calls))), denying(DELETE), fail_closed=True
    )
    assert by_sdk_whole(whole.out) == want


def test_the_sdk_raises_our_errors_and_reads_our_notice() -> None:
    REPLY[:] = [403, [DIALECT.error(403, "why it was refused")]]
    with pytest.raises(ollama.ResponseError, match="why it was refused") as caught:
        SDK.chat(**ASK)
    assert caught.value.status_code == 403
    REPLY[:] = [200, [line(answer("a")), DIALECT.error_frame("cut by agentsh-net")]]
    with pytest.raises(ollama.ResponseError, match="cut by agentsh-net"):
        list(SDK.chat(**ASK, stream=True))
    REPLY[:] = [200, [run(line(answer("", entry(DELETE))), denying(DELETE)).out]]
    assert [part.message.content for part in SDK.chat(**ASK, stream=True)] == [said(DELETE)]


# Hostile ones.

CALL = json.dumps(entry(DELETE, {"path": "/"}))


def around(calls: str) -> str:
    return (
        '{"model":"m","message":{"role":"assistant","content":"","tool_calls":[' + calls + ']},"done":false}'
    )


SPELLINGS: dict[str, str] = {
    "as it should be": around(CALL),
    "escaped key": around(CALL).replace("tool_calls", "\\u0074ool_calls"),
    "escaped name": around(CALL.replace(DELETE, "\\u006dcp__fs__delete")),
    "any case": around(CALL).replace("tool_calls", "TOOL_CALLS").replace("message", "Message"),
    "white space": around(CALL.replace(":", " :\t").replace("{", "{ ")),
    "CR for space": around(CALL).replace('"message":', '"message":\r').replace(',"done"', '\r,"done"'),
    "the name twice, denied last": around('{"function":{"name":"a","name":"' + DELETE + '"}}'),
    "the name twice, denied first": around('{"function":{"name":"' + DELETE + '","name":"a"}}'),
    "two names": around('{"name":"' + DELETE + '","function":{"name":"' + WEATHER + '"}}'),
    "function twice": around('{"function":{"name":"' + DELETE + '"},"function":{"name":"' + WEATHER + '"}}'),
    "function in two cases": around('{"function":{"name":"' + DELETE + '"},"Function":{"name":"' + WEATHER + '"}}'),
    "the message twice": around(CALL)[:-1] + ',"message":{"content":"a"}}',
    "the message in two cases": around(CALL)[:-1] + ',"Message":{"content":"a"}}',
    "the calls twice": around(CALL).replace('"role"', '"tool_calls":[],"role"'),
    "beside the message": '{"message":{"content":"a"},"tool_calls":[' + CALL + "]}",
    "no list": '{"message":{"content":"a","tool_calls":' + CALL + "}}",
    "flat": around('{"name":"' + DELETE + '","arguments":{}}'),
    "done already": around(CALL).replace("false", "true"),
    "an error beside it": around(CALL)[:-1] + ',"error":""}',
    "NaN": around(CALL.replace('"/"', "NaN")),
    "a huge number": around(CALL.replace('"/"', "1" * 400)),
    "a lone surrogate": around(CALL.replace('"/"', '"\\ud800"')),
    "deep": around(CALL.replace('"/"', "[" * 500 + "]" * 500)),
    "two values in one line": '{"model":"m"}' + around(CALL),
    "broken behind it": around(CALL) + "}",
    "over two lines": around(CALL).replace(",", ",\n"),
    "behind CR": '{"model":"m","message":{"content":""}}\r' + around(CALL),
    "behind U+2028": '{"model":"m","message":{"content":""}}\u2028' + around(CALL),
    "behind VT": '{"model":"m","message":{"content":""}}\x0b' + around(CALL),
    "behind a byte order mark": "\ufeff" + around(CALL),
    "as an event": "data: " + around(CALL),
    "in a list": "[" + around(CALL) + "]",
}  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le"])
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_brings_anyone_a_denied_call(spelling: str, encoding: str) -> None:
    data = lines(answer("a")) + (spelling + "\n").encode(encoding) + lines(answer("b", done=True))
    for tail in (b"", b"\n"):
        result = run(data.removesuffix(b"\n") + tail, denying(DELETE))
        assert_nobody_runs_it(result.out)
        assert result.faults or any(j.verdict.blocked for j in result.judged)
        pieces = run(cut_at(data.removesuffix(b"\n") + tail, range(0, len(data), 7)), denying(DELETE))
        assert pieces.out == result.out


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_of_a_whole_answer_does(spelling: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        step = DIALECT.body(spelling.encode(encoding), denying(DELETE), fail_closed=False)
        assert DELETE not in {tool for tool, _ in by_sdk_whole(step.out)}
        assert step.faults or any(j.verdict.blocked for j in step.judged)


SOUP = st.lists(
    st.sampled_from([*(s for s in SPELLINGS.values() if len(s) < 700), "", "{}", '{"message":', '{"tool_calls":[{"name":', "[DONE]"]),
    max_size=5,
)  # fmt: skip


@given(SOUP, st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\n\n", ""]), CUTS)
@settings(max_examples=150, deadline=None)
def test_a_denied_call_in_hostile_company_never_leaves(soup: list[str], end: str, cuts: list[int]) -> None:
    data = "".join(one + end for one in soup).encode("utf-8", "surrogatepass")
    result = run(cut_at(data, cuts), denying(DELETE))
    assert_nobody_runs_it(result.out)
    assert result.out == run(data, denying(DELETE)).out
