"""Whatever others write, an event holds it bounded and as text that every JSON reader takes, and as long as the link believes."""

from __future__ import annotations

from hashlib import sha256

import orjson
import pytest

from agentsh_net.core.audit.event_values import bounded, bounded_input, decided
from agentsh_net.core.audit.events import ToolCalled
from agentsh_net.core.links.link import MAX_INPUT, MAX_TEXT, event_from_worker
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.values.strict_json import MAX_DEPTH

NESTED: list = []
for _ in range(5000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "text", ["", "short", "\ud800", "x" * MAX_TEXT + "y", "\ud800" * MAX_TEXT, "é" * MAX_TEXT * 2]
)
def test_the_supervisor_believes_any_text_that_went_through_here(text: str) -> None:
    told = bounded(text)
    event = ToolCalled(tool_name=told, via="gateway", **decided(Verdict(Action.BLOCK, text, text)))
    assert event_from_worker(orjson.loads(orjson.dumps(event.to_json()))) == event
    assert told[:5] == text[:5].replace("\ud800", "\\ud800")[:5]
    assert bounded(text, 3) == told[:3]


def test_an_input_above_the_bound_is_cut_with_its_length_and_hash() -> None:
    value = {"text": "x" * (100 << 10)}
    whole = orjson.dumps(value)
    assert bounded_input(value) == {
        "truncated": whole[:MAX_INPUT].decode(),
        "length": len(whole),
        "sha256": sha256(whole).hexdigest(),
    }
    assert bounded_input({"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (2**70, str(2**70)),
        (-(2**63), -(2**63)),
        ("\ud800x", "\\ud800x"),
        (True, True),
        ({"\udfff": 1.5}, {"\\udfff": 1.5}),
        (2**9999, hex(2**9999)),
    ],
)
def test_what_json_cannot_carry_of_an_input_is_told_as_text_where_it_stands(
    given: object, told: object
) -> None:
    assert bounded_input({"value": given, "beside": 2**70}) == {"value": told, "beside": str(2**70)}


def test_what_is_nested_deeper_than_readers_go_ends_in_a_note() -> None:
    text = orjson.dumps(bounded_input(NESTED))
    assert text.count(b"[") == MAX_DEPTH
    assert b'"(nested too deeply to record)"' in text


def test_a_verdict_is_told_with_what_would_have_been() -> None:
    verdict = Verdict(Action.ALLOW, "denied", "sandbox.mcp.denied_tools[0]", Action.BLOCK)
    assert decided(verdict) == {
        "action": "allow",
        "would": "block",
        "reason": "denied",
        "rule": "sandbox.mcp.denied_tools[0]",
    }
