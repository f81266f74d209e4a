"""The pieces in which models write are found in the events of every dialect, and signed reasoning is none of them."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.dlp.fragments import fragments


@pytest.mark.parametrize(
    ("event", "path", "nested"),
    [
        ({"type": "content_block_delta", "index": 1, "delta": {"text": "x"}}, ("delta", "text"), False),
        ({"type": "content_block_delta", "index": 1, "delta": {"partial_json": "x"}}, ("delta", "partial_json"), True),
        ({"type": "response.output_text.delta", "output_index": 0, "delta": "x"}, ("delta",), False),
        ({"type": "response.function_call_arguments.delta", "delta": "x"}, ("delta",), True),
        ({"type": "response.custom_tool_call_input.delta", "delta": "x"}, ("delta",), False),
        ({"choices": [{"index": 0, "delta": {"content": "x"}}]}, ("choices", 0, "delta", "content"), False),
        ({"choices": [{"index": 0, "text": "x"}]}, ("choices", 0, "text"), False),
        (
            {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}}]},
            ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
            True,
        ),
        (
            {"choices": [{"delta": {"tool_calls": [{"index": 0, "custom": {"input": "x"}}]}}]},
            ("choices", 0, "delta", "tool_calls", 0, "custom", "input"),
            False,
        ),
        ({"choices": [{"delta": {"function_call": {"arguments": "x"}}}]}, ("choices", 0, "delta", "function_call", "arguments"), True),
        ({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}, ("candidates", 0, "content", "parts", 0, "text"), False),
        (
            {"candidates": [{"content": {"parts": [{"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}}]}}]},
            ("candidates", 0, "content", "parts", 0, "functionCall", "partialArgs", 0, "stringValue"),
            False,
        ),
        ({"type": "message.output.delta", "output_index": 0, "content": "x"}, ("content",), False),
        ({"type": "message.output.delta", "content": {"type": "text", "text": "x"}}, ("content", "text"), False),
        ({"type": "function.call.delta", "name": "n", "arguments": "x"}, ("arguments",), True),
        ({"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "x"}}, ("delta", "text"), False),
        ({"event_type": "step.delta", "index": 0, "delta": {"type": "arguments_delta", "arguments": "x"}}, ("delta", "arguments"), True),
        ({"message": {"role": "assistant", "content": "x"}, "done": False}, ("message", "content"), False),
        ({"response": "x", "done": False}, ("response",), False),
    ],
)  # fmt: skip
def test_a_piece_is_found_where_it_stands(event: dict[str, Any], path: tuple[Any, ...], nested: bool) -> None:
    (piece,) = fragments(event)
    assert (piece.path, piece.text, piece.nested) == (path, "x", nested)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"type": "content_block_delta", "delta": {"thinking": "x"}},
        {"type": "content_block_delta", "delta": {"signature": "x"}},
        {"type": "response.reasoning_text.delta", "delta": "x"},
        {"type": "response.output_text.done", "text": "x"},
        {"candidates": [{"content": {"parts": [{"text": "x", "thought": True}]}}]},
        {"choices": [1, {"delta": [], "tool_calls": 3}, {"delta": {"tool_calls": [None]}}]},
        {"candidates": [None, {"content": {"parts": [2]}}]},
        {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"partialArgs": [1]}}, {"functionCall": 2}]}}
            ]
        },
    ],
)
def test_other_events_have_none(event: Any) -> None:
    assert list(fragments(event)) == []


def test_odd_indices_make_channels_all_the_same() -> None:
    (piece,) = fragments({"choices": [{"index": {"a": 1}, "delta": {"content": "x"}}]})
    assert hash(piece.channel)


def test_texts_at_two_places_of_a_call_are_two() -> None:
    args = [{"jsonPath": path, "stringValue": "x"} for path in ("$.a", "$.b")]
    pieces = fragments({"candidates": [{"content": {"parts": [{"functionCall": {"partialArgs": args}}]}}]})
    assert len({piece.channel for piece in pieces}) == 2
