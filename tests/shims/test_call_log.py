"""Calls that passed by a standing verdict are on record one by one, as whole and as true as those that were asked about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shim_front import Front, call, result

from agentsh_net.core.audit.events import MessageUninspected, ToolCalled
from agentsh_net.core.configuration.settings import RateLimits
from agentsh_net.core.links.link import MAX_INPUT
from agentsh_net.core.links.shim_link import LinkError
from agentsh_net.shims import call_log


def lines(*calls: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode() for each in calls)


def own(event: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in event.items() if k not in {"id", "timestamp"}}


def test_a_call_told_of_afterwards_has_the_event_of_one_that_was_asked_about() -> None:
    front = Front(offers={"fs": ["ls"]})
    handler = front.enter()
    front.client(handler, call("ls", 1, path="/"))
    front.called(handler, lines(*(call("ls", 1, path="/") for _ in range(3))))
    asked, *after = front.told(ToolCalled.type)
    assert [own(event) for event in after] == [own(asked)] * 3
    assert [*after[1]] == [*asked], "the fields come in the same order"
    assert all(event["id"] and event["timestamp"] for event in after[1:])
    assert len({event["id"] for event in after[1:]}) == 2


def test_calls_of_the_plainest_shape_are_told_of_as_others_are() -> None:
    front = Front(offers={"fs": ["ls", "rm"]})
    handler = front.enter()
    made = [
        call("ls", 1, a=1),
        call("rm", "x", path="/100%/ü", n=[1, 2], of=[{"a": []}]),
        call("ls", 3),
        call("rm", 4, q='"\n'),
    ]
    told = b"\n".join(json.dumps(each).encode() for each in made)  # with spaces: read one by one
    front.called(handler, told)
    assert front.sheets == 0
    front.called(handler, lines(*made))
    assert front.sheets == 1
    events = [own(event) for event in front.told(ToolCalled.type)]
    assert events[4:] == events[:4]


@pytest.mark.parametrize(
    "odd", [call("rm", 9), call("ls", 9, a={"b": {"c": 1}}), {"id": 9, "params": {"name": "ls"}}]
)
def test_one_call_of_another_shape_has_all_of_them_read_one_by_one(odd: dict[str, Any]) -> None:
    front = Front(offers={"fs": ["ls", "rm"]})
    handler = front.enter()
    front.called(handler, lines(call("ls", 1)))
    front.called(handler, lines(call("ls", 2), odd, call("ls", 3)))
    assert front.sheets == 0
    assert [e["jsonrpc_id"] for e in front.told(ToolCalled.type)] == [1, 2, 9, 3]


def test_an_escape_that_spells_no_text_is_written_out() -> None:
    front = Front(offers={"fs": ["ls"]})
    handler = front.enter()
    front.called(handler, lines(call("ls", 1)))
    front.called(handler, lines(call("ls", 2, a="b")).replace(b'"b"', b'"\\ud800"'))
    assert front.sheets == 0


def test_each_line_has_its_own_event_in_the_order_of_the_calls() -> None:
    front = Front(offers={"fs": ["ls", "rm"]})
    handler = front.enter()
    made = [call("ls", 1), call("ls", "1", a=1), call("rm", 2), call("ls", 3, b=[2]), call("rm", 4)]
    front.called(handler, lines(*made))
    told = [(e["jsonrpc_id"], e["tool_name"], e["input"]) for e in front.told(ToolCalled.type)]
    assert told == [(m["id"], m["params"]["name"], m["params"]["arguments"]) for m in made]


def test_another_policy_is_told_of_from_the_next_call_on() -> None:
    front = Front(offers={"fs": ["ls"]})
    handler = front.enter()
    front.called(handler, lines(call("ls", 1), call("ls", 2)))
    front.snapshot = Front(offers={"fs": ["ls"]}, denied_tools=[("fs", "ls")]).snapshot
    front.called(handler, lines(call("ls", 3), call("ls", 4)))
    assert [e["would"] for e in front.told(ToolCalled.type)] == [None, None, "block", "block"]


def test_what_the_client_is_shown_since_counts() -> None:
    front = Front()
    handler = front.enter()
    front.listed(handler, "ls")
    front.called(handler, lines(call("ls", 1), call("ls", 2)))
    before = front.told(ToolCalled.type)[-1]["tool_hash"]
    front.listed(handler, {"name": "ls", "description": "another", "inputSchema": {"type": "object"}})
    front.called(handler, lines(call("ls", 3)))
    after = front.told(ToolCalled.type)[-1]
    assert (after["tool_hash"], after["would"]) != (before, None)


def test_where_a_rate_holds_by_now_each_call_is_charged() -> None:
    front = Front(offers={"fs": ["ls"]}, rate_limits=RateLimits(enabled=True))
    front.left = 2
    front.called(front.enter(), lines(*(call("ls", n) for n in range(4))))
    assert front.charged == ["fs"] * 4
    assert [e["would"] for e in front.told(ToolCalled.type)] == [None, None, "block", "block"]


def test_the_call_of_a_models_answer_is_joined_in_the_middle_of_others() -> None:
    front = Front(offers={"fs": ["ls"]})
    front.intents.note(
        {
            "id": "e1", "type": "mcp_tool_call_intercepted", "action": "allow", "session_id": "agent-7", "tool_call_id": "toolu_1",
            "input": {"n": 3}, "candidates": [{"server_id": "fs", "tool_name": "ls", "tool_hash": ""}],
        },
        front.now,
    )  # fmt: skip
    front.called(front.enter(), lines(*(call("ls", n, n=n) for n in range(1, 6))))
    told = front.told(ToolCalled.type)
    assert [e["jsonrpc_id"] for e in told] == [1, 2, 3, 4, 5]
    assert [e["intercepted_id"] for e in told] == ["", "", "e1", "", ""]
    assert [e["session_id"] for e in told] == ["default", "default", "agent-7", "default", "default"]


def test_long_arguments_are_bounded() -> None:
    front = Front(offers={"fs": ["ls"]})
    front.called(front.enter(), lines(call("ls", 1), call("ls", 2, a="x" * 2 * MAX_INPUT)))
    assert front.told(ToolCalled.type)[1]["input"]["length"] > MAX_INPUT


def test_what_is_no_call_ends_the_conversation_and_the_calls_before_it_are_on_record() -> None:
    front = Front(offers={"fs": ["ls"]})
    handler = front.enter()
    with pytest.raises(LinkError):
        front.called(handler, lines(call("ls", 1), call("ls", 2), result(3)))
    assert [e["jsonrpc_id"] for e in front.told(ToolCalled.type)] == [1, 2]


def test_events_that_are_drawn_up_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log, "MAX_DRAFTS", 2)
    front = Front()
    handler = front.enter()
    front.called(handler, lines(*(call(f"t{n}", n) for n in range(5)), call("x" * 10_000, 6)))
    assert len(handler._call_log._drafts) == 2
    assert len(front.told(ToolCalled.type)) == 6


@pytest.mark.parametrize(
    "odd",
    [b"oops", b'{"id":', b"", b'{"a":1},{"b":2}', b'{"id":9,"params":{"name":"ls","arguments":"\\ud800"}}'],
)
def test_a_line_that_cannot_be_read_is_told_of_and_the_calls_around_it_are_on_record(odd: bytes) -> None:
    front = Front(offers={"fs": ["ls"]})
    made = [json.dumps(call("ls", n)).encode() for n in range(6)]
    front.called(front.enter(), b"\n".join([*made[:4], odd, *made[4:]]))
    assert [e["jsonrpc_id"] for e in front.told(ToolCalled.type)] == [*range(6)]
    assert [e["cause"] for e in front.told(MessageUninspected.type)] == ["malformed"]


@pytest.mark.parametrize(
    "odd",
    [
        [],
        "x",
        7,
        {"id": 1},
        {"id": 1, "params": []},
        {"id": 1, "params": {"name": {}}},
        {"id": 1.5, "params": {"name": "ls"}},
    ],
)
def test_what_is_json_and_no_call_ends_the_conversation_however_odd(odd: Any) -> None:
    front = Front(offers={"fs": ["ls"]})
    with pytest.raises(LinkError):
        front.called(front.enter(), lines(call("ls", 1), call("ls", 2)) + b"\n" + json.dumps(odd).encode())
    assert [e["jsonrpc_id"] for e in front.told(ToolCalled.type)] == [1, 2]


def test_arguments_keep_their_bound_at_every_length_of_a_line() -> None:
    front = Front(offers={"fs": ["ls"]})
    numbers = [1e20] * (MAX_INPUT // 40)  # five characters each on the line, and 23 in the event
    told = b'{"id":%d,"params":{"name":"ls","arguments":[%b]}}'
    front.called(front.enter(), b"\n".join(told % (n, b",".join([b"1e20"] * len(numbers))) for n in range(3)))
    told_of = front.told(ToolCalled.type)
    assert [event["jsonrpc_id"] for event in told_of] == [0, 1, 2]
    for event in told_of:
        assert event["input"] == numbers or event["input"]["length"] > MAX_INPUT
        assert len(json.dumps(event["input"], separators=(",", ":"))) <= MAX_INPUT + 200
