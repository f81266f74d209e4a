"""Reading sees what lenient parsers see, and tells where they differ."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import MAX_DEPTH, DivergentError, read

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1]))
def test_reading_agrees_with_the_standard_library(value: Any, indent: int | None) -> None:
    reading = read(json.dumps(value, indent=indent).encode())
    assert reading.value == value
    assert not reading.duplicates
    assert not reading.flaws


def test_the_last_of_duplicate_keys_wins_and_is_named_at_any_depth() -> None:
    reading = read(b'{"a":{"name":"x","n\\u0061me":"y"},"b":1,"b":2}')
    assert reading.value == {"a": {"name": "y"}, "b": 2}
    assert reading.duplicates == {"name", "b"}


@pytest.mark.parametrize("space", ["", " ", "     "])
@pytest.mark.parametrize("text", ['{"a":1,"a":1', '{"a":{"b":[],"b":[]}', '{"a":1,"\\u0061":1'])
def test_a_key_that_stands_twice_is_found_however_the_text_is_padded(text: str, space: str) -> None:
    assert read(f"{text}{space}}}".encode()).duplicates


@given(st.integers(0, 40), st.integers(10, 24), st.sampled_from(["", "x", "1.", "-"]), st.integers(0, 40))
def test_an_integer_of_which_parsers_differ_survives_wherever_it_stands(
    before: int, digits: int, sign: str, behind: int
) -> None:
    number = "123456789" * 3
    text = f'{{"{"b" * before}":"{sign}{number[:digits]}","n":{number[:digits]},"{"c" * behind}e":0}}'
    assert read(text.encode()).value["n"] == int(number[:digits])


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("leaf", ["", "1", '"\\\\"'])
@pytest.mark.parametrize("before", ["", "[]," * 300])
def test_what_is_as_deep_as_may_be_is_read_and_what_is_deeper_is_not(
    opening: str, leaf: str, before: str
) -> None:
    def text(depth: int) -> bytes:
        closing = "]" if opening == "[" else "}"
        inner = leaf or "[]"
        deep = opening * (depth - (not leaf)) + inner + closing * (depth - (not leaf))
        return f"[{before}{deep}]".encode()

    assert read(text(MAX_DEPTH - 1)).value[-1]
    with pytest.raises(DivergentError):
        read(text(MAX_DEPTH))


def test_invalid_utf8_is_read_as_browsers_read_it_and_told() -> None:
    reading = read(b'{"a":"\xff"}')
    assert reading.value == {"a": "\ufffd"}
    assert reading.flaws == ("invalid_utf8",)


def test_nan_and_infinity_are_read_and_told() -> None:
    reading = read(b"[NaN,-Infinity]")
    assert math.isnan(reading.value[0])
    assert reading.flaws == ("not_a_number",)


def test_lone_surrogates_and_big_integers_survive() -> None:
    assert read(b'["\\ud800", 123456789012345678901234567890]').value == [
        "\ud800",
        123456789012345678901234567890,
    ]


def test_an_integer_of_a_million_digits_costs_nothing() -> None:
    assert read(b"[" + b"9" * 1_000_000 + b"]").value == ["9" * 1_000_000]


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[1,]", b"{'a':1}", b"\xef\xbb\xbf" * 2 + b"{}", b"[" * 100_000, b'{"a":1}x']
)
def test_what_no_parser_reads_is_a_protocol_error(text: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(text)


@pytest.mark.parametrize(
    "data",
    [b"[" * 5000 + b"]" * 5000, '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-32-be")],
    ids=["deep", "utf-16", "utf-32"],
)
def test_what_only_other_parsers_read_is_told_from_what_is_broken(data: bytes) -> None:
    with pytest.raises(DivergentError):
        read(data)


@pytest.mark.parametrize("odd", ["\v", "\f", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff\ufeff"])
@pytest.mark.parametrize("end", ["", "more", ' {"b": 2}', "]"])
def test_what_trimming_parsers_and_those_that_stop_early_read_of_a_text_is_told(odd: str, end: str) -> None:
    with pytest.raises(DivergentError) as caught:
        read(f'{odd}{{"a": "\u00fc"}}{end}{odd}'.encode())
    assert caught.value.leading == '{"a": "\u00fc"}'.encode()


@pytest.mark.parametrize("data", [b"1 2", b'"a" b', b'{"a":', b'{"a":1,}', b"<p>{}</p>", b"[DONE]"])
def test_what_begins_with_no_whole_container_is_merely_broken(data: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(data)
    assert not isinstance(caught.value, DivergentError)


@pytest.mark.parametrize("twice", ["", '"a":1,"a":1,'], ids=["fast", "slow"])
@pytest.mark.parametrize("opening", ["[", '{"b":'])
def test_the_bound_of_nesting_is_the_same_for_both_readers_and_any_stack(opening: str, twice: str) -> None:
    def text(depth: int) -> bytes:
        inner = opening * (depth - 1) + '"[{\\"["' + ("]" if opening == "[" else "}") * (depth - 1)
        return f'{{{twice}"c":{inner}}}'.encode()

    def at(stack: int, depth: int) -> Any:
        return at(stack - 1, depth) if stack else read(text(depth))

    for stack in (0, 400):
        assert at(stack, MAX_DEPTH).value["c"]
        with pytest.raises(DivergentError):
            at(stack, MAX_DEPTH + 1)


@pytest.mark.parametrize("unit", ['"', '\\"', '"\\', "[", '{"', '["\\"]'])
def test_a_megabyte_of_anything_is_read_or_refused_in_one_pass(unit: str) -> None:
    text = ("[" * MAX_DEPTH + '"' + unit * (1_000_000 // len(unit))).encode()
    began = time.process_time()
    with pytest.raises(ProtocolError):
        read(text)
    assert time.process_time() - began < 2  # what is quadratic takes minutes


def test_bare_control_characters_are_read_as_lenient_parsers_do() -> None:
    assert read(b'{"a":"x\ny\t"}').value == {"a": "x\ny\t"}


def test_one_byte_order_mark_is_skipped() -> None:
    data = b'\xef\xbb\xbf{"a":1, "b":2}'
    assert read(data).value == {"a": 1, "b": 2}
    with pytest.raises(ProtocolError):
        read(b"\xef\xbb\xbf" + data)


KEYS = st.sampled_from(['"a"', '"\\u0061"', '"a\\\\"', '"b\\""', '"\\":"', '"a" ', '"c:"', '"\u00e9"'])
TEXTS = st.recursive(
    st.sampled_from(["1", '"x\\": 1"', '"\\\\"', "1e3", "null", "12345678901234567890"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda items: "{" + ",".join(f"{k}:{v}" for k, v in items) + "}"
        )
    ),
    max_leaves=8,
)


@given(TEXTS)
def test_the_fast_reader_is_sure_only_where_no_key_stands_twice(text: str) -> None:
    twice = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(found[len(dict(found)) :])
        return dict(found)

    expected = json.loads(text, object_pairs_hook=pairs)
    reading = read(text.encode())
    assert reading.value == expected
    assert bool(reading.duplicates) is bool(twice)


@pytest.mark.parametrize("tries", [1, 2, 1 << 16])
@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["", "a", ",", "b" * 7])), max_size=8))
def test_a_number_past_what_all_parsers_tell_apart_is_found_wherever_it_stands(
    tries: int, runs: list[tuple[int, str]]
) -> None:
    text = "".join("7" * digits + behind for digits, behind in runs).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(strict_json, "_MAX_TRIES", tries)
        found = strict_json._has_long_number(text)
    assert found == (b"7" * 16 in text)
