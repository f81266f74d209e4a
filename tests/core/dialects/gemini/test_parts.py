"""Every function call that some parser may find in an answer is found, and nothing that no client runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.gemini import answer, candidate, part, piece, text

from agentsh_net.core.dialects.gemini.parts import Found, scan
from agentsh_net.core.values.strict_json import read


def found(value: Any) -> Found:
    return scan(read((value if isinstance(value, str) else json.dumps(value)).encode()))


def names(value: Any) -> list[tuple[str, str]]:
    return [(p.name, p.flaw) for p in found(value).pieces]


def test_a_call_is_found_with_its_place_its_arguments_and_its_signature() -> None:
    (call,) = found(answer(text("a"), part("f", {"x": 1}, thoughtSignature="sig"))).pieces
    assert call.part == ("candidates", 0, "content", "parts", 1)
    assert (call.name, call.args, call.signature, call.flaw, call.continues) == (
        "f",
        {"x": 1},
        "sig",
        "",
        False,
    )


def test_calls_of_every_candidate_are_found_and_told_apart_by_index() -> None:
    value = {"candidates": [candidate(part("a"), index=1), candidate(part("b"), part("c"))]}
    assert [(p.name, p.candidate) for p in found(value).pieces] == [("a", "1"), ("b", "1"), ("c", "1")]
    value["candidates"][1]["index"] = 0
    assert [p.candidate for p in found(value).pieces] == ["1", "0", "0"]


@pytest.mark.parametrize("wrap", [lambda a: [a], lambda a: {"response": a}, lambda a: [{"response": a}]])
def test_a_list_of_answers_and_what_code_assist_wraps_are_read_alike(wrap: Any) -> None:
    assert names(wrap(answer(part("f")))) == [("f", "")]


@pytest.mark.parametrize("key", ["function_call", "FunctionCall", "FUNCTION_CALL"])
def test_a_key_may_be_spelled_as_any_parser_takes_it(key: str) -> None:
    assert names({"Candidates": [{"content": {"PARTS": [{key: {"Name": "f"}}]}}]}) == [("f", "")]


def test_code_execution_and_the_providers_own_tools_are_no_calls() -> None:
    value = answer(
        {"executableCode": {"language": "PYTHON", "code": "functionCall()"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
        {"functionResponse": {"name": "f", "response": {"functionCall": {"name": "echoed"}}}},
        {"functionCall": None},
    )
    assert found(value) == Found()


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ({"functionCall": {"name": "f"}}, "outside"),
        ({"functionCalls": [{"name": "f"}]}, "no object"),
        ({"candidates": {"0": {"content": {"parts": [part("f")]}}}}, "outside"),
        ({"candidates": [{"content": [part("f")]}]}, "outside"),
        (answer({"functionCall": ["f"]}), "no object"),
        (answer({"functionCall": {"name": ["f"]}}), "not a string"),
        (answer({"functionCall": {"name": "f", "Name": "g"}}), "'name' stands twice"),
        (answer({"functionCall": {"name": "f"}, "function_call": {"name": "g"}}), "two calls in one part"),
    ],
)
def test_a_call_that_two_clients_read_differently_has_a_flaw(value: Any, flaw: str) -> None:
    pieces = found(value).pieces
    assert pieces
    assert all(flaw in piece.flaw for piece in pieces)


def test_a_key_that_stands_twice_makes_every_call_ambiguous_and_one_beside_them_hides_one() -> None:
    twice = '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","name":"g"}}]}}]}'
    assert found(twice).ambiguous
    assert found(twice).pieces[0].flaw == "the key 'name' stands twice"
    hiding = '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}],"candidates":[]}'
    assert (found(hiding).pieces, found(hiding).hidden) == ([], "the key 'candidates' stands twice")
    assert not found('{"usageMetadata":{"a":1,"a":2}}').ambiguous


def test_a_piece_of_a_call_says_that_it_goes_on() -> None:
    first, last = found(answer(piece("f"), piece(more=False, jsonPath="$.a", numberValue=1))).pieces
    assert (first.name, first.continues, first.partial) == ("f", True, ())
    assert (last.name, last.continues, last.partial) == ("", False, ({"jsonPath": "$.a", "numberValue": 1},))


def test_an_error_of_the_provider_is_told() -> None:
    assert found({"error": {"code": 503}}).error
    assert not found(answer(text("error"))).error
