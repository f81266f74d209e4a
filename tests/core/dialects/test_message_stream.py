"""Events that come as messages get the verdicts they would get as a stream, and what is not refused leaves as the very message."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.message_stream import GAIN, MessageStream
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.model import Action, ToolCall, Verdict


def judge(call: ToolCall) -> Verdict:
    return Verdict(Action.BLOCK if "delete" in call.name else Action.ALLOW, "because")


def streaming(*, fail_closed=False, max_frame=4096, enforce=True):
    def make():
        limits = Limits(max_frame + GAIN)
        return DIALECT.stream(judge, limits=limits, fail_closed=fail_closed, enforce=lambda: enforce)

    return MessageStream(make, max_frame=max_frame)


def answer(name):
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": ""}
    done = {**item, "arguments": "{}"}
    return [
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "sequence_number": 2, "output_index": 0, "item_id": "f", "delta": "{}"},
        {"type": "response.output_item.done", "sequence_number": 3, "output_index": 0, "item": done},
        {"type": "response.completed", "sequence_number": 4, "response": {"id": "r", "output": [done]}},
    ]  # fmt: skip


def run(stream, events):
    """Return what leaves, as raw marks or parsed events, and what was judged."""
    left, judged, faults = [], [], []
    for at, event in enumerate(events):
        text = event if isinstance(event, bytes) else json.dumps(event).encode()
        leaving = stream.feed(text, b"raw%d" % at)
        left += [raw if raw is not None else json.loads(made) for raw, made in leaving.messages]
        judged += [(j.call.name, j.verdict.blocked) for j in leaving.facts.judged]
        faults += [f.cause for f in leaving.facts.faults]
        if leaving.end:
            left.append("end")
            break
    return left, judged, faults


def test_an_allowed_call_leaves_in_the_very_messages():
    left, judged, _ = run(streaming(), answer("read"))
    assert left == [b"raw0", b"raw1", b"raw2", b"raw3", b"raw4"]
    assert judged == [("read", False)]


def test_a_denied_call_is_replaced_and_the_rest_follows():
    left, judged, _ = run(streaming(), answer("delete_x"))
    assert judged == [("delete_x", True)]
    assert left[0] == b"raw0"
    made = left[1:]
    assert "delete_x" not in json.dumps([e for e in made if e["type"] != "response.completed"]).replace(
        "[agentsh] Tool 'delete_x'", ""
    )
    assert [e["sequence_number"] for e in made] == list(range(1, 1 + len(made)))
    assert [item["type"] for item in made[-1]["response"]["output"]] == ["message"]


def test_a_second_answer_on_the_connection_is_judged_anew_and_is_no_late_call():
    left, judged, _ = run(streaming(), answer("read") + answer("read"))
    assert left == [b"raw%d" % at for at in range(10)]
    assert judged == [("read", False)] * 2


def test_a_call_that_a_new_answer_interrupts_is_never_released():
    left, judged, faults = run(streaming(), answer("read")[:3] + answer("other"))
    assert faults == ["incomplete_call"]
    assert judged == [("read", False)]
    assert b"raw1" not in left
    assert left[-1] == "end"


def test_audit_mode_lets_every_message_pass():
    left, judged, _ = run(streaming(enforce=False), answer("delete_x"))
    assert left == [b"raw%d" % at for at in range(5)]
    assert judged == [("delete_x", False)]  # and says in `would` what it would have been


def test_pretty_text_leaves_as_it_came():
    events = [json.dumps(event, indent=2).replace("\n", "\r\n").encode() for event in answer("read")]
    left, judged, faults = run(streaming(), events)
    assert left == [b"raw%d" % at for at in range(5)]
    assert (judged, faults) == ([("read", False)], [])


def test_a_message_above_the_bound_goes_by_fail_closed():
    big = {"type": "response.output_text.delta", "delta": "x" * 5000}
    assert run(streaming(), [big])[::2] == ([b"raw0"], ["frame_too_long"])
    left, _, faults = run(streaming(fail_closed=True), [big])
    assert [e["type"] for e in left[:-1]] == ["error", "response.failed"]
    assert (left[-1], faults) == ("end", ["frame_too_long"])


@pytest.mark.parametrize(("over", "causes"), [(0, []), (1, ["frame_too_long"])])
def test_the_bound_of_a_message_is_exact(over, causes):
    text = json.dumps({"type": "response.output_text.delta", "delta": ""}).encode()
    text = text.replace(b'""', b'"' + b"x" * (4096 + over - len(text)) + b'"')
    assert len(text) == 4096 + over
    assert run(streaming(), [text])[2] == causes


def test_a_message_above_the_bound_passes_behind_a_held_call_that_is_allowed():
    big = {"type": "response.output_text.delta", "delta": "x" * 5000}
    left, judged, faults = run(streaming(), [*answer("read")[:2], big])
    assert left == [b"raw0", b"raw1", b"raw2"]
    assert (judged, faults) == ([("read", False)], ["frame_too_long"])


def test_a_message_above_the_bound_passes_behind_a_held_call_that_is_blocked_and_releases_nothing_of_it():
    big = {"type": "response.output_text.delta", "delta": "x" * 5000}
    left, judged, faults = run(streaming(), [*answer("delete_x")[:2], big])
    assert (judged, faults) == ([("delete_x", True)], ["frame_too_long"])
    assert (left[0], left[-1]) == (b"raw0", b"raw2")
    assert b"raw1" not in left
    assert "function_call" not in json.dumps([event for event in left if isinstance(event, dict)])


@pytest.mark.parametrize("at", [2, 3, 4])
def test_a_message_above_the_bound_that_is_the_rest_of_a_blocked_call_does_not_pass(at):
    sent = answer("delete_x")
    rest = {**sent[at], "padding": "x" * 5000}
    left, judged, faults = run(streaming(), [*sent[:2], rest])
    assert judged == [("delete_x", True)]
    assert faults == ["frame_too_long", "frame_too_long"]
    assert left[-1] == "end"
    assert b"raw2" not in left


def test_a_message_above_the_bound_behind_a_held_call_is_replaced_by_an_error_under_fail_closed():
    big = {"type": "response.output_text.delta", "delta": "x" * 5000}
    left, _, faults = run(streaming(fail_closed=True), [*answer("read")[:2], big])
    assert faults == ["frame_too_long"]
    assert [e if isinstance(e, bytes | str) else e["type"] for e in left] == [
        b"raw0",
        "error",
        "response.failed",
        "end",
    ]


def test_the_end_of_the_connection_releases_nothing():
    stream = streaming()
    run(stream, answer("read")[:3])
    ended = stream.finish()
    assert [f.cause for f in ended.facts.faults] == ["incomplete_call"]
    assert all(raw is None for raw, _ in ended.messages)
