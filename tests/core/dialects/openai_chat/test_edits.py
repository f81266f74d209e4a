"""A rewritten chunk differs from the original only where a call was: every other byte, and every unknown field, stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.openai_chat import DELETE, WEATHER, denying, entry, refused

from agentsh_net.core.dialects.openai_chat.edits import Findings, event, promises, rewrite
from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.dialects.openai_chat.ledger import Ledger
from agentsh_net.core.framing.sse import parse


def rewritten(text: str, *denied: str, hostile: bool = False) -> bytes:
    chunk = scan(json.loads(text))
    ledger = Ledger(denying(*denied), streamed=True)
    marks = ledger.take(chunk.fragments, "two readings" if hostile else "")
    ledger.settle(lambda *_: None)
    return rewrite(text.encode(), Findings(marks, promises(chunk.choices), hostile), ledger.choices)


# Spacing, a float, an integer and escapes that printing the value again would not give back.
ODD = '{ "x":1.50,"n":123456789012345678901234567890 , "choices" : [ {"index":0, "delta":{"tool_calls":%s,"k":"\\u00e9\\/"} } ],"y":1e3}'


def test_without_a_removal_the_very_object_comes_back() -> None:
    data = (ODD % json.dumps([entry(0, name=WEATHER, call_id="a")])).encode()
    chunk = scan(json.loads(data))
    ledger = Ledger(denying(), streamed=True)
    marks = ledger.take(chunk.fragments)
    ledger.settle(lambda *_: None)
    assert rewrite(data, Findings(marks), ledger.choices) is data


def test_a_removed_call_leaves_a_notice_and_every_other_byte() -> None:
    out = rewritten(ODD % json.dumps([entry(0, name=DELETE, call_id="a")]), DELETE)
    said = json.dumps(refused(DELETE))
    assert out.decode() == ODD.replace('"tool_calls":%s,', "").replace('\\/"', '\\/","content":' + said)


def test_a_removed_call_between_others_takes_its_comma_and_closes_the_indices() -> None:
    entries = [
        entry(0, name="a", call_id="0"),
        entry(1, name=DELETE, call_id="1"),
        entry(2, name="b", call_id="2"),
    ]
    out = json.loads(rewritten(ODD % json.dumps(entries), DELETE))
    expected = [entries[0], entries[2] | {"index": 1}]
    assert out["choices"][0]["delta"]["tool_calls"] == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, refused(DELETE)),
        ("", refused(DELETE)),
        ("Sure.", "Sure.\n\n" + refused(DELETE)),
        ([{"type": "text", "text": "Sure."}],
         [{"type": "text", "text": "Sure."}, {"type": "text", "text": refused(DELETE)}]),
    ],
)  # fmt: skip
def test_a_notice_stands_behind_what_the_message_says(content: Any, said: Any) -> None:
    delta = {"content": content, "tool_calls": [entry(0, name=DELETE, call_id="a")]}
    out = json.loads(rewritten(json.dumps({"choices": [{"index": 0, "delta": delta}]}), DELETE))
    assert out["choices"][0]["delta"] == {"content": said}


@pytest.mark.parametrize(
    ("reason", "becomes"),
    [("tool_calls", "stop"), ("function_call", "stop"), ("stop", "stop"), ("length", "length"), (None, None)],
)
def test_a_reason_that_promises_a_call_is_taken_back_when_none_is_left(reason: Any, becomes: Any) -> None:
    def finished(name: str) -> Any:
        delta = {"tool_calls": [entry(0, name=name, call_id="a")]}
        text = json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        return json.loads(rewritten(text, DELETE))["choices"][0]["finish_reason"]

    assert finished(DELETE) == becomes
    assert finished(WEATHER) == reason


REMOVED_EARLIER = entry(0, name=DELETE, call_id="a")


def later(chunk: dict[str, Any]) -> bytes:
    """Return what becomes of a chunk with a piece of a call that was removed, and noticed, before."""
    ledger = Ledger(denying(DELETE), streamed=True)
    first = scan({"choices": [{"index": 0, "delta": {"tool_calls": [REMOVED_EARLIER]}}]})
    ledger.take(first.fragments)
    ledger.settle(lambda *_: None)
    ledger.choices[0].calls[0].notice = ""
    found = scan(chunk)
    return rewrite(
        json.dumps(chunk).encode(),
        Findings(ledger.take(found.fragments), promises(found.choices)),
        ledger.choices,
    )


def test_a_chunk_that_held_only_a_removed_call_is_left_out() -> None:
    choice = {
        "index": 0,
        "delta": {"tool_calls": [entry(0, args="{}")]},
        "finish_reason": None,
        "logprobs": None,
    }
    assert later({"id": "c", "model": "m", "choices": [choice], "usage": None, "obfuscation": "x"}) == b""


@pytest.mark.parametrize(
    ("more", "of_choice", "of_delta"),
    [
        ({"usage": {"total_tokens": 1}}, {}, {}),
        ({"timings": {"ms": 1}}, {}, {}),
        ({}, {"finish_reason": "length"}, {}),
        ({}, {"logprobs": {"content": []}}, {}),
        ({}, {}, {"role": "assistant"}),
        ({}, {}, {"reasoning_content": "so"}),
    ],
)
def test_a_chunk_that_says_anything_else_stays(more: Any, of_choice: Any, of_delta: Any) -> None:
    delta = {"tool_calls": [entry(0, args="{}")], **of_delta}
    chunk = {"choices": [{"index": 0, "delta": delta, **of_choice}], **more}
    out = json.loads(later(chunk))
    assert out == {"choices": [{"index": 0, "delta": of_delta, **of_choice}], **more}


def test_a_chunk_read_in_two_ways_is_written_anew_without_any_call() -> None:
    text = json.dumps(
        {"n": 1, "choices": [{"index": 0, "delta": {"Tool_Calls": [], "tool_calls": [entry(0, name="x")], "a": 1},
                              "tool_calls": [1], "finish_reason": "tool_calls"}]}
    )  # fmt: skip
    out = json.loads(rewritten(text, hostile=True))
    delta = {"a": 1, "content": refused("x", "two readings")}
    assert out == {"n": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}


def test_parted_names_are_written_whole_where_they_begin() -> None:
    entries = [entry(0, name="get_", args="[", call_id="a"), entry(0, name="it", args="]")]
    out = json.loads(
        rewritten(json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": entries}}]}), "it")
    )
    first, second = out["choices"][0]["delta"]["tool_calls"]
    assert (first["function"], second["function"]) == (
        {"name": "get_it", "arguments": "["},
        {"name": "", "arguments": "]"},
    )


@pytest.mark.parametrize(
    ("raw", "data", "out"),
    [
        (b"data: x\n\n", b"{}", b"data: {}\n\n"),
        (b"data: x\r\n\r\n", b"{}", b"data: {}\r\n\r\n"),
        (b"data: x\r\n\r", b"{}", b"data: {}\r\n\r"),
        (b"event: e\ndata: x\n\n", b"{}", b"event: e\ndata: {}\n\n"),
        (b"data: x\n", b"{}", b"data: {}\n\n"),
        (b"data: x", b"{\n}", b"data: {\ndata: }\n\n"),
        (b"data: x\n\n", b"", b""),
    ],
)
def test_an_event_ends_as_the_frame_it_replaces(raw: bytes, data: bytes, out: bytes) -> None:
    assert event(parse(raw), data) == out
