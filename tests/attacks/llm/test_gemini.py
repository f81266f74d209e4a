"""No shape of a Gemini answer hands a denied call to any client: the official SDK, and homely readers of events and of arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import errors, types
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transcripts.gemini import (
    DELETE,
    WEATHER,
    answer,
    array,
    candidate,
    cut_at,
    denying,
    event,
    events,
    part,
    piece,
    raw,
    run,
    said,
    text,
)
from transcripts.key_readings import first_wins

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.gemini.dialect import DIALECT, STREAMED
from agentsh_net.core.framing.sse import Decoder

Run = tuple[str, Any]
CITY = {"city": "Bern", "n": 1.5}
CUTS = st.lists(st.integers(0, 10**6), max_size=8)


# The official SDK, over a transport without sockets.


class Pieces(httpx.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


FAILURES = (
    errors.APIError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, RecursionError, httpx.HTTPError,
)  # fmt: skip


REPLY: list[Any] = [200, []]


def reply(_: httpx.Request) -> httpx.Response:
    return httpx.Response(REPLY[0], headers={"content-type": "text/event-stream"}, stream=Pieces(REPLY[1]))


CLIENT = genai.Client(  # one for all: to make one costs more than all else here
    api_key="k",
    http_options=types.HttpOptions(
        base_url="http://llm.test", httpx_client=httpx.Client(transport=httpx.MockTransport(reply))
    ),
)


def sdk(pieces: list[bytes], status: int = 200) -> genai.Client:
    REPLY[:] = [status, pieces]
    return CLIENT


def calls_of(response: types.GenerateContentResponse) -> list[Run]:
    found = []
    for one in response.candidates or []:
        parts = (one.content.parts if one.content else None) or []
        calls = [each.function_call for each in parts if each.function_call is not None]
        found += [(call.name or "", call.args) for call in calls]
    return found


def by_sdk(data: bytes) -> list[Run]:
    """Return what an application runs that takes each chunk's calls."""
    found: list[Run] = []
    try:
        for chunk in sdk([data]).models.generate_content_stream(model="m", contents="hi"):
            found += calls_of(chunk)
    except FAILURES:
        pass
    return found


def by_sdk_whole(data: bytes) -> list[Run]:
    try:
        return calls_of(sdk([data]).models.generate_content(model="m", contents="hi"))
    except FAILURES:
        return []


# Homely clients: how they cut a stream, how they read JSON, where they look for calls.


def by_rules(data: bytes) -> list[bytes]:
    decoder = Decoder(1 << 22)
    frames = [*decoder.feed(data), decoder.finish()]
    return [frame.data for frame in frames if frame is not None and frame.data is not None]


def by_lines(data: bytes) -> list[bytes]:
    lines = data.decode("utf-8", "replace").splitlines()
    return [line.removeprefix("data:").strip().encode() for line in lines if line.strip()]


def by_array(data: bytes) -> list[bytes]:
    return [data]


def by_objects(data: bytes) -> list[bytes]:
    """Cut wherever an object can be read, as decoders of a stream of values do."""
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


def any_spelling(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key.casefold().replace("_", ""): value for key, value in pairs}


def looked_up(value: Any, *keys: str) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key, value.get(key.casefold()))
        else:
            return None
    return value


def homely(cut: Callable[[bytes], list[bytes]], hook: Any) -> Callable[[bytes], list[Run]]:
    def client(data: bytes) -> list[Run]:
        found: list[Run] = []
        for one in cut(data):
            try:
                value = json.loads(one, object_pairs_hook=hook)
            except (ValueError, RecursionError):
                continue
            for each in value if isinstance(value, list) else [value]:
                answers = looked_up(each, "candidates") or looked_up(each, "response", "candidates") or []
                for one_candidate in answers if isinstance(answers, list) else []:
                    parts = looked_up(one_candidate, "content", "parts")
                    for entry in parts if isinstance(parts, list) else []:
                        call = looked_up(entry, "functionCall") or looked_up(entry, "function_call")
                        if isinstance(call, dict):
                            found.append((str(looked_up(call, "name") or ""), looked_up(call, "args")))
        return found

    return client


CUTTERS = (by_rules, by_lines, by_array, by_objects)
HOOKS = (None, first_wins, any_spelling)
CLIENTS: dict[str, Callable[[bytes], list[Run]]] = {"sdk": by_sdk} | {
    f"{cut.__name__}, {getattr(hook, '__name__', 'last wins')}": homely(cut, hook)
    for cut in CUTTERS
    for hook in HOOKS
}


def assert_nobody_runs_it(out: bytes) -> None:
    for name, client in CLIENTS.items():
        ran = client(out)
        assert DELETE not in {tool for tool, _ in ran}, name


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_clients_here_do_run_what_is_not_stopped(client: str) -> None:
    write = array if "array" in client else events
    assert (DELETE, CITY) in CLIENTS[client](write(answer(part(DELETE, CITY))))


# Honest streams.

PARTS = st.sampled_from(
    [
        text("a"),
        text("\u2028{"),
        part(WEATHER, CITY),
        part(DELETE, {"path": "/"}),
        part(WEATHER, {"a": ["functionCall"]}),
    ]
)


@given(st.lists(st.lists(PARTS, max_size=3), min_size=1, max_size=4), CUTS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_sdk_hands_out_allowed_calls_intact_and_denied_ones_never(
    chunks: list[list[Any]], cuts: list[int], fail_closed: bool
) -> None:
    data = events(*(answer(*parts) for parts in chunks))
    result = run(cut_at(data, cuts), denying(DELETE), fail_closed=fail_closed)
    calls = [p["functionCall"] for parts in chunks for p in parts if "functionCall" in p]
    assert by_sdk(result.out) == [(c["name"], c["args"]) for c in calls if c["name"] != DELETE]
    assert [j.call.name for j in result.judged] == [c["name"] for c in calls]
    assert not result.faults


@given(st.lists(PARTS, min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_whole_answer_is_read_in_the_same_way(parts: list[Any]) -> None:
    step = DIALECT.body(json.dumps(answer(*parts)).encode(), denying(DELETE), fail_closed=True)
    calls = [p["functionCall"] for p in parts if "functionCall" in p]
    assert by_sdk_whole(step.out) == [(c["name"], c["args"]) for c in calls if c["name"] != DELETE]


def test_what_keeps_a_client_patient_breaks_no_sdk() -> None:
    machine = STREAMED.stream(denying(DELETE), limits=Limits(), fail_closed=True)
    out = machine.feed(events(answer(text("a")), answer(piece(WEATHER)))).out + machine.keep_alive()
    out += machine.feed(events(answer(piece(more=False)), answer(text("b"), finish="STOP"))).out
    asked = sdk([out]).models.generate_content_stream(model="m", contents="hi")
    parts = [p for one in asked for p in one.candidates[0].content.parts]
    assert [p.text or p.function_call.name for p in parts] == ["a", WEATHER, None, "b"]


def test_the_sdk_raises_our_errors() -> None:
    for status in (400, 403, 429, 502):
        with pytest.raises(errors.APIError, match="why it was refused") as caught:
            sdk([DIALECT.error(status, "why it was refused")], status).models.generate_content(
                model="m", contents="hi"
            )
        assert caught.value.code == status
    cut = run(event(answer(piece(WEATHER))), denying()).out
    with pytest.raises(errors.APIError, match="cut by agentsh-net"):
        list(sdk([cut]).models.generate_content_stream(model="m", contents="hi"))


# Hostile ones.

CALL = json.dumps(part(DELETE, {"path": "/"}))


def around(parts: str) -> str:
    return '{"candidates":[{"content":{"role":"model","parts":[' + parts + "]}}]}"


SPELLINGS: dict[str, str] = {
    "as it should be": around(CALL),
    "escaped key": around(CALL.replace("functionCall", "\\u0066unctionCall")),
    "escaped name": around(CALL.replace(DELETE, "\\u006dcp_fs_delete")),
    "snake case": around(CALL.replace("functionCall", "function_call")),
    "any case": around(CALL.replace("functionCall", "FUNCTIONCALL")).replace("parts", "Parts"),
    "white space": around(CALL.replace(":", " :\t").replace("{", "{\r ")),
    "the key twice, denied last": around('{"functionCall":{"name":"a"},"functionCall":{"name":"' + DELETE + '"}}'),
    "the key twice, denied first": around('{"functionCall":{"name":"' + DELETE + '"},"functionCall":{"name":"a"}}'),
    "two spellings": around('{"functionCall":{"name":"' + WEATHER + '"},"function_call":{"name":"' + DELETE + '"}}'),
    "the name twice": around('{"functionCall":{"name":"' + DELETE + '","name":"' + WEATHER + '"}}'),
    "candidates twice": '{"candidates":[{"content":{"parts":[' + CALL + ']}}],"candidates":[]}',
    "candidates in two cases": '{"candidates":[{"content":{"parts":[' + CALL + ']}}],"Candidates":[]}',
    "the second candidate alone": json.dumps({"candidates": [candidate(text("a")), candidate(part(DELETE), index=1)]}),
    "two candidates of one index": json.dumps({"candidates": [candidate(part(WEATHER), index=0), candidate(part(DELETE), index=0)]}),
    "beside text": around('{"text":"a","functionCall":{"name":"' + DELETE + '"}}'),
    "as a thought": around('{"thought":true,"thoughtSignature":"x","functionCall":{"name":"' + DELETE + '"}}'),
    "beside executable code": around('{"executableCode":{"code":"1"},"functionCall":{"name":"' + DELETE + '"}}'),
    "a reason that says there is none": json.dumps(answer(part(DELETE), finish="SAFETY")),
    "a reason that says it is broken": json.dumps(answer(part(DELETE), finish="MALFORMED_FUNCTION_CALL")),
    "wrapped": '{"response":' + around(CALL) + "}",
    "in a list": "[" + around(CALL) + "]",
    "huge numbers": around(CALL.replace('"/"', "1" * 400)),
    "NaN": around(CALL.replace('"/"', "NaN")),
    "a lone surrogate": around(CALL.replace('"/"', '"\\ud800"')),
    "deep": around(CALL.replace('"/"', "[" * 500 + "]" * 500)),
    "broken behind it": around(CALL) + "}",
    "two answers in one": around('{"text":"a"}') + around(CALL),
    "an error beside it": around(CALL)[:-1] + ',"error":null}',
    "a call that goes on and has no end": json.dumps(answer(piece(DELETE))),
}  # fmt: skip

WRITTEN: dict[str, Callable[[str], bytes]] = {
    "an event": raw,
    "an event of LF": lambda data: b"data: " + data.encode() + b"\n\n",
    "an event of CR": lambda data: b"data:" + data.replace("\r", " ").encode() + b"\r\r",
    "an event without an end": lambda data: b"data: " + data.encode(),
    "an event of several lines": lambda data: b"data: " + data.replace(",", ",\ndata: ").encode() + b"\n\n",
    "a line": lambda data: b"data: 1\n" + data.replace("\r", " ").encode() + b"\n",
    "behind U+2028": lambda data: b"data: x\xe2\x80\xa8" + data.encode() + b"\xe2\x80\xa8\n\n",
    "an array": lambda data: b"[" + data.encode() + b"]",
    "an array without an end": lambda data: b"[{},\n" + data.encode(),
    "an object": str.encode,
    "behind a byte order mark": lambda data: b"\xef\xbb\xbf" + raw(data),
    "an array in an array": lambda data: b"[[" + data.encode() + b"]]",
    "behind a string": lambda data: b'["a", ' + data.encode() + b"]",
    "UTF-16": lambda data: data.encode("utf-16"),
    "with the events of another": lambda data: (
        b"event: message\nid: 1\n: c\ndata: " + data.encode() + b"\n\n"
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_brings_anyone_a_denied_call(spelling: str) -> None:
    for name, written in WRITTEN.items():
        data = written(spelling)
        result = run(data, denying(DELETE))
        assert_nobody_runs_it(result.out)
        assert result.faults or any(j.verdict.blocked for j in result.judged), name
        pieces = run(cut_at(data, range(0, len(data), 7)), denying(DELETE))
        assert pieces.out == result.out, name
        assert repr(pieces.judged) == repr(result.judged), name


@pytest.mark.parametrize(
    "made",
    [
        around(CALL.replace("functionCall", "func\ntionCall")),
        around(CALL.replace("functionCall", "func\r\ntion\\u0043all")),
        around(CALL.replace("functionCall", "func\\u00\n74ionCall")),
        around(CALL.replace(DELETE, DELETE[:3] + "\n" + DELETE[3:])),
    ],
)
def test_the_sdk_joins_lines_to_a_denied_call_and_never_gets_them(made: str) -> None:
    data = made.encode() + b"\n"
    assert DELETE in {tool for tool, _ in by_sdk(data)}
    for pieces in ([data], cut_at(data, range(0, len(data), 7))):
        result = run(pieces, denying(DELETE))
        assert DELETE not in {tool for tool, _ in by_sdk(result.out)}
        assert [(f.cause, f.cut) for f in result.faults] in (
            [("ambiguous_lines", True)],
            [("malformed_json", True)],
        )


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_of_a_whole_answer_does(spelling: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        step = DIALECT.body(spelling.encode(encoding), denying(DELETE), fail_closed=False)
        assert DELETE not in {tool for tool, _ in by_sdk_whole(step.out)}
        assert step.faults or any(j.verdict.blocked for j in step.judged)


def test_an_event_above_the_bound_is_cut_or_told() -> None:
    for write in (events, array):
        data = write(answer(part(DELETE, {"x": "y" * 2000})))
        pieces = cut_at(data, range(0, len(data), 300))
        closed = run(pieces, denying(DELETE), fail_closed=True, limits=Limits(max_frame=1000))
        assert closed.ended
        assert_nobody_runs_it(closed.out)
        open_ = run(pieces, denying(DELETE), limits=Limits(max_frame=1000))
        assert open_.out == data
        assert [f.cause for f in open_.faults] == ["frame_too_long"]


SOUP = st.lists(
    st.sampled_from(
        [*(spelling for spelling in SPELLINGS.values() if len(spelling) < 900), json.dumps(answer(piece(DELETE), piece(more=False))),
         json.dumps(answer(piece(WEATHER))), json.dumps(answer(piece(more=False))), json.dumps(answer(text("functionCall"))), "{", "[DONE]"]
    ),
    max_size=4,
)  # fmt: skip


@given(SOUP, st.sampled_from(list(WRITTEN)), CUTS)
@settings(max_examples=80, deadline=None)
@example([json.dumps(answer(piece(DELETE))), json.dumps(answer(part(WEATHER)))], "an event", [])
@example(["[DONE]", json.dumps(answer(part(DELETE)))], "an event without an end", [])
def test_a_denied_call_in_hostile_company_never_leaves(
    soup: list[str], written: str, cuts: list[int]
) -> None:
    data = b"".join(map(WRITTEN[written], soup))
    result = run(cut_at(data, cuts), denying(DELETE))
    assert_nobody_runs_it(result.out)
    assert result.out == run(data, denying(DELETE)).out


def test_a_notice_is_text_to_every_reader() -> None:
    out = run(event(answer(part(DELETE))), denying(DELETE)).out
    chunks = list(sdk([out]).models.generate_content_stream(model="m", contents="hi"))
    assert [chunk.text for chunk in chunks] == [said(DELETE)]
    assert STREAMED.name == "gemini"
