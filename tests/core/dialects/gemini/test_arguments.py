"""Arguments in pieces come to what the model meant, and pieces that cannot be placed stay as they came."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.gemini.arguments import assembled


def test_arguments_that_came_whole_stay() -> None:
    assert assembled({"a": 1}, []) == ({"a": 1}, "")
    assert assembled(None, []) == (None, "")


def test_pieces_of_strings_are_joined_and_values_are_put_where_their_paths_lead() -> None:
    pieces = [
        {"jsonPath": "$.path", "stringValue": "/etc", "willContinue": True},
        {"jsonPath": "$.path", "stringValue": "/passwd"},
        {"json_path": "$.n", "number_value": 2.5},
        {"jsonPath": "$.deep.list[0]", "numberValue": 1},
        {"jsonPath": "$.deep.list[1]['a b']", "boolValue": True},
        {"jsonPath": '$["q"]', "nullValue": "NULL_VALUE"},
    ]
    assert assembled({}, pieces) == (
        {
            "path": "/etc/passwd",
            "n": 2.5,
            "deep": {"list": [1, {"a b": True}]},
            "q": None,
        },
        "",
    )
    assert assembled({"first": 1}, pieces[2:3]) == (
        {"first": 1, "n": 2.5},
        "they came both whole and in pieces",
    )


def test_strings_whose_pieces_take_turns_are_joined_each() -> None:
    pieces = [{"jsonPath": f"$.{key}", "stringValue": text} for text in "xyz" for key in "ab"]
    assert assembled(None, pieces) == ({"a": "xyz", "b": "xyz"}, "")


@pytest.mark.parametrize("first", [{"stringValue": "x"}, {"numberValue": 1}])
@pytest.mark.parametrize("then", [{"numberValue": 2}, {"boolValue": True}])
def test_two_values_for_one_place_are_judged_as_they_came(
    first: dict[str, object], then: dict[str, object]
) -> None:
    pieces = [{"jsonPath": "$.a", **first}, {"jsonPath": "$.a", **then}]
    assert assembled(None, pieces) == ({"args": None, "partialArgs": pieces}, "a piece of them has no place")


@pytest.mark.parametrize(
    "piece",
    [
        {"jsonPath": "$..a", "stringValue": "x"},
        {"jsonPath": "$.a[?@.b]", "stringValue": "x"},
        {"jsonPath": "$.a[1]", "numberValue": 1},
        {"jsonPath": "$.a[1].b", "numberValue": 1},
        {"jsonPath": "$", "stringValue": "x"},
        {"jsonPath": 5, "stringValue": "x"},
        {"jsonPath": "$.a", "stringValue": ["x"]},
        {"jsonPath": "$" + ".a" * 100, "stringValue": "x"},
        {"jsonPath": "$.s.t", "stringValue": "x"},
        {"jsonPath": "$.s", "stringValue": "x"},
        "no object",
    ],
)
def test_what_cannot_be_placed_is_judged_as_it_came(piece: object) -> None:
    value, doubt = assembled({"s": 1}, [piece])
    assert value == {"args": {"s": 1}, "partialArgs": [piece]}
    assert doubt
