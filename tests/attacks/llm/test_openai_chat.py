"""No shape of a chat completion hands a denied call to any client: the official SDK's two readers, and seven homely ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from transcripts.key_readings import any_case, first_wins
from transcripts.openai_chat import (
    DELETE,
    DONE,
    NAMES,
    WEATHER,
    call,
    calls,
    chunk,
    completion,
    cut_at,
    denying,
    end,
    entry,
    every_chunking,
    knowing,
    load,
    raw,
    run,
    text,
)

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_chat.dialect import DIALECT
from agentsh_net.core.framing.sse import Decoder

# What a client would run: (name, arguments as text).
Run = tuple[str, str]
CITY = '{"city":"Bern"}'


# The official SDK, over a transport without sockets.


class Pieces(httpx2.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


def sdk(pieces: list[bytes], kind: str = "text/event-stream") -> openai.OpenAI:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": kind}, stream=Pieces(pieces))

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="k", base_url="http://llm.test/v1", max_retries=0, http_client=client)


# How SDKs and the applications on them fail on what no provider should send; a client that fails runs what it has.
FAILURES = (
    openai.OpenAIError, ValueError, TypeError, RuntimeError, LookupError, AttributeError, AssertionError,
)  # fmt: skip


def sdk_by_index(data: bytes) -> list[Run]:
    """Return what an application runs that adds up the SDK's chunks by index, as the SDK's documentation shows."""
    found: dict[Any, list[str]] = {}
    try:
        for part in sdk([data]).chat.completions.create(model="m", messages=[], stream=True):
            for choice in part.choices:
                legacy = choice.delta.function_call
                if legacy is not None:
                    kept = found.setdefault((choice.index, "legacy"), ["", ""])
                    kept[0] += legacy.name or ""
                    kept[1] += legacy.arguments or ""
                for piece in choice.delta.tool_calls or []:
                    kept = found.setdefault((choice.index, piece.index), ["", ""])
                    kept[0] += (piece.function.name if piece.function else None) or ""
                    kept[1] += (piece.function.arguments if piece.function else None) or ""
    except FAILURES:
        pass
    return [(name, args) for name, args in found.values()]


def sdk_accumulator(data: bytes) -> list[Run]:
    """Return what the SDK's own accumulator, the one behind `.stream()`, has at the end or where it fails."""
    state = ChatCompletionStreamState()
    try:
        for part in sdk([data]).chat.completions.create(model="m", messages=[], stream=True):
            state.handle_chunk(part)
        choices = state.get_final_completion().choices
    except FAILURES:
        try:
            choices = state.current_completion_snapshot.choices
        except FAILURES:
            return []
    found: list[Run] = []
    for choice in choices:
        for made in choice.message.tool_calls or []:
            made_of = getattr(made, "function", None) or getattr(made, "custom", None)
            found.append((getattr(made_of, "name", "") or "", getattr(made_of, "arguments", "") or ""))
        legacy = choice.message.function_call
        if legacy is not None:
            found.append((getattr(legacy, "name", "") or "", getattr(legacy, "arguments", "") or ""))
    return found


# Homely clients: how they cut events, how they read JSON, how they add fragments up.


def events(data: bytes) -> list[bytes]:
    decoder = Decoder(1 << 22)
    frames = [*decoder.feed(data), decoder.finish()]
    return [frame.data for frame in frames if frame is not None and frame.data is not None]


def lines(data: bytes) -> list[bytes]:
    found = (line for line in data.decode("utf-8", "replace").splitlines() if line.startswith("data:"))
    return [line[5:].strip().encode() for line in found]


def fragments(
    datas: list[bytes], hook: Any = None, *, past_done: bool = False, parse_int: Any = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield (choice index, entry) of everything that looks like a call, legacy and custom ones too."""
    for data in datas:
        if data.strip() == b"[DONE]" and not past_done:
            return
        try:
            value = json.loads(data, object_pairs_hook=hook, parse_int=parse_int)
            choices = value["choices"]
        except (ValueError, TypeError, LookupError):
            continue
        for choice in choices if isinstance(choices, list) else []:
            for carrier in (choice.get("delta"), choice.get("message")):
                if not isinstance(carrier, dict):
                    continue
                made = carrier.get("tool_calls") or []
                for item in [made] if isinstance(made, dict) else made:
                    if isinstance(item, dict):
                        yield choice.get("index"), item
                legacy = carrier.get("function_call") or []
                for item in [legacy] if isinstance(legacy, dict) else legacy:
                    yield choice.get("index"), {"index": "legacy", "function": item}


def told(item: dict[str, Any], kinds: tuple[str, ...] = ("function", "custom")) -> tuple[str, str]:
    """Return name and arguments: of the first of the kinds, of an unknown kind, or of a bare entry."""
    named = (inner for inner in item.values() if isinstance(inner, dict) and "name" in inner)
    inner = next((item[kind] for kind in kinds if item.get(kind)), None) or next(named, item)
    name, args = inner.get("name") or "", inner.get("arguments") or inner.get("input") or ""
    return str(name), args if isinstance(args, str) else json.dumps(args)


def added_up(
    found: Iterator[tuple[Any, dict[str, Any]]],
    *,
    key: Callable[[Any, dict[str, Any], int], Any],
    name: Callable[[str, str], str],
    kinds: tuple[str, ...] = ("function", "custom"),
) -> list[Run]:
    kept: dict[Any, list[str]] = {}
    for number, (choice, item) in enumerate(found):
        call_name, args = told(item, kinds)
        made = kept.setdefault(key(choice, item, number), ["", ""])
        made[0], made[1] = name(made[0], call_name), made[1] + args
    return [(made[0], made[1]) for made in kept.values()]


def by_index(choice: Any, item: dict[str, Any], _: int) -> Any:
    return choice, str(item.get("index"))


def joined(old: str, new: str) -> str:
    return old + new


def last(old: str, new: str) -> str:
    return new or old


def first(old: str, new: str) -> str:
    return old or new


def by_last_id() -> Callable[[Any, dict[str, Any], int], Any]:
    """Return a key under which every new id is a new call, and what has none belongs to the one before."""
    current: list[Any] = [None]

    def key(choice: Any, item: dict[str, Any], _: int) -> Any:
        if item.get("index") == "legacy":
            return choice, "legacy"
        current[0] = item.get("id") or current[0]
        return choice, current[0]

    return key


CLIENTS: dict[str, Callable[[bytes], list[Run]]] = {
    "SDK chunks by index": sdk_by_index,
    "SDK accumulator": sdk_accumulator,
    "names joined, past [DONE]": lambda d: added_up(
        fragments(events(d), past_done=True), key=by_index, name=joined
    ),
    "last name wins": lambda d: added_up(fragments(events(d)), key=by_index, name=last),
    "first name wins": lambda d: added_up(fragments(events(d)), key=by_index, name=first),
    "new id, new call": lambda d: added_up(fragments(events(d)), key=by_last_id(), name=joined),
    "every entry a call": lambda d: added_up(fragments(events(d)), key=lambda c, i, n: n, name=joined),
    "custom before function": lambda d: added_up(
        fragments(events(d)), key=by_index, name=joined, kinds=("custom", "function")
    ),
    "any choice is the choice": lambda d: added_up(
        fragments(events(d)), key=lambda _, item, __: str(item.get("index")), name=joined
    ),
    "numbers as JavaScript has them": lambda d: added_up(
        fragments(events(d), parse_int=float), key=by_index, name=joined
    ),
    "line by line": lambda d: added_up(fragments(lines(d), past_done=True), key=by_index, name=joined),
    "first key wins": lambda d: added_up(fragments(events(d), first_wins), key=by_index, name=joined),
    "keys in any case": lambda d: added_up(fragments(events(d), any_case), key=by_index, name=joined),
}


def judges() -> dict[str, Judge]:
    return {"denylist": denying(DELETE, "delete"), "fail closed": knowing(WEATHER, "ls")}


def chunkings(data: bytes, seed: str) -> Iterator[list[bytes]]:
    rng = random.Random(seed)
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    for _ in range(4):
        yield cut_at(data, (rng.randrange(len(data)) for _ in range(rng.randrange(1, 12))))


# Rows of the catalogue. Each stream tries to have `mcp__fs__delete` (or `delete`) run.

U = DELETE.replace("_", "\\u005f")
DENIED_CHUNK = calls(entry(name=DELETE, args="{}", call_id="c"), finish="tool_calls")
JSON_CALL = DENIED_CHUNK[6:-2].decode()
HEAD, _, TAIL = DELETE.partition("__fs")
TAIL = "__fs" + TAIL

ROWS: dict[str, bytes] = {
    # 2 and 15: names
    "15 name split": calls(entry(name=HEAD, args="", call_id="c"))
    + calls(entry(name=TAIL, args="{}"))
    + end(),
    "15 name split in one chunk": calls(
        entry(name=HEAD, call_id="c"), entry(name=TAIL, args="{}"), finish="tool_calls"
    ),
    "15 name after arguments": calls(entry(args="{}", call_id="c")) + calls(entry(name=DELETE)) + end(),
    "15 empty name first": calls(entry(name="", args="", call_id="c"))
    + calls(entry(name=DELETE, args="{}"))
    + end(),
    "15 name sent twice": calls(entry(name=DELETE, args="", call_id="c"))
    + calls(entry(name=DELETE, args="{}"))
    + end(),
    "15 harmless name, then the other": calls(entry(name="ls", args="{}", call_id="c"))
    + calls(entry(name=DELETE))
    + end(),
    "15 the other, then harmless": calls(entry(name=DELETE, args="{}", call_id="c"))
    + calls(entry(name="ls"))
    + end(),
    "15 only the joined name is denied": calls(entry(name="del", args="{}", call_id="c"))
    + calls(entry(name="ete"))
    + end(),
    # 5, 6, 7: reasons and ends
    **{
        f"5 reason {reason}": call(0, DELETE) + end(reason) + DONE
        for reason in ("stop", "length", "content_filter", "function_call", "weird", 7, {"a": 1})
    },
    "5 no reason": call(0, DELETE) + DONE,
    "6 call and end in one chunk": DENIED_CHUNK + DONE,
    "6 text in the same chunk": chunk(
        {"content": "x", "tool_calls": [entry(name=DELETE, call_id="c")]}, "stop"
    ),
    "7 end of stream inside the call": call(0, DELETE),
    "7 end of stream without a blank line": DENIED_CHUNK[:-2],
    "7 provider's error inside the call": call(0, DELETE) + raw('{"error":{"message":"overloaded"}}') + DONE,
    "7 error and call in one chunk": raw(JSON_CALL[:-1] + ',"error":{"message":"x"}}') + DONE,
    # 8, 9: after the end
    "8 a call after its choice ended": text("a") + end("stop") + call(0, DELETE) + end() + DONE,
    "8 a name that grows after the end": calls(entry(name="del", args="{}", call_id="c"))
    + end()
    + calls(entry(name="ete"))
    + end()
    + DONE,
    "9 a call after [DONE]": text("a") + end("stop") + DONE + DENIED_CHUNK + DONE,
    "9 a call after [DONE], alone": DONE + DENIED_CHUNK + DONE,
    "9 [DONE] inside a call": calls(entry(name="del", args="", call_id="c"))
    + DONE
    + calls(entry(name="ete"))
    + end(),
    # 10: SSE
    "10 CRLF": (call(0, DELETE) + end()).replace(b"\n", b"\r\n"),
    "10 CR": (call(0, DELETE) + end()).replace(b"\n", b"\r"),
    "10 no space, BOM": b"\xef\xbb\xbf" + (call(0, DELETE) + end()).replace(b"data: ", b"data:"),
    "10 comments and ids between": b": hi\n" + DENIED_CHUNK.replace(b"data:", b"id: 4\nretry: 3\n: x\ndata:"),
    "10 an event name": b"event: thread.x\n" + DENIED_CHUNK,
    "10 one document over several data lines": b"data: "
    + json.dumps(json.loads(JSON_CALL), indent=1).replace("\n", "\ndata: ").encode()
    + b"\n\n",
    "10 two documents in one event": raw("{}")[:-1] + DENIED_CHUNK,
    "10 a document per line of a list": raw("[")[:-1] + DENIED_CHUNK[:-1] + raw("]"),
    "10 two calls in one event": calls(entry(1, name="ls", call_id="b"))[:-1] + DENIED_CHUNK,
    "10 a document behind U+2028 in a comment": f": \u2028data: {JSON_CALL}\n\n".encode(),
    "10 a document behind NEL in an id": f"id: \x85data: {JSON_CALL}\ndata: {{}}\n\n".encode(),
    # 12: places
    "12 message for delta": chunk({"tool_calls": [entry(name=DELETE, call_id="c")]}, carrier="message")
    + end()
    + DONE,
    "12 name split over messages": chunk({"tool_calls": [entry(name="del", call_id="c")]}, carrier="message")
    + chunk({"tool_calls": [entry(name="ete", args="{}")]}, carrier="message")
    + end(),
    "12 delta, then message": calls(entry(name="del", call_id="c"))
    + chunk({"tool_calls": [entry(name="ete", args="{}")]}, carrier="message")
    + end(),
    "12 tool_calls as an object": chunk({"tool_calls": entry(name=DELETE, call_id="c")}, "tool_calls"),
    "12 a bare entry": chunk(
        {"tool_calls": [{"index": 0, "id": "c", "name": DELETE, "arguments": "{}"}]}, "stop"
    ),
    # 14, 16, 17: indices and ids
    "14 interleaved": calls(entry(0, name="ls", call_id="a"))
    + calls(entry(1, name=DELETE, call_id="b"))
    + calls(entry(0, args="{}"), entry(1, args="{}"))
    + end(),
    "14 gap": calls(
        entry(0, name="ls", args="{}", call_id="a"), entry(7, name=DELETE, args="{}", call_id="b")
    )
    + end(),
    "14 out of order": calls(entry(1, name="del", call_id="a"), entry(0, name="ete", call_id="b")) + end(),
    "14 negative index": calls(entry(0, name="del", call_id="a")) + calls(entry(-1, name="ete")) + end(),
    "16 same index, new id": calls(entry(0, name="ls", args="{}", call_id="a"))
    + calls(entry(0, name=DELETE, args="{}", call_id="b"))
    + end(),
    "16 same index, new id, joined name": calls(entry(0, name="del", call_id="a"))
    + calls(entry(0, name="ete", call_id="b"))
    + end(),
    "16 new id first, name later": calls(entry(0, name="ls", args="{}", call_id="a"))
    + calls(entry(0, call_id="b"))
    + calls(entry(0, name=DELETE))
    + end(),
    "17 no index": calls(entry(..., name=DELETE, args="{}", call_id="a")) + end(),
    "17 no index, joined name": calls(entry(..., name="del", call_id="a"))
    + calls(entry(..., name="ete"))
    + end(),
    "17 index and none": calls(entry(0, name="del", call_id="a")) + calls(entry(..., name="ete")) + end(),
    "17 no id": calls(entry(0, name=DELETE, args="{}")) + end(),
    "17 id a number": calls(entry(0, name=DELETE, args="{}", call_id=5)) + end(),
    "17 no type, no function": chunk({"tool_calls": [{"index": 0, "name": DELETE}]}, "tool_calls"),
    "17 type a list": calls(entry(0, name=DELETE, call_id="a", type=["function"])) + end(),
    **{
        f"17 index {odd!r}": calls(entry(0, name="del", call_id="a")) + calls(entry(odd, name="ete")) + end()
        for odd in ("0", 0.0, False, None, [], 1e300, "x")
    },
    "17 huge index": calls(entry(10**400, name=DELETE, call_id="a")) + end(),
    "17 choice without index": raw(JSON_CALL.replace('"index": 0, "delta"', '"delta"')) + DONE,
    # 18: n > 1
    "18 only choice 1": text("a")
    + text("b", choice=1)
    + end("stop")
    + call(0, DELETE, choice=1)
    + end(choice=1)
    + DONE,
    "18 choice 0 ends while choice 1 calls": call(0, "ls")
    + call(0, DELETE, choice=1)
    + end()
    + text("x")
    + end("stop", choice=1)
    + DONE,
    "18 name split over choices": calls(entry(name="del", args="", call_id="a"))
    + calls(entry(name="ete", args="{}"), choice=1)
    + end()
    + end(choice=1)
    + DONE,
    # 19: kinds
    "19 function_call": chunk({"function_call": {"name": DELETE, "arguments": ""}})
    + chunk({"function_call": {"arguments": "{}"}})
    + end("function_call"),
    "19 function_call, split name": chunk({"function_call": {"name": "del"}})
    + chunk({"function_call": {"name": "ete", "arguments": "{}"}})
    + end("stop"),
    "19 function_call beside tool_calls": chunk(
        {"tool_calls": [entry(name="ls", call_id="a")], "function_call": {"name": DELETE, "arguments": "{}"}},
        "stop",
    ),
    "19 custom": chunk(
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": DELETE}}]}
    )
    + chunk({"tool_calls": [{"index": 0, "custom": {"input": "x"}}]})
    + end(),
    "19 an unknown kind": chunk(
        {"tool_calls": [{"index": 0, "id": "a", "type": "new", "new": {"name": DELETE}}]}, "x"
    ),
    "19 two kinds in one entry": calls(entry(name="ls", call_id="a", custom={"name": DELETE, "input": ""}))
    + end(),
    "19 function_call in a list": chunk({"function_call": [{"name": DELETE, "arguments": "{}"}]}, "stop"),
    # 20, 21, 22, 23: JSON
    "20 escapes in the name": raw(JSON_CALL.replace(DELETE, U)),
    "20 escapes in the keys": raw(
        JSON_CALL.replace("tool_calls", "\\u0074ool\\u005Fcalls").replace("function", "\\u0066unction")
    ),
    "20 odd spacing": raw(JSON_CALL.replace(" ", "\t \t").replace("{", "{ ")),
    "20 any key order": raw(
        '{"choices":[{"finish_reason":"stop","delta":{"tool_calls":[{"function":{"arguments":"{}","name":"@"},'
        '"id":"a","index":0}]},"index":0}]}'.replace("@", DELETE)
    ),
    "21 name twice": raw(JSON_CALL.replace('"name": ', '"name": "ls", "name": ')),
    "21 name twice, other order": raw(
        JSON_CALL.replace(f'"name": "{DELETE}"', f'"name": "{DELETE}", "name": "ls"')
    ),
    "21 tool_calls twice": raw(JSON_CALL.replace('"tool_calls": ', '"tool_calls": null, "tool_calls": ')),
    "21 tool_calls twice, hidden": raw(JSON_CALL.replace("}]}, ", '}], "tool_calls": null}, ')),
    "21 delta twice, hidden": raw(JSON_CALL.replace(', "finish', ', "delta": {}, "finish')),
    "21 choices twice, hidden": raw(JSON_CALL[:-1] + ', "choices": []}'),
    "21 index twice": calls(entry(0, name="del", call_id="a"))
    + raw(JSON_CALL.replace(DELETE, "ete").replace('[{"index": 0,', '[{"index": 0, "index": 1,'))
    + end(),
    "22 Tool_Calls": raw(JSON_CALL.replace("tool_calls", "Tool_Calls")),
    "22 TOOL_CALLS, Function, NAME": raw(
        JSON_CALL.replace("tool_calls", "TOOL_CALLS")
        .replace('"function": {', '"Function": {')
        .replace("name", "NAME")
    ),
    "22 Choices and Delta": raw(JSON_CALL.replace("choices", "Choices").replace("delta", "Delta")),
    "22 long s": raw(JSON_CALL.replace("choices", "choice\u017f").replace("tool_calls", "tool_call\u017f")),
    "22 both spellings": raw(JSON_CALL.replace('"tool_calls": ', '"Tool_Calls": [], "tool_calls": ')),
    "22 both spellings, hidden": raw(JSON_CALL.replace("}]}, ", '}], "Tool_Calls": []}, ')),
    "23 NaN and huge numbers": raw(JSON_CALL.replace("1700000000", "1e999").replace("{", '{"n": NaN, ', 1)),
    "23 a huge integer": raw(JSON_CALL.replace("1700000000", "9" * 5000)),
    "23 lone surrogate beside": raw(JSON_CALL.replace("gpt-test", "\\ud800")),
    "23 nested arguments": calls(entry(name=DELETE, args="[" * 3000, call_id="a")) + end(),
    "23 invalid UTF-8 beside": DENIED_CHUNK.replace(b"gpt-test", b"\xff\xfe"),
}


def ran_denied(runs: list[Run]) -> list[Run]:
    return [(name, args) for name, args in runs if name in {DELETE, "delete"}]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("policy", ["denylist", "fail closed"])
def test_no_client_is_handed_a_denied_call(row: str, policy: str) -> None:
    for pieces in chunkings(ROWS[row], row):
        result = run(pieces, judges()[policy], fail_closed=policy == "fail closed")
        handed = {
            client: found for client, read in CLIENTS.items() if (found := ran_denied(read(result.out)))
        }
        assert not handed, result.out.decode("utf-8", "replace")
        assert result.judged or result.faults, "nothing tells of it"


def test_each_row_is_an_attack_that_some_client_falls_for_without_us() -> None:
    harmless = {
        row for row, sent in ROWS.items() if not any(ran_denied(read(sent)) for read in CLIENTS.values())
    }
    assert not harmless


# What must arrive.

ALLOWED: dict[str, bytes] = {
    "plain": call(0, WEATHER, {"city": "Bern"}) + end() + DONE,
    "whole in one chunk": calls(entry(name=WEATHER, args=CITY, call_id="c"), finish="tool_calls") + DONE,
    "reason stop": calls(entry(name=WEATHER, args=CITY, call_id="c")) + end("stop") + DONE,
    "no reason": calls(entry(name=WEATHER, args=CITY, call_id="c")) + DONE,
    "split name": calls(entry(name="mcp__wea", args="", call_id="c"))
    + calls(entry(name="ther__get", args=CITY))
    + end()
    + DONE,
    "beside a denied one": call(0, DELETE) + call(1, WEATHER, {"city": "Bern"}) + end() + DONE,
    "before a denied one": call(0, WEATHER, {"city": "Bern"}) + call(1, DELETE) + end() + DONE,
    "between denied ones": call(0, DELETE)
    + call(1, WEATHER, {"city": "Bern"})
    + call(2, DELETE)
    + end()
    + DONE,
    "interleaved with a denied one": calls(
        entry(0, name=DELETE, call_id="a"), entry(1, name=WEATHER, call_id="b")
    )
    + calls(entry(0, args="{}"), entry(1, args='{"city":'))
    + calls(entry(1, args='"Bern"}'))
    + end()
    + DONE,
    "after a denied one of the same index": calls(entry(0, name=DELETE, args="{}", call_id="a"))
    + calls(entry(0, name=WEATHER, args=CITY, call_id="b"))
    + end()
    + DONE,
    "in the other choice": call(0, DELETE)
    + call(0, WEATHER, {"city": "Bern"}, choice=1)
    + end()
    + end(choice=1)
    + DONE,
    "index from one": call(1, WEATHER, {"city": "Bern"}) + end() + DONE,
    "escaped": calls(entry(name=WEATHER, args=CITY, call_id="c")).replace(b"weather", b"we\\u0061ther")
    + end()
    + DONE,
    "beside a denied function_call": chunk(
        {"tool_calls": [entry(name=WEATHER, args=CITY, call_id="a")], "function_call": {"name": DELETE}},
        "stop",
    )
    + DONE,
}


def made(runs: list[Run]) -> list[tuple[str, Any]]:
    return [(name, json.loads(args)) for name, args in runs if name]


# The SDK's accumulator cannot read an index from one, with or without us.
READERS = [
    (row, client)
    for row in ALLOWED
    for client in ("SDK chunks by index", "SDK accumulator", "names joined, past [DONE]")
    if (row, client) != ("index from one", "SDK accumulator")
]


@pytest.mark.parametrize(("row", "client"), READERS)
@pytest.mark.parametrize("policy", ["denylist", "fail closed"])
def test_an_allowed_call_is_handed_on_with_equal_arguments(row: str, policy: str, client: str) -> None:
    read = CLIENTS[client]
    for pieces in chunkings(ALLOWED[row], row):
        result = run(pieces, judges()[policy], fail_closed=policy == "fail closed")
        assert made(read(result.out)) == [(WEATHER, {"city": "Bern"})]
        assert not result.faults


@pytest.mark.parametrize("name", [name for name in NAMES if name != "no_index"])
def test_the_sdks_own_stream_helper_reads_every_rewritten_transcript_to_its_end(name: str) -> None:
    sent = load(name)
    for pieces in chunkings(sent, name):
        with sdk([run(pieces, denying(DELETE)).out]).chat.completions.stream(
            model="m", messages=[]
        ) as stream:
            final = stream.get_final_completion()
        for choice in final.choices:
            names = [c.function.name for c in choice.message.tool_calls or []]
            assert names == [WEATHER] * (name in {"two_calls", "same_index"})
            assert choice.message.function_call is None
            assert choice.finish_reason == ("tool_calls" if names else "stop")
        if name != "text_only":
            said = f"[agentsh] Tool '{DELETE}' blocked by policy: denied"
            assert said in (final.choices[-1].message.content or "")
        assert final.model
        assert final.created


def test_the_sdk_raises_our_error_where_a_stream_is_cut() -> None:
    out = run(call(0, DELETE), denying(DELETE)).out
    with pytest.raises(openai.APIError, match="unfinished_call"):
        list(sdk([out]).chat.completions.create(model="m", messages=[], stream=True))


# Whole answers, by the SDK.

WHOLE_ROWS = {
    "plain": {
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": DELETE, "arguments": "{}"}}]
    },
    "custom": {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": DELETE, "input": "x"}}]},
    "legacy": {"function_call": {"name": DELETE, "arguments": "{}"}},
    "bare": {"tool_calls": [{"id": "a", "type": "function", "name": DELETE, "arguments": "{}"}]},
    "arguments as an object": {
        "tool_calls": [{"id": "a", "function": {"name": DELETE, "arguments": {"a": 1}}}]
    },
}


@pytest.mark.parametrize("row", WHOLE_ROWS)
@pytest.mark.parametrize("reason", ["tool_calls", "stop", None])
def test_no_whole_answer_hands_a_denied_call_to_the_sdk(row: str, reason: str | None) -> None:
    sent = completion({"content": None, **WHOLE_ROWS[row]}, reason)
    assert whole(sent)[0]
    out = DIALECT.body(sent, denying(DELETE), fail_closed=True).out
    runs, content = whole(out)
    assert runs == []
    assert content == f"[agentsh] Tool '{DELETE}' blocked by policy: denied"


@pytest.mark.parametrize(
    "disguise",
    [
        lambda b: b.replace(b"tool_calls", b"\\u0074ool_calls"),
        lambda b: b.replace(b"tool_calls", b"Tool_Calls"),
        lambda b: b.replace(b'"tool_calls":', b'"tool_calls":null,"tool_calls":'),
        lambda b: b.replace(b'"name":', b'"name":"ls","name":'),
        lambda b: b.replace(b"delete", b"del\\u0065te"),
        lambda b: b[:-1] + b',"choices":[]}',
    ],
)
def test_no_disguise_in_a_whole_answer_hides_a_denied_call(disguise: Callable[[bytes], bytes]) -> None:
    sent = disguise(completion({"content": None, **WHOLE_ROWS["plain"]}))
    step = DIALECT.body(sent, denying(DELETE), fail_closed=False)
    assert any(j.verdict.blocked for j in step.judged)
    for hook in (None, first_wins, any_case):
        runs = added_up(fragments([step.out], hook), key=by_index, name=joined)
        assert not ran_denied(runs)


def test_an_allowed_call_of_a_whole_answer_is_handed_on_beside_a_denied_one() -> None:
    allowed = {"id": "w", "type": "function", "function": {"name": WEATHER, "arguments": CITY}}
    sent = completion({"content": None, "tool_calls": [*WHOLE_ROWS["plain"]["tool_calls"], allowed]})
    runs, content = whole(DIALECT.body(sent, denying(DELETE), fail_closed=True).out)
    assert runs == [(WEATHER, CITY)]
    assert content is not None
    assert DELETE in content


def whole(data: bytes) -> tuple[list[Run], str | None]:
    """Return what an application runs, and is told, by the SDK's answer."""
    answer = sdk([data], "application/json").chat.completions.create(model="m", messages=[])
    message = answer.choices[0].message
    found = [told(c.model_dump()) for c in message.tool_calls or []]
    if message.function_call is not None:
        found.append((message.function_call.name, message.function_call.arguments))
    return found, message.content


def test_every_offset_of_a_hostile_stream_is_as_safe_as_any_other() -> None:
    sent = ROWS["16 same index, new id"] + DONE
    for pieces in every_chunking(sent):
        assert not ran_denied(CLIENTS["new id, new call"](run(pieces, denying(DELETE)).out))


INDICES = st.sampled_from([0, 0, 0, 1, 1, 2, -1, "0", None, 1.0, ...])
ENTRIES = st.builds(
    entry,
    INDICES,
    name=st.sampled_from(["del", "ete", "delete", "ls", "x", "", None]),
    args=st.sampled_from([None, "{}", "{"]),
    call_id=st.sampled_from([None, "a", "b", "c"]),
)
SHAPES = st.one_of(
    st.builds(
        lambda entries, finish, choice, carrier: chunk(
            {"tool_calls": entries}, finish, choice=choice, carrier=carrier
        ),
        st.lists(ENTRIES, min_size=1, max_size=2),
        st.sampled_from([None, None, "tool_calls", "stop"]),
        st.sampled_from([0, 0, 1]),
        st.sampled_from(["delta", "delta", "message"]),
    ),
    st.builds(
        lambda name: chunk({"function_call": {"name": name, "arguments": "{}"}}),
        st.sampled_from(["del", "ete", "delete", "ls"]),
    ),
    st.builds(end, st.sampled_from(["stop", "tool_calls"]), choice=st.sampled_from([0, 1])),
    st.sampled_from([DONE, text("tool"), raw("{")]),
)


@pytest.mark.parametrize("policy", ["denylist", "fail closed"])
@given(pieces=st.lists(SHAPES, max_size=8))
@settings(max_examples=400, deadline=None)
def test_no_mixture_of_odd_shapes_hands_any_homely_client_a_denied_call(
    pieces: list[bytes], policy: str
) -> None:
    result = run(pieces, judges()[policy])
    for client, read in CLIENTS.items():
        if not client.startswith("SDK"):
            assert not ran_denied(read(result.out)), client
