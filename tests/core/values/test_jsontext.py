"""Whatever an agent writes into a value, it becomes one line of JSON and comes back."""

import json

import pytest

from agentsh_net.core.values import jsontext


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "é\n"]},
        {"n": 2**100},
        {"s": "lone \ud800 surrogate"},
        {"k\udfff": "\u202e"},
        [],
    ],
)
def test_a_value_survives_the_round_trip(value):
    text = jsontext.dumps(value)
    assert b"\n" not in text
    assert jsontext.loads(text) == value


def test_nesting_deeper_than_the_fast_encoder_allows_is_kept_whole():
    value: list = []
    for _ in range(400):
        value = [value]
    assert jsontext.loads(jsontext.dumps({"input": value})) == {"input": value}


def test_nesting_deeper_than_any_encoder_allows_keeps_the_rest_of_the_event():
    value: list = []
    for _ in range(100_000):
        value = [value]
    stored = jsontext.loads(jsontext.dumps({"tool_name": "x", "input": value}))
    assert stored == {"tool_name": "x", "input": "<list that JSON cannot hold>"}
    assert "cannot hold" in jsontext.loads(jsontext.dumps(value))


@pytest.mark.parametrize("unwritable", [10**5000, {"\ud800": float("nan")}], ids=["digits", "nan"])
def test_a_number_json_cannot_write_keeps_the_rest_of_the_event(unwritable):
    stored = jsontext.loads(jsontext.dumps({"pid": 7, "ratio": 0.5, "input": unwritable}))
    assert (stored["pid"], stored["ratio"]) == (7, 0.5)
    assert "cannot hold" in stored["input"]


def test_an_object_json_does_not_know_is_shown_as_text():
    assert jsontext.loads(jsontext.dumps({"addr": {1, 2} and object}))["addr"] == "<class 'object'>"


def test_reading_text_nested_without_end_is_a_value_error():
    with pytest.raises(ValueError, match="JSON"):
        jsontext.loads(b"[" * 200_000)


def test_output_is_json_for_everyone_else():
    assert json.loads(jsontext.dumps({"s": "\ud800"})) == {"s": "\ud800"}
