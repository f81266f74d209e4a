"""The rows of the bypass catalogue that are about streams hold in every dialect, and README.md's table names a real test for each of the 35.

The oracle reads with the standard library alone (tests/fuzz/readers.py): the last key wins, the first, and in any case.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transcripts.anthropic as messages
from attacks import catalogue
from fuzz import streams
from fuzz.grammar import ALLOWED, DENIED
from fuzz.streams import WIDE, WIRES, came, judge
from transcripts import bedrock, gemini, interactions, ollama, openai_chat, openai_responses

from agentsh_net.core.framing import event_stream
from agentsh_net.core.framing.event_stream import EventStreamDecoder

TABLE = Path(__file__).parent / "README.md"
ARGUMENTS = {"city": "Bern", "big": 2**60}


def responses(*names: str, reason: Any = "completed") -> bytes:
    items = [openai_responses.function_call(name, ARGUMENTS, at=at) for at, name in enumerate(names)]
    events: list[Any] = openai_responses.begin()
    for at, item in enumerate(items):
        events += openai_responses.call(at, item)
    return openai_responses.numbered([*events, *openai_responses.end(*items, status=reason)])


def anthropic(*names: str, reason: Any = "tool_use") -> bytes:
    calls = (messages.call(at, name, ARGUMENTS) for at, name in enumerate(names))
    return messages.begin() + b"".join(calls) + messages.end(reason)


def chat(*names: str, reason: Any = "tool_calls") -> bytes:
    calls = (openai_chat.call(at, name, ARGUMENTS) for at, name in enumerate(names))
    return b"".join(calls) + openai_chat.end(reason) + openai_chat.DONE


def converse(*names: str, reason: Any = "tool_use") -> bytes:
    calls = (bedrock.call(at, name, ARGUMENTS) for at, name in enumerate(names))
    return bedrock.begin() + b"".join(calls) + bedrock.end(reason)


MAKE: dict[str, Callable[..., bytes]] = {
    "anthropic": anthropic,
    "chat": chat,
    "responses": responses,
    "gemini": lambda *names, reason="STOP": gemini.events(
        gemini.answer(*(gemini.part(name, ARGUMENTS) for name in names), finish=reason)
    ),
    "interactions": lambda *names, reason="requires_action": (
        interactions.begin()
        + b"".join(
            interactions.streamed(at, interactions.call(name, ARGUMENTS, call_id=f"c{at}"))
            for at, name in enumerate(names)
        )
        + interactions.end(status=reason)
    ),
    "ollama": lambda *names, reason="stop": ollama.lines(
        ollama.answer("", *(ollama.entry(name, ARGUMENTS) for name in names)),
        ollama.answer("", done=True, done_reason=reason),
    ),
    "converse": converse,
    "invoke": lambda *names, reason="tool_use": bedrock.wrapped(anthropic(*names, reason=reason)),
}
BINARY = ("converse", "invoke")


def texts(name: str, stream: bytes, change: Callable[[str], str]) -> bytes:
    """Return a stream whose JSON texts are changed, wherever its framing has them."""
    if name not in BINARY:
        return change(stream.decode()).encode("utf-8", "surrogatepass")
    out = b""
    for frame in EventStreamDecoder(1 << 24).feed(stream):
        payload = (frame.data or b"").decode()
        if name == "invoke":
            inner = json.loads(payload)
            packed = change(b64decode(inner["bytes"]).decode()).encode("utf-8", "surrogatepass")
            payload = json.dumps(inner | {"bytes": b64encode(packed).decode()})
        else:
            payload = change(payload)
        out += event_stream.with_payload(frame.raw, payload.encode("utf-8", "surrogatepass"))
    return out


def assert_stopped(name: str, stream: bytes, *, told: bool = True) -> None:
    """No reader is handed a denied call, however the stream comes and whatever fail_closed says; and something tells of it."""
    wire = WIRES[name]
    for fail_closed in (False, True):
        for seed in (0, 1, 5):
            pieces = streams.cut(stream, seed)
            result = came(wire, WIDE, pieces, fail_closed=fail_closed)
            assert not wire.denied_in(result.out)
            assert not told or result.blocked or result.faults


def escaped(word: str) -> str:
    return f"\\u{ord(word[0]):04x}{word[1:]}"


# What a hostile provider makes of the text of an honest stream with a denied call in it.
CHANGES: dict[str, Callable[[str], str]] = {
    "2 another case": lambda text: text.replace(DENIED, DENIED.upper()),
    "2 a trailing space": lambda text: text.replace(DENIED, DENIED + " "),
    "2 a zero-width space": lambda text: text.replace(DENIED, DENIED.replace("drop", "dr\u200bop")),
    "2 full width": lambda text: text.replace(DENIED, DENIED.replace("drop", "\uff44rop")),
    "20 the name escaped": lambda text: text.replace(DENIED, DENIED.replace("_", "\\u005f")),
    "20 keys escaped": lambda text: re.sub(r'"(\w+)":', lambda m: f'"{escaped(m[1])}":', text),
    "20 odd white space": lambda text: text.replace('":', '" \t:\t ').replace("{", "{ "),
    "21 the name twice, denied last": lambda text: text.replace(f'"{DENIED}"', f'"{ALLOWED}","name":"{DENIED}"'),
    "21 the name twice, denied first": lambda text: text.replace(f'"{DENIED}"', f'"{DENIED}","name":"{ALLOWED}"'),
    "22 Name": lambda text: text.replace('"name"', '"Name"'),
    "22 both spellings": lambda text: text.replace('"name"', f'"NAME":"{ALLOWED}","name"'),
    "23 a huge integer": lambda text: text.replace(f"{2**60}", "9" * 5000),
    "23 NaN": lambda text: text.replace(f"{2**60}", "NaN").replace('"name"', '"n":NaN,"name"'),
    "23 a lone surrogate": lambda text: text.replace('"name"', '"n":"\\ud800","name"'),
    "23 deep nesting": lambda text: text.replace('"name"', f'"n":{"[" * 150}{"]" * 150},"name"'),
    "23 deeper than some parsers go": lambda text: text.replace('"name"', f'"n":{"[" * 900}{"]" * 900},"name"'),
}  # fmt: skip

REASONS = (
    "end_turn",
    "max_tokens",
    "pause_turn",
    "refusal",
    "stop",
    "length",
    "content_filter",
    "SAFETY",
    "",
)


@pytest.mark.parametrize("name", WIRES)
def test_the_readers_are_handed_a_denied_call_that_nobody_stops(name: str) -> None:
    assert WIRES[name].denied_in(MAKE[name](DENIED))
    assert not WIRES[name].denied_in(MAKE[name](ALLOWED))


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("change", CHANGES)
def test_no_spelling_of_names_keys_and_values_hides_a_denied_call(name: str, change: str) -> None:
    assert_stopped(name, texts(name, MAKE[name](DENIED), CHANGES[change]))


@pytest.mark.parametrize("name", WIRES)
def test_no_reason_to_end_lets_a_denied_call_pass(name: str) -> None:  # row 5
    for reason in REASONS:
        assert_stopped(name, MAKE[name](DENIED, reason=reason))


@pytest.mark.parametrize("name", WIRES)
def test_no_end_of_the_stream_lets_a_denied_call_pass(name: str) -> None:  # rows 6 and 7
    stream = MAKE[name](DENIED)
    for end in range(0, len(stream), 7):
        result = came(WIRES[name], WIDE, [stream[:end]], fail_closed=False)
        assert not WIRES[name].denied_in(result.out)


@pytest.mark.parametrize("name", WIRES)
def test_nothing_behind_the_end_lets_a_denied_call_pass(name: str) -> None:  # rows 8 and 9
    end = b"data: [DONE]\n\n" if name in {"anthropic", "chat", "responses", "gemini", "interactions"} else b""
    assert_stopped(name, MAKE[name](ALLOWED) + end + MAKE[name](DENIED))
    assert_stopped(name, end + MAKE[name](DENIED) + end)


# Rows 14 and 16: two answers, whose indices and ids are the same.
@pytest.mark.parametrize("name", WIRES)
def test_calls_at_one_index_are_told_apart(name: str) -> None:
    assert_stopped(name, MAKE[name](ALLOWED, DENIED))
    assert_stopped(name, MAKE[name](ALLOWED) + MAKE[name](DENIED, ALLOWED))


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("odd", ["null", '"0"', "true", "-1", "1.0", "[]", "1e400"])
def test_no_odd_index_lets_a_denied_call_pass(name: str, odd: str) -> None:  # row 17
    keys = '"(?:index|output_index|contentBlockIndex)": ?'
    assert_stopped(
        name, texts(name, MAKE[name](DENIED), lambda text: re.sub(f"({keys})0", rf"\g<1>{odd}", text))
    )


@pytest.mark.parametrize("name", WIRES)
def test_no_line_ends_and_comments_hide_a_denied_call(name: str) -> None:  # row 10, where there are lines
    stream = MAKE[name](DENIED)
    if name in BINARY:
        assert_stopped(name, stream)
        return
    for end in (b"\r\n", b"\r"):
        if name != "ollama" or end == b"\r\n":
            assert_stopped(name, stream.replace(b"\r\n", b"\n").replace(b"\n", end))
    if name != "ollama":
        assert_stopped(name, b"\xef\xbb\xbf: hello\n\n" + stream.replace(b"data: ", b":\nid: 4\ndata:"))


@pytest.mark.parametrize("name", ["anthropic", "chat", "responses", "gemini", "interactions"])
@pytest.mark.parametrize("line", [b"data: ", b"event: "])
def test_no_mark_before_a_line_hides_a_denied_call_from_clients_that_drop_it(name: str, line: bytes) -> None:
    stream = MAKE[name](DENIED)
    marked = stream.replace(line, b"\xef\xbb\xbf" + line)
    assert WIRES[name].denied_in(marked)
    for where in range(1, stream.count(line) + 1):
        head, *rest = stream.split(line)
        pieces = (line if at != where else b"\xef\xbb\xbf" + line for at in range(1, len(rest) + 1))
        one = head + b"".join(mark + piece for mark, piece in zip(pieces, rest, strict=True))
        assert_stopped(name, one)
    assert_stopped(name, b": \n\n" + marked)


# Row 20.
@pytest.mark.parametrize("name", [name for name in WIRES if name not in BINARY])
@pytest.mark.parametrize(
    ("before", "after"), [("\u00a0", ""), ("\u2003", "\u3000"), ("", " more"), ("", " ]")]
)
def test_no_client_that_trims_or_stops_early_is_handed_a_denied_call(
    name: str, before: str, after: str
) -> None:
    stream = MAKE[name](DENIED).decode()
    odd = re.sub(r"(?m)^(data: |)(\{.*\})(\r?)$", rf"\g<1>{before}\g<2>{after}\g<3>", stream).encode()
    for fail_closed in (False, True):
        out = came(WIRES[name], WIDE, streams.cut(odd, 5), fail_closed=fail_closed).out.decode()
        read = out.replace(f"}}{after}", "}").replace(f"{before}{{", "{")  # what such clients make of it
        assert not WIRES[name].denied_in(read.encode())
    assert WIRES[name].denied_in(odd.decode().replace(f"}}{after}", "}").replace(f"{before}{{", "{").encode())


@pytest.mark.parametrize("name", WIRES)
def test_an_allowed_call_leaves_to_the_byte_however_it_is_cut(name: str) -> None:  # row 11
    stream = MAKE[name](ALLOWED, ALLOWED)
    for seed in range(12):
        result = came(WIRES[name], WIDE, streams.cut(stream, seed), fail_closed=True)
        assert (result.out, result.faults) == (stream, [])
        assert {action for _, action, _ in result.judged} == {"allow"}


def test_the_judge_here_denies_by_name_and_by_argument() -> None:
    call = streams.ToolCall("mcp__fs__drop")
    assert judge(call).blocked
    assert judge(streams.ToolCall(ALLOWED, input={"a": "evil"})).blocked
    assert not judge(streams.ToolCall(ALLOWED, input={"a": 1})).blocked


# ---- the table ----


def test_the_table_has_all_35_rows() -> None:
    assert sorted(catalogue.rows(TABLE)) == catalogue.ALL


@pytest.mark.parametrize("row", catalogue.ALL)
def test_every_test_that_a_row_names_is_there(row: int) -> None:
    assert catalogue.missing(catalogue.rows(TABLE)[row]) == []
