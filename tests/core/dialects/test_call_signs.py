"""Nothing that any parser reads a call out of is without a sign of one, however its letters are spelled, and escapes alone are none."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentsh_net.core import dialects
from agentsh_net.core.dialects.call_signs import LONGEST, Places, has_escaped_letters, may_hide_call, plain

MARKS = ("tool", "function_call", "functioncall")


def names_of(value: Any) -> list[str]:
    """Return every key and string of a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    return [name for part in value for name in names_of(part)] if isinstance(value, list) else []


def lenient(text: str) -> list[str]:
    """Return the strings of a text as the laxest of parsers has them: from any quote to any other, unknown escapes kept as they are."""

    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else match[0]

    inner = [re.sub(r"\\\\|\\u([0-9a-fA-F]{4})", character, part) for part in re.split(r'(?<!\\)"', text)]
    return [*inner, re.sub(r"\\u([0-9a-fA-F]{4})", character, text)]


@st.composite
def spellings(draw: st.DrawFn, words: st.SearchStrategy[str]) -> str:
    """A word in the inside of a JSON string, each character as itself, in another case, or as an escape in either case."""
    return "".join(
        draw(st.sampled_from([c, c, c.upper(), f"\\u{ord(c):04x}", f"\\u{ord(c):04X}", f"\\u{ord(c.upper()):04x}"]))
        if c.isalpha() or c == "_" else c
        for c in draw(words)
    )  # fmt: skip


AROUND = st.text(alphabet='\\u0074c6f5F"etolT \n\r\u2028\ud83d', max_size=12)
NAMES = st.sampled_from([*MARKS, "mcp_tool_use", "functionCall", "content", "name", "func", "tol", "u006f"])


@given(AROUND, spellings(NAMES), AROUND)
@example("\\\\", "\\u0074ool", "")
@example("\\", "\\u0074ool", "")
@example("", "\\u005cu0074ool", "")
@example("\\u006", "function_call", "")
@example("\\u00", "\\u0066unction_call", "")
@example("\ud83d\\ud83d", "\\u0054OOL", "")
@example("", "to\\u006Fl", "\\")
def test_no_spelling_of_a_mark_is_overlooked_by_any_reader(before: str, name: str, after: str) -> None:
    text = before + name + after
    found = any(mark in string.lower() for mark in MARKS for string in lenient(text))
    if found:
        assert may_hide_call(text.encode("utf-8", "surrogatepass"))


@given(
    st.recursive(
        st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(spellings(NAMES), inner, max_size=3),
        max_leaves=6,
    ),
    spellings(NAMES),
    st.booleans(),
)
def test_where_a_json_parser_finds_a_call_there_is_a_sign(value: Any, name: str, twice: bool) -> None:
    # Keys hold escapes already: written as they are, so that parsers read them.
    text = json.dumps(value).replace("\\\\u", "\\u")
    text = f'{{"{name}": {text}' + (f', "{name}": 1}}' if twice else "}")
    read = [
        json.loads(text, strict=False),
        json.loads(text, object_pairs_hook=lambda pairs: [list(pair) for pair in pairs]),
    ]
    with_surrogates = any(
        mark in found.lower() for value in read for found in names_of(value) for mark in MARKS
    )
    assert may_hide_call(text.encode("utf-8", "surrogatepass")) or not with_surrogates


@given(st.lists(AROUND | spellings(NAMES), max_size=6).map("".join))
def test_every_parser_reads_the_plain_text_as_it_reads_the_text_unless_that_is_a_sign(text: str) -> None:
    data = b'{"a": ["' + text.encode("utf-8", "surrogatepass") + b'"]}'
    if may_hide_call(data) and not may_hide_call(plain(data)):
        return  # that it was escaped is the sign
    for parse in (lambda d: json.loads(d.decode("utf-8", "surrogatepass"), strict=False), orjson.loads):
        outcomes = []
        for one in (data, plain(data)):
            try:
                outcomes.append(parse(one))
            except ValueError:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1] or may_hide_call(data)


@pytest.mark.parametrize(
    "text",
    [
        rb"caf\u00e9 \u003cb\u003e \u0027",
        rb"\u4e2d\u6587 \ud83d\ude00",
        rb"C:\\users \n \"",
        rb"A\u0041 \u007F",
        rb"\\u00e9",
        b"functional",
    ],
)
def test_what_honest_writers_escape_is_no_sign(text: bytes) -> None:
    assert not may_hide_call(text)


@pytest.mark.parametrize(
    "text",
    [
        rb"\\u0041",
        rb"\\\u0041",
        rb"\u005cu0041",
        rb"\u005Cu0041",
        rb"\u004",
        rb"\u004 1",
        b"\\u004\n1",
        rb"\u004\u0066",
        b"a\0",
    ],
)
def test_what_may_be_an_escape_or_not_is_a_sign(text: bytes) -> None:
    assert may_hide_call(text)


def test_a_sign_of_a_dialect_is_found_in_either_spelling() -> None:
    for text in (b"an error", b"an ERROR", rb"an \u0065rror", rb"an e\u0072\u0052OR"):
        assert may_hide_call(text, (b"error",))
        assert not may_hide_call(text)


def test_a_capital_u_begins_no_escape_and_hides_nothing() -> None:
    assert plain(rb"\U0074") == rb"\U0074"
    assert may_hide_call(rb"\U006function_call")


@given(st.lists(AROUND | spellings(NAMES) | st.just("x" * 50), max_size=30))
def test_places_are_those_of_the_lines_that_may_hide_a_call(lines: list[str]) -> None:
    texts = [
        line.replace("\n", "").replace("\r", "").encode("utf-8", "surrogatepass") + b"\n" for line in lines
    ]
    text, at, found = b"".join(texts), 0, []
    places = Places(text, (b"error",))
    ends = [sum(map(len, texts[: number + 1])) for number in range(len(texts))]
    while at < len(text):
        first = places.first(at)
        assert first >= at
        if first == len(text):
            break
        number = next(number for number, end in enumerate(ends) if first < end)
        found.append(number)
        at = ends[number]
    for number, line in enumerate(texts):
        if may_hide_call(line, (b"error",)):
            assert number in found
        elif number in found:
            assert b"funct" in plain(line).lower()  # looked at once more, by itself


def test_escapes_are_told_from_those_of_other_characters() -> None:
    assert has_escaped_letters(rb"\u0041")
    assert not has_escaped_letters(rb"\u0031 \n \u00e9")


def test_the_signs_of_dialects_are_short_and_in_lower_case() -> None:
    names = [module.name for module in pkgutil.walk_packages(dialects.__path__, f"{dialects.__name__}.")]
    signs = [getattr(importlib.import_module(name), "SIGNS", ()) for name in names]
    assert sum(map(bool, signs)) >= 2
    for sign in (sign for one in signs for sign in one):
        assert len(sign) <= LONGEST
        assert sign == sign.lower()
