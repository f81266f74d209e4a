"""No Responses client executes a call that was not allowed with these very arguments; an allowed call arrives intact."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.openai_responses import (
    DELETE,
    DONE,
    NAMES,
    WEATHER,
    Event,
    Item,
    added,
    arguments,
    arguments_done,
    begin,
    call,
    cut_at,
    denying,
    done,
    end,
    frame,
    function_call,
    load,
    message_item,
    notice,
    numbered,
    raw,
    response,
    run,
    text,
)
from transcripts.openai_responses.clients import ASK, MODELS, Executed, by_sdks, models, sdk

from agentsh_net.core.dialects.base import Judged, Limits
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.dialects.openai_responses.stream import ResponsesMachine

CITY = {"city": "Bern"}
GOOD = function_call(WEATHER, CITY)
BAD = function_call(DELETE, {"path": "/x"})
HELLO = message_item("Hello, a tool.")
CUTS = st.lists(st.integers(0, 10**6), max_size=8)


def assert_only_allowed(found: dict[str, Executed], judged: list[Judged]) -> None:
    """Every executed call was allowed with its arguments, or lost them (some clients find no place for them)."""
    allowed = [j.call for j in judged if not j.verdict.blocked]
    for client, calls in found.items():
        for space, name, value in calls:
            if isinstance(value, tuple) or not name:
                continue  # no tool gets arguments that do not parse, and none has no name
            assert name != DELETE, client
            assert "evil" not in json.dumps(value), client
            assert any(
                name == other.name
                and space in {other.namespace, other.server_name, ""}
                and (value in ({}, None, "") or json.dumps(value) == json.dumps(other.input))
                for other in allowed
            ), f"{client} executed {name} with {value!r}; allowed: {[(c.name, c.input) for c in allowed]}"


def everyone(data: bytes) -> dict[str, Executed]:
    return models(data) | by_sdks(data)


def chunkings(data: bytes, seed: str) -> Iterator[list[bytes]]:
    rng = random.Random(seed)
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    for _ in range(4):
        yield cut_at(data, (rng.randrange(len(data)) for _ in range(rng.randrange(1, 12))))


# ---- rows of the catalogue: each stream tries to have a denied call run ----


def stream(*events: Event | list[Event] | bytes, first: list[Event] | None = None) -> bytes:
    flat: list[Event | bytes] = list(begin() if first is None else first)
    for made in events:
        flat += made if isinstance(made, list) else [made]
    return numbered(flat)


def evil(name: str = WEATHER, **more: Any) -> Item:
    return function_call(name, {"city": "evil"}, **more)


def without(item: Item, *keys: str) -> Item:
    return {key: value for key, value in item.items() if key not in keys}


def text_of_call(item: Item = BAD) -> str:
    return json.dumps({"type": "response.output_item.done", "output_index": 0, "item": item})


def chunk(name: str, text: str, **more: Any) -> Event:
    """Return an event with a call of a chat completion in it."""
    entry = {"index": 0, "id": "call_0", "type": "function", "function": {"name": name, "arguments": text}}
    choices = [{"index": 0, "delta": {"role": "assistant", "tool_calls": [entry]}, "finish_reason": None}]
    return {"type": "x", "object": "chat.completion.chunk", "choices": choices, **more}


U = text_of_call().replace("_", "\\u005f")
EMPTY = {"arguments": "", "status": "in_progress"}
NATIVE: Item = {
    "id": "x_0", "type": "local_shell_call", "call_id": "call_0", "status": "completed",
    "action": {"type": "exec", "command": ["evil"], "env": {}},
}  # fmt: skip

ROWS: dict[str, bytes] = {
    "1 plain": stream(call(0, BAD), end(BAD)),
    "1 namespace": stream(call(0, BAD | {"namespace": "mcp__fs"}), end(BAD | {"namespace": "mcp__fs"})),
    "5 incomplete": stream(call(0, BAD), end(BAD, status="incomplete")),
    "5 failed": stream(call(0, BAD), end(BAD, status="failed")),
    "5 cancelled": stream(call(0, BAD), end(BAD, status="cancelled")),
    "5 no end": stream(call(0, BAD)),
    "6 added and end": stream(added(0, BAD), end(BAD)),
    "6 added, [DONE]": stream(added(0, BAD), DONE),
    "7 end of stream inside the call": stream(call(0, BAD)[:-1]),
    "7 end of stream without a blank line": stream(call(0, BAD))[:-2],
    "7 error inside the call": stream(added(0, BAD), {"type": "error", "code": "x", "message": "m"}),
    "7 error, then the end with the call": stream(
        added(0, BAD), {"type": "error", "code": "x", "message": "m"}, end(BAD)
    ),
    "8 a call after the end": stream(end(), call(0, BAD)),
    "8 an allowed call after the end, arguments denied": stream(end(), call(0, evil())),
    "8 a second end": stream(end(), end(BAD)),
    "8 a second created": stream(end(), begin(BAD)),
    "9 a call after [DONE]": stream(text(0, HELLO), end(HELLO), DONE, call(1, BAD)),
    "10 CRLF": stream(call(0, BAD), end(BAD)).replace(b"\n", b"\r\n"),
    "10 CR": stream(call(0, BAD), end(BAD)).replace(b"\n", b"\r"),
    "10 no space, BOM": b"\xef\xbb\xbf" + stream(call(0, BAD), end(BAD)).replace(b": ", b":", 1).replace(b"data: ", b"data:"),
    "10 comments and ids": stream(call(0, BAD), end(BAD)).replace(b"data:", b"id: 4\nretry: 3\n: x\ndata:"),
    "10 no event names": b"".join(
        line for line in stream(call(0, BAD), end(BAD)).splitlines(keepends=True) if not line.startswith(b"event")
    ),
    "10 one document over several lines": b"data: "
    + json.dumps(json.loads(text_of_call()), indent=1).replace("\n", "\ndata: ").encode()
    + b"\n\n",
    "10 two documents in one event": b"data: {}\n" + raw("", text_of_call()),
    "10 behind U+2028 in a comment": f": \u2028data: {text_of_call()}\n\n".encode(),
    "10 behind NEL in an id": f"id: \x85data: {text_of_call()}\ndata: {{}}\n\n".encode(),
    "12 in created": stream(first=begin(BAD)),
    "12 only in done": stream(done(0, BAD)),
    "12 only in completed": stream(end(BAD)),
    "12 only in incomplete": stream(end(BAD, status="incomplete")),
    "12 only in failed": stream(end(BAD, status="failed")),
    "12 only in an event of its own kind": stream({"type": "response.surprise", "item": BAD}),
    "12 only in an output without a response": stream({"type": "response.completed", "output": [BAD]}),
    "12 by the name of the event alone": raw("response.output_item.done", json.dumps({"output_index": 0, "item": BAD})),
    "12 a bare response": raw("", json.dumps(response(BAD, status="completed"))),
    "13 allowed in added, denied in done": stream(added(0, GOOD | EMPTY), done(0, BAD), end(BAD)),
    "13 denied in added, allowed in done": stream(added(0, BAD), done(0, GOOD), end(GOOD)),
    "13 allowed to done, denied in completed": stream(call(0, GOOD), end(BAD)),
    "13 allowed to done, denied in completed, other ids": stream(call(0, GOOD), end(BAD | {"id": "a", "call_id": "b"})),
    "13 allowed in created, denied in done": stream(done(0, BAD), end(BAD), first=begin(GOOD)),
    "13 arguments differ in done": stream(call(0, GOOD)[:-1], done(0, evil()), end(evil())),
    "13 arguments differ in deltas": stream(
        added(0, GOOD | EMPTY), arguments(0, "fc_0", evil()["arguments"]), done(0, GOOD), end(GOOD)
    ),
    "13 arguments differ in their done": stream(
        added(0, GOOD | EMPTY), arguments_done(0, "fc_0", evil()["arguments"]), done(0, GOOD), end(GOOD)
    ),
    "13 arguments differ in added": stream(added(0, evil()), done(0, GOOD), end(GOOD)),
    "13 arguments differ in completed": stream(call(0, GOOD), end(evil())),
    "13 a name with the arguments": stream(
        added(0, GOOD | EMPTY), arguments_done(0, "fc_0", GOOD["arguments"], name=DELETE), done(0, GOOD), end(GOOD)
    ),
    "13 a name with arguments of nobody": stream(arguments_done(0, "fc_0", "{}", name=DELETE), end()),
    "13 name only in added": stream(added(0, BAD | EMPTY), done(0, BAD | {"name": ""}), end()),
    "13 name only in done": stream(added(0, BAD | EMPTY | {"name": ""}), done(0, BAD), end(BAD)),
    "13 the type changes": stream(added(0, GOOD | EMPTY), done(0, BAD | {"type": "custom_tool_call"}), end()),
    "13 a message becomes a call": stream(text(0, HELLO)[:-1], done(0, BAD), end(BAD)),
    "13 a call becomes a message": stream(added(0, BAD), done(0, HELLO), end(HELLO)),
    "13 a server-run search becomes the client's": stream(
        added(0, {"type": "tool_search_call", "id": "t", "execution": "server", "arguments": {}}), done(0, BAD)
    ),
    "14 interleaved": stream(
        added(0, GOOD | EMPTY),
        added(1, function_call(DELETE, {}, at=1) | EMPTY),
        arguments(1, "fc_1", "{}"),
        arguments(0, "fc_0", GOOD["arguments"]),
        done(1, function_call(DELETE, {}, at=1)),
        done(0, GOOD),
        end(GOOD, function_call(DELETE, {}, at=1)),
    ),
    "14 two at one index": stream(call(0, GOOD), call(0, function_call(DELETE, {}, at=1)), end()),
    "14 two open at one index": stream(
        added(0, GOOD | EMPTY), added(0, function_call(DELETE, {}, at=1) | EMPTY), arguments(0, "fc_0", "{}"), end()
    ),
    "14 arguments of a second item at an index": stream(
        added(0, GOOD | EMPTY), done(0, GOOD | {"arguments": ""}), added(0, function_call(WEATHER, "", at=1)),
        arguments(0, "fc_0", '{"city":"evil"}'), end(),
    ),
    "14 gap": stream(call(7, BAD), end(BAD)),
    "14 arguments for two calls": stream(
        added(0, GOOD | EMPTY),
        added(1, function_call(WEATHER, {}, at=1) | EMPTY),
        arguments(0, "fc_1", '{"city":"evil"}'),
        done(0, GOOD),
        done(1, function_call(WEATHER, {}, at=1)),
        end(),
    ),
    "14 arguments after the end of the call": stream(
        added(0, GOOD | EMPTY), done(0, GOOD | {"arguments": ""}), arguments(0, "fc_0", '{"city":"evil"}'), end()
    ),
    "14 arguments before the call": stream(arguments(0, "fc_0", '{"city":"evil"}'), call(0, GOOD), end(evil())),
    "16 same index, new id": stream(done(0, GOOD), done(0, function_call(DELETE, {}, at=1)), end()),
    "16 same ids, another name": stream(call(0, GOOD), call(1, BAD), end()),
    "17 no index": stream(added(..., BAD), done(..., BAD), end(BAD)),
    "17 index a string": stream(added("0", BAD), done("0", BAD), end(BAD)),
    "17 index a boolean": stream(added(True, BAD), done(True, BAD), end(BAD)),
    "17 index negative": stream(added(-1, BAD), done(-1, BAD), end(BAD)),
    "17 index beyond floats": stream(added(10**400, BAD), done(10**400, BAD), end(BAD)),
    "17 no ids": stream(call(0, BAD | {"id": "", "call_id": ""}), end(without(BAD, "id", "call_id"))),
    "17 type missing": stream(done(0, without(BAD, "type"))),
    "17 type a list": stream(done(0, BAD | {"type": ["function_call"]}), end(BAD | {"type": ["function_call"]})),
    "17 name a list": stream(done(0, BAD | {"name": [DELETE]})),
    "19 a chat's call": stream(chunk(DELETE, "{}"), end()),
    "19 a chat's call in pieces": stream(chunk(DELETE[:4], ""), chunk(DELETE[4:], "{}"), end()),
    "19 a chat's call beside a response": stream({**end(HELLO)[-1], **chunk(DELETE, "{}"), "type": "response.completed"}),
    "19 a chat's call beside an item": stream({**done(0, HELLO), **chunk(DELETE, "{}")}),
    "19 custom": stream(
        done(0, {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": DELETE, "input": "x"})
    ),
    "19 custom input": stream(
        added(0, {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": "sh", "input": ""}),
        arguments(0, "c", "ev", "custom_tool_call_input"),
        arguments(0, "c", "il", "custom_tool_call_input"),
        done(0, {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": "sh", "input": "evil"}),
        end(),
    ),
    "19 mcp_call": stream(done(0, {"type": "mcp_call", "id": "m", "server_label": "fs", "name": DELETE, "arguments": "{}"})),
    "19 approval": stream(
        done(0, {"type": "mcp_approval_request", "id": "m", "server_label": "fs", "name": DELETE, "arguments": "{}"}),
        end({"type": "mcp_approval_request", "id": "m", "server_label": "fs", "name": DELETE, "arguments": "{}"}),
    ),
    "19 native": stream(call(0, NATIVE), end(NATIVE)),
    "20 escapes": raw("", U),
    "20 escapes in upper case": raw("", U.replace("u005f", "u005F")),
    "20 odd white space": raw("", json.dumps(json.loads(text_of_call()), separators=(" ,\t", "  :\t"))),
    "20 another key order": raw("", json.dumps({"item": BAD, "type": "response.output_item.done"})),
    "21 name twice": raw("", text_of_call().replace('"name": ', f'"name": "{WEATHER}", "name": ')),
    "21 name twice, denied first": raw("", text_of_call().replace('"name": ', '"name": ').replace(f'"{DELETE}"', f'"{DELETE}", "name": "{WEATHER}"')),
    "21 type twice": raw("", text_of_call().replace('"type": "function_call"', '"type": "function_call", "type": "message"')),
    "21 item twice": raw("", text_of_call()[:-1] + ', "item": {"type": "message", "id": "m", "content": []}}'),
    "21 output twice": raw("", json.dumps({"type": "response.completed", "response": {"id": "r", "output": [BAD]}})[:-2] + ', "output": []}}'),
    "21 response twice": raw("", json.dumps({"type": "response.completed", "response": {"id": "r", "output": [BAD]}})[:-1] + ', "response": {"id": "r"}}'),
    "21 event type twice": raw("", text_of_call()[:-1] + ', "type": "response.output_text.delta", "delta": ""}'),
    "21 arguments twice in a delta": stream(
        added(0, GOOD | EMPTY),
        raw("", '{"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_0", "delta": "{\\"city\\":\\"evil\\"}", "delta": ""}'),
        done(0, GOOD | {"arguments": ""}),
        end(),
    ),
    "22 keys in another case": raw("", text_of_call().replace('"item"', '"Item"').replace('"name"', '"NAME"')),
    "22 item in two cases": raw("", text_of_call()[:-1] + ', "Item": {"type": "message"}}'),
    "22 item in two cases, call last": raw("", '{"item": {"type": "message"}, "type": "response.output_item.done", "Item": ' + json.dumps(BAD) + "}"),
    "22 output in two cases": raw("", json.dumps({"type": "response.completed", "response": {"output": [], "Output": [BAD]}})),
    "23 a huge integer beside": raw("", text_of_call()[:-1] + ', "n": ' + "9" * 5000 + "}"),
    "23 NaN beside": raw("", text_of_call()[:-1] + ', "n": NaN}'),
    "23 a lone surrogate beside": raw("", text_of_call()[:-1] + ', "n": "\\ud800"}'),
    "23 deep nesting in arguments": stream(done(0, BAD | {"arguments": "[" * 900 + "]" * 900})),
    "23 invalid UTF-8 beside": raw("", text_of_call().encode()[:-1] + b', "n": "\xff\xfe"}'),
}  # fmt: skip


def ran_denied(found: Executed) -> Executed:
    return [
        (space, name, value)
        for space, name, value in found
        if DELETE in name or (not isinstance(value, tuple) and "evil" in json.dumps(value))
    ]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("fail_closed", [False, True])
def test_no_client_is_handed_a_denied_call(row: str, *, fail_closed: bool) -> None:
    for pieces in chunkings(ROWS[row], row):
        result = run(pieces, denying(DELETE), fail_closed=fail_closed)
        handed = {client: bad for client, found in everyone(result.out).items() if (bad := ran_denied(found))}
        assert not handed, result.out.decode("utf-8", "replace")
        assert result.judged or result.faults, "nothing tells of it"


def test_each_row_is_an_attack_that_some_client_falls_for_without_us() -> None:
    harmless = {
        row for row, sent in ROWS.items() if not any(ran_denied(found) for found in everyone(sent).values())
    }
    assert not harmless


def test_what_only_other_parsers_read_is_cut_whatever_fail_closed_says() -> None:
    deep = raw("", text_of_call()[:-1] + ', "n": ' + "[" * 5000 + "]" * 5000 + "}")
    result = run(stream() + deep, denying(DELETE))
    assert result.ended
    assert DELETE.encode() not in result.out
    assert [(f.cause, f.cut) for f in result.faults] == [("unreadable_json", True)]


# ---- hostile soups ----

INDICES: list[Any] = [0, 1, 2, -1, "1", True, None, 1.0, ...]
PARTS = ["", "{}", '{"a":', "1}", '{"a":1}', '{"a":"evil"}', '"evil"}', ',"b":"evil"}']


def items() -> list[Item]:
    good = function_call("get", {"a": 1}, at=1)
    custom = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "sh", "input": "ls"}
    mcp = {
        "type": "mcp_call",
        "id": "m_1",
        "server_label": "s",
        "name": "get",
        "arguments": '{"a":1}',
        "output": "x",
    }
    return [
        good,
        good | {"id": "fc_2", "call_id": "call_2"},
        good | {"arguments": ""},
        good | {"arguments": "{}"},
        good | {"arguments": '{"a":"evil"}'},
        good | {"arguments": {"a": "evil"}},
        good | {"name": ""},
        good | {"name": [DELETE]},
        good | {"name": DELETE},
        good | {"namespace": "mcp__fs"},
        good | {"type": ["function_call"]},
        good | {"type": "Function_Call "},
        good | {"id": "", "call_id": ""},
        without(good, "id", "call_id"),
        without(good, "type"),
        custom,
        custom | {"input": ""},
        custom | {"input": "evil"},
        custom | {"name": DELETE},
        mcp,
        mcp | {"name": DELETE},
        mcp | {"server_label": "other"},
        NATIVE,
        NATIVE | {"action": {"command": ["ls"]}},
        {"type": "function_call_output", "id": "o", "call_id": "call_1", "output": "x"},
        {"type": "tool_search_call", "id": "ts_1", "execution": "server", "arguments": {"q": "x"}},
        {"type": "web_search_call", "id": "ws_1", "action": {"query": "x"}},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        message_item("tool", at=1),
    ]


def pool() -> Iterator[bytes]:
    listed = items()
    for number, item in enumerate(listed):
        for index in (0, 1):
            yield frame(added(index, item), number)
            yield frame(done(index, item), number)
        yield frame(end(item)[0], number)
        yield frame(end(listed[0], item, status="incomplete")[0], number)
        yield frame({"type": "response.surprise", "output_index": 0, "item": item}, number)
        yield frame({"type": "response.surprise", "item": item}, None)
    for index in INDICES:
        for item in (listed[0], listed[8], listed[4]):
            yield frame(added(index, item | EMPTY), 3)
            yield frame(done(index, item), 4)
        for item_id in ("fc_1", "fc_2", "", "nobody", "ct_1"):
            for kind in ("function_call_arguments", "custom_tool_call_input", "mcp_call_arguments"):
                for part in PARTS[:: 1 if kind.startswith("function") else 3]:
                    yield frame(arguments(index, item_id, part, kind), 5)
    for item_id in ("fc_1", "fc_2"):
        yield frame(arguments_done(0, item_id, '{"a":1}'), 6)
        yield frame(arguments_done(0, item_id, '{"a":"evil"}'), 6)
        yield frame(arguments_done(1, item_id, "{}", name=DELETE), 6)
        yield frame(arguments_done(1, item_id, "{}", name="get"), 6)
    for status in ("completed", "incomplete", "failed", "queued", "in_progress"):
        yield frame(end(status=status)[0], 7)
    yield frame(begin(listed[0])[0], 0)
    yield frame(begin(listed[8])[0], 0)
    yield frame(begin(listed[2])[1], 0)
    yield frame(end(listed[0], output_text="hi")[0], 7)
    yield frame(end(listed[8], listed[0], output_text="hi")[0], 7)
    yield frame({"type": "error", "code": None, "message": "x"}, 8)
    yield frame({"type": "error", "error": {"message": "x"}}, 8)
    yield from (
        sent
        for name, sent in ROWS.items()
        if name[:2] in {"10", "12", "20", "21", "22", "23"} and len(sent) < 2000
    )
    yield raw(
        "response.function_call_arguments.delta",
        '{"type":"response.web_search_call.searching","output_index":0,"delta":"{\\"a\\":\\"evil\\"}"}',
    )
    yield raw(
        "response.output_item.done",
        json.dumps({"type": "response.output_item.added", "output_index": 0, "item": listed[0]}),
    )
    yield raw(
        "response.output_item.added",
        json.dumps({"type": "response.output_item.done", "output_index": 0, "item": listed[0]}),
    )
    yield raw("", '{"type":"response.output_text.delta","output_index":0,"delta":"tool","sequence_number":9}')
    yield raw("", '{"type":"response.output_item.added",')
    yield DONE
    yield b": comment\n\n"
    yield b"\n"


POOL = list(pool())
WHOLE = [
    b"".join(frame(event, at) for at, event in enumerate(call(index, item)))
    for index in (0, 1, 2)
    for item in (function_call("get", {"a": index}, at=index), BAD, evil("get", at=index))
]  # fmt: skip
SOUP = st.lists(st.sampled_from(POOL) | st.sampled_from(WHOLE), max_size=12)
HEAD = numbered(begin())


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from([b"", HEAD]), SOUP, st.booleans())
def test_no_model_of_a_client_executes_what_was_not_allowed(
    head: bytes, soup: list[bytes], fail_closed: bool
) -> None:
    result = run(head + b"".join(soup), denying(DELETE), fail_closed=fail_closed)
    assert_only_allowed(models(result.out), result.judged)


@settings(max_examples=200, deadline=None)
@given(SOUP, CUTS)
@pytest.mark.filterwarnings("ignore:Pydantic")
def test_the_sdk_executes_nothing_that_was_not_allowed(soup: list[bytes], cuts: list[int]) -> None:
    result = run(cut_at(HEAD + b"".join(soup), cuts), denying(DELETE))
    assert_only_allowed(by_sdks(result.out), result.judged)


@settings(max_examples=300, deadline=None)
@given(SOUP, CUTS, st.booleans())
def test_hostile_answers_come_out_the_same_however_they_are_cut(
    soup: list[bytes], cuts: list[int], fail_closed: bool
) -> None:
    data = HEAD + b"".join(soup)
    whole = run(data, denying(DELETE), fail_closed=fail_closed)
    assert run(cut_at(data, cuts), denying(DELETE), fail_closed=fail_closed) == whole


class Thorough(ResponsesMachine):
    """A machine that lets nothing pass unread."""

    idle = False  # type: ignore[assignment]


HARMLESS = [
    *(frame(event, 3) for event in text(9, message_item("some text", at=5), pieces=3)),
    frame(
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 9,
            "item_id": "rs_1",
            "delta": "hm",
        },
        4,
    ),
    raw("", '{"type":"keepalive","sequence_number":5}'),
    raw("", '{"type":"response.output_text.delta","output_index":9,"delta":"\\u00fc\\ud83d"}'),
    raw("", '{"type":"response.refusal.delta","output_index":9,"delta":"no","delta":"yes"}'),
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(POOL) | st.sampled_from(WHOLE) | st.sampled_from(HARMLESS), max_size=12))
def test_what_passes_unread_would_have_passed_read(soup: list[bytes]) -> None:
    read = Inspector(
        lambda: Thorough(denying(DELETE), Limits()), limits=Limits(), fail_closed=False,
        error_frame=DIALECT.error_frame, fast=False,
    )  # fmt: skip
    thorough = run(b"".join(soup), denying(), stream=read)
    quick = run(b"".join(soup), denying(DELETE))
    assert (quick.out, quick.judged, quick.ended) == (thorough.out, thorough.judged, thorough.ended)


# ---- well-formed answers, through the SDK ----

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=8), max_size=3)
OUTPUT = st.lists(st.tuples(st.sampled_from([WEATHER, DELETE, "text"]), ARGUMENTS), max_size=4)
Output = list[tuple[str, dict[str, Any]]]


def by_name(call: Any) -> Any:
    return denying(DELETE)(call.__class__(name=call.name))


def made_of(output: Output) -> tuple[list[Event], list[Item]]:
    events: list[Event] = []
    made: list[Item] = []
    for at, (name, value) in enumerate(output):
        item = message_item("hello", at=at) if name == "text" else function_call(name, value, at=at)
        events += text(at, item) if name == "text" else call(at, item)
        made.append(item)
    return events, made


def assert_handed(found: Any, output: Output) -> None:
    """The response holds the allowed calls with equal arguments, the texts, and notices where denied calls stood."""
    assert [(i.name, json.loads(i.arguments)) for i in found.output if i.type == "function_call"] == [
        entry for entry in output if entry[0] == WEATHER
    ]
    said = {"text": "hello", DELETE: notice(DELETE)}
    assert found.output_text == "".join(said.get(name, "") for name, _ in output)
    assert [i.type for i in found.output] == [
        "function_call" if name == WEATHER else "message" for name, _ in output
    ]


@settings(max_examples=60, deadline=None)
@given(OUTPUT, CUTS, CUTS)
def test_the_sdk_hands_out_allowed_calls_intact_and_denied_ones_never(
    output: Output, cuts: list[int], more_cuts: list[int]
) -> None:
    events, made = made_of(output)
    sent = numbered([*begin(), *events, *end(*made)])
    result = run(cut_at(sent, cuts), by_name)
    with sdk(cut_at(result.out, more_cuts)).responses.stream(**ASK) as streamed:
        numbers, said = [], ""
        for event in streamed:
            numbers.append(event.sequence_number)
            said += event.delta if event.type == "response.output_text.delta" else ""
        final = streamed.get_final_response()
    assert numbers == list(range(len(numbers)))
    assert said == final.output_text
    assert_handed(final, output)


@settings(max_examples=60, deadline=None)
@given(OUTPUT, CUTS)
def test_the_sdk_reads_a_whole_answer_and_a_stored_one_in_the_same_way(
    output: Output, cuts: list[int]
) -> None:
    data = json.dumps(response(*made_of(output)[1], status="completed")).encode()
    step = DIALECT.body(data, by_name, fail_closed=True)
    pieces = cut_at(step.out, cuts)
    assert_handed(sdk(pieces, "application/json").responses.create(**ASK), output)
    assert_handed(sdk(pieces, "application/json").responses.retrieve("resp_1"), output)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"incomplete", "provider_error"}])
def test_the_sdks_own_stream_helper_reads_every_rewritten_transcript_to_its_end(name: str) -> None:
    sent = load(name)
    denied = (DELETE, "delete", "local_shell")
    for pieces in chunkings(sent, name):
        result = run(pieces, denying(*denied))
        with sdk([result.out]).responses.stream(**ASK) as streamed:
            final = streamed.get_final_response()
        assert not ran_denied(by_sdks(result.out)["the SDK's stream"])
        assert final.output_text.count("blocked by policy") == len(result.blocked)
        assert [item.type for item in final.output if item.type in {"mcp_call", "local_shell_call"}] == []
    assert bool(result.blocked) == (name not in {"text_only", "provider_tools", "single_call"})


def test_the_sdk_raises_our_error_where_a_stream_is_cut() -> None:
    cut = run(stream(added(0, BAD)), denying(DELETE)).out
    with pytest.raises(openai.APIError, match="incomplete_call"):
        list(sdk([cut]).responses.create(**ASK, stream=True))
    with (
        pytest.raises(openai.APIError, match="incomplete_call"),
        sdk([cut]).responses.stream(**ASK) as streamed,
    ):
        streamed.get_final_response()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 502, 503, 504])
def test_the_sdk_reads_our_errors(status: int) -> None:
    client = sdk([DIALECT.error(status, "blocked by agentsh-net")], "application/json", status)
    with pytest.raises(openai.APIStatusError, match="blocked by agentsh-net") as raised:
        client.responses.create(**ASK)
    assert raised.value.status_code == status


# ---- what must arrive, whatever stands beside it ----

OTHER = function_call(WEATHER, CITY, at=1)
ALLOWED: dict[str, bytes] = {
    "plain": stream(call(0, GOOD), end(GOOD)),
    "done alone": stream(done(0, GOOD), end(GOOD)),
    "last output alone": stream(end(GOOD)),
    "no last output": stream(call(0, GOOD)),
    "added and last output": stream(added(0, GOOD), end(GOOD)),
    "incomplete": stream(call(0, GOOD), end(GOOD, status="incomplete")),
    "no deltas": stream(added(0, GOOD | EMPTY), done(0, GOOD), end(GOOD)),
    "behind a denied one": stream(call(0, BAD), call(1, OTHER), end(BAD, OTHER)),
    "before a denied one": stream(call(0, GOOD), call(1, function_call(DELETE, {}, at=1)), end(GOOD)),
    "interleaved with a denied one": stream(
        added(0, BAD | EMPTY), added(1, OTHER | EMPTY), arguments(0, "fc_0", "{}"),
        arguments(1, "fc_1", OTHER["arguments"]), done(1, OTHER), done(0, BAD | {"arguments": "{}"}), end(BAD, OTHER),
    ),
    "output in another order": stream(call(0, GOOD), call(1, BAD | {"id": "b", "call_id": "b"}), end(BAD | {"id": "b", "call_id": "b"}, GOOD)),
    "escaped": stream(call(0, GOOD), end(GOOD)).replace(b"weather", b"we\\u0061ther"),
    "no event names": b"".join(
        line for line in stream(call(0, GOOD), end(GOOD)).splitlines(keepends=True) if not line.startswith(b"event")
    ),
    "arguments spaced otherwise": stream(call(0, GOOD), end(GOOD | {"arguments": '{"city":"Bern"}'})),
}  # fmt: skip


@pytest.mark.parametrize("row", ALLOWED)
@pytest.mark.parametrize("fail_closed", [False, True])
def test_an_allowed_call_is_handed_on_with_equal_arguments_to_every_client_that_would_have_had_it(
    row: str, *, fail_closed: bool
) -> None:
    sent = ALLOWED[row]
    meant = [("", WEATHER, CITY)]
    before = {client: [r for r in found if r in meant] for client, found in everyone(sent).items()}
    assert any(before.values())
    for pieces in chunkings(sent, row):
        result = run(pieces, denying(DELETE), fail_closed=fail_closed)
        after = {client: [r for r in found if r in meant] for client, found in everyone(result.out).items()}
        assert after == before, row
        assert not result.faults


# ---- whole answers ----

WHOLE_ROWS: dict[str, Item] = {
    "plain": BAD,
    "namespace": BAD | {"namespace": "mcp__fs"},
    "custom": {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": DELETE, "input": "x"},
    "custom input": {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": "sh", "input": "evil"},
    "mcp_call": {"type": "mcp_call", "id": "m", "server_label": "fs", "name": DELETE, "arguments": "{}"},
    "approval": {
        "type": "mcp_approval_request",
        "id": "m",
        "server_label": "fs",
        "name": DELETE,
        "arguments": "{}",
    },
    "native": NATIVE,
    "arguments as an object": BAD | {"arguments": {"a": 1}},
    "no ids": without(BAD, "id", "call_id"),
}


@pytest.mark.parametrize("row", WHOLE_ROWS)
@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "in_progress"])
def test_no_whole_answer_hands_a_denied_call_to_the_sdk(row: str, status: str) -> None:
    sent = json.dumps(response(HELLO, WHOLE_ROWS[row], OTHER, status=status)).encode()
    step = DIALECT.body(sent, denying(DELETE), fail_closed=True)
    answer = sdk([step.out], "application/json").responses.create(**ASK)
    assert [item.type for item in answer.output] == ["message", "message", "function_call"]
    assert "blocked by policy: denied" in answer.output_text
    assert json.dumps(OTHER).encode() in step.out


@pytest.mark.parametrize(
    "disguise",
    [
        lambda b: b.replace(b"function_call", b"f\\u0075nction\\u005fcall"),
        lambda b: b.replace(b'"output"', b'"Output"'),
        lambda b: b.replace(b'"output":', b'"output":null,"output":'),
        lambda b: b.replace(b'"name":', b'"name":"ls","name":'),
        lambda b: b.replace(b'"type": "function_call"', b'"type": "function_call", "type": "message"'),
        lambda b: b.replace(b"delete", b"del\\u0065te"),
        lambda b: b[:-1] + b',"output":[]}',
        lambda b: b[:-1] + b',"OUTPUT":[]}',
        lambda b: b'{"response":' + b + b"}",
        lambda b: b'{"data":[' + b + b"]}",
    ],
)
def test_no_disguise_in_a_whole_answer_hides_a_denied_call(disguise: Callable[[bytes], bytes]) -> None:
    sent = disguise(json.dumps(response(BAD)).encode())
    step = DIALECT.body(sent, denying(DELETE), fail_closed=False)
    assert any(j.verdict.blocked for j in step.judged) or step.faults
    for client in MODELS.values():
        assert not ran_denied(client(raw("", step.out)))
    assert b'"function_call"' not in step.out
