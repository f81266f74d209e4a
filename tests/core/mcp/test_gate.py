"""The gate refuses what is judged so, to the message; what passes keeps its bytes; what peers may read differently is told apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import glance
from agentsh_net.core.mcp.gate import (
    Call,
    Drop,
    Hide,
    Swap,
    edited,
    lone_call,
    read,
    rule_calls,
)
from agentsh_net.core.model import Action, Verdict

ALLOW = Verdict(Action.ALLOW, "fine")
BLOCK = Verdict(Action.BLOCK, "not today")


def denying(*tools: str) -> Callable[[Call], Verdict]:
    return lambda call: BLOCK if call.tool in tools else ALLOW


def call(id_: Any, tool: Any = "rm", **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": tool, **more}}


PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


def ruled(data: bytes, *denied: str) -> mcp_gate.Ruling:
    return rule_calls(data, read(data), denying(*denied))


def test_an_allowed_call_passes_as_the_bytes_it_came_in() -> None:
    data = b' {"params": {"name":"ls"},"id":1e0,"method":"tools/call"  ,"jsonrpc":"2.0"}'.replace(
        b"1e0", b"10"
    )
    assert ruled(data).forward is data


@pytest.mark.parametrize("id_", [1, "1", 0, "", -5, "ünï"])
def test_a_blocked_call_gets_an_error_under_its_very_id(id_: Any) -> None:
    ruling = ruled(line(call(id_)), "rm")
    assert ruling.forward is None
    (answer,) = map(json.loads, ruling.replies)
    assert answer["id"] == id_ and type(answer["id"]) is type(id_)
    assert answer["error"]["code"] == mcp_gate.BLOCKED
    assert answer["error"]["message"] == "[agentsh] Tool 'rm' blocked by policy: not today"


def test_a_call_that_wants_no_answer_is_dropped_without_one() -> None:
    message = call(1)
    del message["id"]
    assert ruled(line(message), "rm") == mcp_gate.Ruling(None, ())


def test_of_a_batch_the_blocked_calls_go_and_the_rest_keeps_its_bytes() -> None:
    ping = b'{"jsonrpc":"2.0",  "id":2,"method":"ping"}'
    data = b"[" + line(call(1)) + b" ,\t" + ping + b", " + line(call("1")) + b"," + line(call(3, "ls")) + b"]"
    ruling = ruled(data, "rm")
    assert ruling.forward is not None
    assert ping in ruling.forward
    assert [m["id"] for m in json.loads(ruling.forward)] == [2, 3]
    (answer,) = map(json.loads, ruling.replies)
    assert [(type(e["id"]), e["id"]) for e in answer] == [(int, 1), (str, "1")]
    assert ruling.refused == {1, "1"}


def test_of_a_batch_of_blocked_calls_nothing_goes_on() -> None:
    assert ruled(line([call(1), call(2)]), "rm").forward is None


def test_a_batch_in_which_nobody_waits_for_the_blocked_call_gets_no_answer() -> None:
    message = call(1)
    del message["id"]
    assert ruled(line([message, PING]), "rm").replies == ()


def test_a_call_beside_a_clients_answer_to_its_server_is_judged() -> None:
    ruling = ruled(line([{"jsonrpc": "2.0", "id": 5, "result": {}}, call(1)]), "rm")
    assert ruling.forward is not None and [m["id"] for m in json.loads(ruling.forward)] == [5]
    assert ruling.refused == {1}


@pytest.mark.parametrize(
    "message",
    [
        PING | {"trace": "x"},
        call(1, "ls", task={"ttl": 1}),
        {"jsonrpc": "2.0", "id": 1, "result": {"vendor": 1}},
    ],
)
def test_keys_that_nobody_knows_are_none_of_our_business(message: dict[str, Any]) -> None:
    data = line(message)
    assert ruled(data, "rm").forward is data


@pytest.mark.parametrize(
    "message",
    [
        call(1, 7), call(1, ["rm"]), call(1, None), call(1, "ls", Name="rm"), call(1, "ls", NAME="rm"),
        call(1) | {"params": ["rm"]}, {k: v for k, v in call(1).items() if k != "params"},
    ],
)  # fmt: skip
def test_a_call_without_a_certain_tool_is_no_call_to_be_judged(message: Any) -> None:
    judged: list[Call] = []

    def judge(call: Call) -> Verdict:
        judged.append(call)
        return ALLOW

    data = line([call(9, "ls"), message])
    with pytest.raises(ProtocolError):
        rule_calls(data, read(data), judge)
    assert not judged  # nothing was charged or told of for a line that does not go on


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,\r"method":"tools/call"}',
        b'{"jsonrpc":"2.0","method":"ping","Method":"tools/call"}',
        b'{"jsonrpc":"2.0","method":"a","method":"b"}',
    ],
)
def test_reading_refuses_what_peers_may_read_differently(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(data)


def test_a_lone_call_names_its_tool_and_a_batch_has_none() -> None:
    assert lone_call(read(line(call(1, "ls")))) == "ls"
    assert lone_call(read(line([call(1, "ls")]))) == ""
    assert lone_call(read(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')) == ""


def asked(value: Any) -> list[tuple[int, Any, str, bool]]:
    return [(a.index, a.id, a.method, a.embedded) for a in mcp_gate.askings(read(line(value)))]


def request(method: str, id_: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {}}


def test_requests_of_a_server_to_its_client_are_found() -> None:
    batch = [
        request("ping"),
        request("sampling/createMessage", "s"),
        request("elicitation/create", 3),
        request("roots/list"),
    ]
    assert asked(batch) == [(1, "s", "sampling/createMessage", False), (2, 3, "elicitation/create", False)]


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create"])
def test_what_asks_and_wants_no_answer_is_found_and_nobody_is_answered(method: str) -> None:
    assert asked({"jsonrpc": "2.0", "method": method, "params": {}}) == [(0, None, method, True)]


def test_what_a_result_or_an_error_asks_is_found_too() -> None:
    wants = {
        "a": {"method": "elicitation/create", "params": {"message": "?"}},
        "b": {"method": "roots/list"},
        "c": 7,
    }
    answer = {"jsonrpc": "2.0", "id": 4, "result": {"resultType": "input_required", "inputRequests": wants}}
    assert asked(answer) == [(0, 4, "elicitation/create", True)]
    answer["result"] = {
        "resultType": "input_required",
        "inputRequests": [{"method": "sampling/createMessage"}],
    }
    assert asked(answer) == [(0, 4, "sampling/createMessage", True)]
    answer["result"] = {"resultType": "input_required", "inputRequests": 7}
    assert asked(answer) == []
    error = {
        "jsonrpc": "2.0",
        "id": "u",
        "error": {"code": -32042, "message": "m", "data": {"elicitations": []}},
    }
    assert asked(error) == [(0, "u", "elicitation/create", True)]


def test_what_a_task_that_waits_asks_is_found_too() -> None:
    wants = {"a": {"method": "sampling/createMessage"}, "b": {"method": ["sampling/createMessage"]}}
    note = {"jsonrpc": "2.0", "method": glance.TASK, "params": {"inputRequests": wants}}
    assert asked(note) == [(0, None, "sampling/createMessage", True)]
    assert asked(note | {"method": "notifications/other"}) == []
    assert asked(note | {"params": [wants]}) == []


def test_a_refusal_says_what_was_asked() -> None:
    said = [
        json.loads(mcp_gate.answer_to_asking(mcp_gate.Asking(0, 1, method, {}), BLOCK))["error"]["message"]
        for method in (glance.SAMPLING, glance.ELICITATION)
    ]
    assert said == [f"[agentsh] {what} blocked by policy: not today" for what in ("sampling", "elicitation")]


def test_edits_of_a_single_message() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}, {"name":"b" ,"x":1.0},{"name":"c"}],"nextCursor":""}}'
    body = read(data)
    assert edited(data, body, {}) is data
    assert edited(data, body, {0: Drop()}) is None
    assert edited(data, body, {0: Swap(b"{}")}) == b"{}"
    hidden = edited(data, body, {0: Hide((0, 2))})
    assert hidden == b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b" ,"x":1.0}],"nextCursor":""}}'
    everything = edited(data, body, {0: Hide((0, 1, 2))})
    assert everything is not None and json.loads(everything)["result"] == {"tools": [], "nextCursor": ""}


def test_edits_of_a_batch_leave_the_other_messages_alone() -> None:
    one, two = (
        b'{"jsonrpc":"2.0" ,"id":1,"result":{"tools":[{"name":"a"},{"name":"b"}]}}',
        b'{"jsonrpc":"2.0","method":"x"}',
    )
    data = b"[" + one + b", " + two + b" ,\n" + one + b"]"
    body = read(data)
    assert edited(data, body, {0: Drop(), 1: Drop(), 2: Drop()}) is None
    got = edited(data, body, {0: Drop(), 2: Hide((0,))})
    assert got is not None and two in got
    assert json.loads(got) == [
        json.loads(two),
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "b"}]}},
    ]
    got = edited(data, body, {0: Swap(b'{"swapped":1}')})
    assert got is not None and json.loads(got)[0] == {"swapped": 1}
    got = edited(data, body, dict.fromkeys(range(3), Swap(b"{}")))
    assert got is not None and json.loads(got) == [{}, {}, {}]


def test_a_refusal_becomes_a_result_only_where_somebody_waits_for_one():
    told = json.loads(mcp_gate.as_result(mcp_gate.refusal("7", "rm", "no"), modern=True))
    assert told["id"] == "7" and told["result"]["isError"] and told["result"]["resultType"] == "complete"
    assert (
        "resultType"
        not in json.loads(mcp_gate.as_result(mcp_gate.refusal(7, "rm", "no"), modern=False))["result"]
    )
    nobody = mcp_gate.refusal(None, "rm", "no")
    assert mcp_gate.as_result(nobody, modern=True) == nobody


@pytest.mark.parametrize("key", ["Tools", "INSTRUCTIONS", "inputrequests", "in\u017ftructions", "nextcursor"])
def test_a_key_of_a_result_in_another_case_is_uncertain(key: str) -> None:
    """Go's `encoding/json` takes it for the known one, and the last of both."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [], key: []}}).encode()
    with pytest.raises(ProtocolError, match="another case"):
        mcp_gate.read(line)
