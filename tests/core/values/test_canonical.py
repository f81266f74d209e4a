"""Equal JSON has one canonical text whatever its spelling, as RFC 8785 writes it."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import canonical


@pytest.mark.parametrize(
    ("bits", "text"),
    [  # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555555", "333333333.3333333"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_ecmascript_does(bits, text):
    assert canonical.text(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1e2", "100"),
        ("9007199254740993", "9007199254740992"),  # past 2^53 a JavaScript proxy writes the neighbour
        ('"\\u00e9"', '"é"'),
        ('"\\ud83d\\ude00"', '"😀"'),
        ('{"b": 1, "a": 2}', '{"a":2,"b":1}'),
        ("-0.0", "0"),
        ('"\\/"', '"/"'),
    ],
)
def test_spellings_of_one_value_are_one(one, other):
    assert canonical.text(json.loads(one)) == canonical.text(json.loads(other))


def test_keys_are_sorted_by_utf16_code_units():
    # RFC 8785, section 3.2.3: by code points the emoji would stand behind the Hebrew letter
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical.text(value))) == [
        "\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33",
    ]  # fmt: skip


def test_strings_are_escaped_as_little_as_can_be():
    assert canonical.text('\u20ac$\u000f\nA\'B"\\\\"/') == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'


def test_a_lone_surrogate_has_a_form_of_its_own():
    assert canonical.text("\ud800") == '"\\ud800"'
    assert canonical.hash_of("\ud800") != canonical.hash_of("\udc00")
    assert canonical.text("\ud83d" + "\ude00") == '"😀"'


def test_what_the_rfc_leaves_out_is_still_told_apart():
    values = [
        float("nan"),
        float("inf"),
        float("-inf"),
        10**400,
        10**400 + 1,
        -(10**400),
        None,
        "NaN",
        "Infinity",
    ]
    assert len({canonical.text(v) for v in values}) == len(values)


def test_depth_is_bounded():
    value = []
    for _ in range(canonical.MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(ProtocolError, match="deeper"):
        canonical.text(value)


@pytest.mark.parametrize("value", [{1: 2}, {"a": object()}, b"x", {"a": {1}}])
def test_what_is_not_json_is_refused(value):
    with pytest.raises(TypeError):
        canonical.text(value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**53), 2**53)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_the_text_reads_back_as_the_value(value):
    assert json.loads(canonical.text(value), parse_int=float) == value  # numbers are doubles


@given(json_values)
def test_canonical_text_is_canonical_already(value):
    text = canonical.text(value)
    assert canonical.text(json.loads(text)) == text


def test_the_hash_names_its_algorithm():
    assert canonical.hash_of({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
