"""A refused call that OpenAI keeps becomes itself and its result again in the next request, in the shape of its kind."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.openai_responses import kept_calls
from agentsh_net.core.dialects.openai_responses.items import Call, stand_in_id
from agentsh_net.core.dialects.openai_responses.kept_calls import (
    Place,
    Told,
    answers,
    goes_on_from,
    kept,
    places,
    reference,
    repeats_calls,
    restored,
    stands_for,
)

CALL = Call("function_call", "rm", "mcp__files", "", "call_1", "fc_1", '{"a": 1}')
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "rm", "namespace": "mcp__files", "arguments": '{"a": 1}'}  # fmt: skip
OURS = stand_in_id("fc_1", "call_1")
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "no"}
MESSAGE = {"type": "message", "id": OURS, "role": "assistant", "content": []}


def test_a_function_call_is_kept_whole():
    found = kept(CALL, ("resp_1", "conv_1"), "no")
    assert found == (("resp_1", "conv_1"), RESULT, OURS, ITEM)


@pytest.mark.parametrize(
    "call", [Call("function_call", "rm", call_id="call_1", id="fc_1", flaw="two names", arguments="{}"), Call("shell_call", call_id="call_1", id="fc_1", arguments={"commands": ["x"]})]
)  # fmt: skip
def test_what_is_not_known_whole_is_referred_to(call):
    assert kept(call, ("resp_1",), "no").item == reference("fc_1")


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("custom_tool_call", {"type": "custom_tool_call_output", "call_id": "c", "output": "no"}),
        ("apply_patch_call", {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"}),
        ("shell_call", {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 126}}]}),
        ("local_shell_call", {"type": "local_shell_call_output", "id": "c", "output": "no"}),
        ("mcp_approval_request", {"type": "mcp_approval_response", "approval_request_id": "i", "approve": False, "reason": "no"}),
    ],
)  # fmt: skip
def test_each_kind_has_its_own_result(kind, result):
    found = kept(Call(kind, "rm", call_id="c", id="i"), ("resp_1",), "no")
    assert found.result == result
    assert answers(found.result) == (
        result.get("call_id") or result.get("approval_request_id") or result["id"]
    )


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (CALL, ()),
        (Call("computer_call", call_id="c", id="i"), ("resp_1",)),
        (Call("function_call", "rm", id="fc_1"), ("resp_1",)),
        (Call("function_call", "rm", call_id="c" * 257), ("resp_1",)),
        (CALL, ("r" * 257,)),
    ],
)
def test_what_nobody_can_answer_is_not_kept(call, where):
    assert kept(call, where, "no") is None


def test_a_result_is_short():
    assert kept(CALL, ("resp_1",), "n" * 9999).result["output"] == "n" * kept_calls.MAX_TEXT


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"id": "resp_1"}, ("resp_1",)),
        ({"id": "resp_1", "conversation": {"id": "conv_1"}}, ("resp_1", "conv_1")),
        ({"id": "resp_1", "conversation": None}, ("resp_1",)),
        ({"id": 1, "conversation": "conv_1"}, ("conv_1",)),
    ],
)
def test_an_answer_goes_on_from_its_own_id_and_its_conversations(answer, found):
    assert places(answer) == found


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"previous_response_id": "resp_1"}, Place("resp_1")),
        ({"conversation": "conv_1"}, Place("conv_1", grows=True)),
        ({"conversation": {"id": "conv_1"}}, Place("conv_1", grows=True)),
        ({"previous_response_id": None, "conversation": ["conv_1"]}, Place("", grows=True)),
        ({}, Place("", grows=True)),
    ],
)
def test_a_request_goes_on_from_what_it_names(request_, place):
    assert goes_on_from(request_) == place


@pytest.mark.parametrize(
    ("request_", "may"),
    [
        ({"previous_response_id": "r"}, True),
        ({"conversation": "c"}, True),
        ({"input": ["x", {"role": "user"}, {"type": "item_reference", "id": OURS}]}, True),
        ({"input": [{"id": "msg_1"}, {"id": 3}]}, False),
        ({"input": OURS}, False),
    ],
)
def test_who_may_go_on_from_a_refused_call(request_, may):
    assert repeats_calls(request_) is may
    assert stands_for("x") == ""


REFERENCE = {"type": "item_reference", "id": OURS}
LOST = {"role": "assistant", "content": "[agentsh] A tool call was blocked by policy."}


@pytest.mark.parametrize(
    ("item", "told", "waiting", "stands"),
    [
        (MESSAGE, Told(ITEM, RESULT), [], [ITEM, RESULT]),
        (REFERENCE, Told(ITEM, RESULT), [], [reference("fc_1"), RESULT]),
        (REFERENCE, Told({**ITEM, "id": ""}, RESULT), [], [{**ITEM, "id": ""}, RESULT]),
        (MESSAGE, Told(ITEM, RESULT), [RESULT], [RESULT]),
        (REFERENCE, Told(reference("fc_1"), RESULT), [], [reference("fc_1"), RESULT]),
        (MESSAGE, Told(reference("fc_1"), RESULT), [], [MESSAGE]),
        (MESSAGE, None, [], [MESSAGE]),
        (REFERENCE, None, [], [LOST]),
    ],
)
def test_a_message_of_ours_becomes_what_it_stood_for(item, told, waiting, stands):
    assert list(restored(item, told, waiting)) == stands


@pytest.mark.parametrize("item", ["x", None, {"type": 1, "call_id": "c"}, {"type": "message", "id": "c"}])
def test_other_items_are_results_of_nothing(item):
    assert answers(item) == ""
