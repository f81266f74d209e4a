"""A refused call that Google keeps has its result in the next interaction, among steps, beside what the user says."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.interactions.kept_calls import brought, goes_on_from, kept

RESULT = {"type": "function_result", "call_id": "c1", "name": "rm", "result": "no", "is_error": True}
OTHER = {"type": "function_result", "call_id": "c2", "name": "get", "result": "sunny"}
TEXT = {"type": "text", "text": "x"}
SAID = {"type": "user_input", "content": [TEXT]}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("x", [RESULT, SAID]),
        (TEXT, [RESULT, SAID]),
        ([TEXT], [RESULT, SAID]),
        ([SAID], [RESULT, SAID]),
        ([OTHER], [RESULT, OTHER]),
        ([RESULT], [RESULT]),
        ([{**RESULT, "result": "the client's"}], [{**RESULT, "result": "the client's"}]),
        (None, None),
    ],
)
def test_what_a_request_lacks_is_brought(given, left):
    assert brought(given, [RESULT]) == left
    assert brought(given, []) is given


def test_a_call_is_kept_by_its_interaction():
    assert kept("c1", "rm", "int_1", "no") == (("int_1",), RESULT, "", None)
    assert kept("c1", "rm", "int_1", "n" * 9999).result["result"] == "n" * 1024


@pytest.mark.parametrize(
    ("call_id", "kept_in"), [("", "int_1"), ("c1", ""), ("c" * 257, "int_1"), ("c1", "i" * 257)]
)
def test_what_nobody_can_answer_is_not_kept(call_id, kept_in):
    assert kept(call_id, "rm", kept_in, "no") is None


@pytest.mark.parametrize(
    ("request_", "place"),
    [({"previous_interaction_id": "int_1"}, "int_1"), ({}, ""), ({"previous_interaction_id": 3}, "")],
)
def test_a_request_goes_on_from_what_it_names(request_, place):
    assert goes_on_from(request_) == place
