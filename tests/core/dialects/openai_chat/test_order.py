"""Pieces that all clients add up alike are told from those that some add up in another way."""

from __future__ import annotations

from typing import Any

import pytest
from transcripts.openai_chat import denying, entry

from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.dialects.openai_chat.ledger import Ledger

Frame = tuple[int, str, list[dict[str, Any]]]  # choice, carrier, entries


def doubts(*frames: Frame) -> set[str]:
    """Return what is doubted of the calls in these frames."""
    judge = denying()
    ledger = Ledger(judge, streamed=True)
    for choice, carrier, entries in frames:
        ledger.take(scan({"choices": [{"index": choice, carrier: {"tool_calls": entries}}]}).fragments)
    ledger.settle(lambda *_: None)
    return {call.doubt for call in judge.asked if not call.hypothetical}


def delta(*entries: dict[str, Any], choice: int = 0, carrier: str = "delta") -> Frame:
    return choice, carrier, list(entries)


A, B = entry(0, name="a", args="", call_id="ca"), entry(1, name="b", args="", call_id="cb")

PLAIN = {
    "one after another": [
        delta(A),
        delta(entry(0, args="{")),
        delta(entry(0, args="}")),
        delta(B),
        delta(entry(1, args="1")),
    ],
    "several whole ones in a frame": [delta(A, B)],
    "without an index, alone": [delta(entry(..., name="a", call_id="ca")), delta(entry(..., args="{}"))],
    "the id with every piece": [delta(A), delta(entry(0, args="{}", call_id="ca"))],
    "a name in pieces before the arguments": [
        delta(A),
        delta(entry(0, name="a")),
        delta(entry(0, args="{}")),
    ],
    "indices with a gap": [delta(A), delta(entry(7, name="b", call_id="cb"))],
}
MINGLED = {
    "back to an earlier call": [delta(A), delta(B), delta(entry(0, args="{}"))],
    "two pieces in a frame": [delta(A, entry(0, args="{}"))],
    "a name behind arguments": [delta(entry(0, name="a", args="{")), delta(entry(0, name="a", args="}"))],
    "another id": [delta(A), delta(entry(0, args="{}", call_id="cb"))],
    "one id for two": [delta(A), delta(entry(1, name="b", call_id="ca"))],
    "one index for two": [delta(A), delta(entry(0, name="b", call_id="cb"))],
    "no index, and two calls": [delta(A), delta(entry(..., name="b", call_id="cb"))],
    "an index that is no number": [delta(entry("0", name="a", call_id="ca"))],
    "two choices": [delta(A), delta(B, choice=1)],
    "a delta and a message": [delta(A), delta(B, carrier="message")],
}


@pytest.mark.parametrize("case", PLAIN)
def test_what_every_client_adds_up_alike_is_not_doubted(case: str) -> None:
    assert doubts(*PLAIN[case]) == {""}


@pytest.mark.parametrize("case", MINGLED)
def test_what_some_client_adds_up_in_another_way_is_doubted(case: str) -> None:
    assert "" not in doubts(*MINGLED[case])
