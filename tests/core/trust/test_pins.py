"""A pin covers every field that a model sees, and nothing but that: neither key order nor white space, never a look-alike."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import VersionPinning
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import PinState
from agentsh_net.core.trust import pins
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pin, PinEffect, Pins, definition_hash, tool_of, trust_first

DEFINITION = {
    "name": "get_weather",
    "title": "Weather",
    "description": "Get the weather of a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "destructiveHint": False},
    "icons": [{"src": "https://example.com/i.png"}],
    "_meta": {"vendor/x": 1},
    "x-unknown": "kept",
}


def shuffled(value, rng):
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {k: shuffled(value[k], rng) for k in keys}
    return [shuffled(v, rng) for v in value] if isinstance(value, list) else value


@given(st.randoms(use_true_random=False), st.sampled_from([None, 1, 4]))
def test_key_order_and_white_space_never_change_the_hash(rng: random.Random, indent):
    again = json.loads(json.dumps(shuffled(DEFINITION, rng), indent=indent))
    assert definition_hash(again) == definition_hash(DEFINITION)


@pytest.mark.parametrize("field", DEFINITION)
def test_every_field_is_pinned(field):
    without = {k: v for k, v in DEFINITION.items() if k != field}
    assert definition_hash(without) != definition_hash(DEFINITION)
    assert definition_hash(DEFINITION | {field: "other"}) != definition_hash(DEFINITION)


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {"readOnlyHint": True, "destructiveHint": True}},
        {"description": "Get the weather of a city.\u200b"},
        {"description": "get the weather of a city."},
        {"inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": []}},
    ],
)
def test_small_changes_that_a_model_sees_change_the_hash(change):
    assert definition_hash(DEFINITION | change) != definition_hash(DEFINITION)


def test_execution_belongs_to_a_protocol_revision_and_is_not_pinned():
    moved = DEFINITION | {"execution": {"taskSupport": "optional"}}
    assert definition_hash(moved) == definition_hash(DEFINITION)
    assert pins.diff(DEFINITION, moved) == ()


def test_a_tool_without_a_name_is_no_tool():
    for definition in ({}, {"name": ""}, {"name": 7}, {"name": "\u200b"}):
        with pytest.raises(ProtocolError):
            tool_of("fs", definition)


TOOL = tool_of("weather", DEFINITION)
CHANGED = tool_of("weather", DEFINITION | {"description": "Other."})


def test_the_state_of_a_tool_follows_from_its_pin():
    board = Pins.of([pins.trust(TOOL, "2026-01-01T00:00:00Z")])
    assert board.lookup("weather", "get_weather", TOOL.hash) is PinState.TRUSTED
    assert board.lookup("WEATHER", "get_weather", TOOL.hash) is PinState.TRUSTED
    assert board.lookup("weather", "get_weather", CHANGED.hash) is PinState.CHANGED
    assert board.lookup("other", "get_weather", TOOL.hash) is PinState.NEW
    assert board.without("Weather", "get_weather").lookup("weather", "get_weather", TOOL.hash) is PinState.NEW
    recorded = Pins.of([Pin("weather", "get_weather", TOOL.hash, state=PinState.NEW)])
    assert recorded.lookup("weather", "get_weather", TOOL.hash) is PinState.NEW


def test_a_tool_says_which_arguments_are_repeated_in_headers():
    schema = {"properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    tool = tool_of("weather", DEFINITION | {"inputSchema": schema})
    assert tool.mirrored == ((("city",), "City", "string"),)


def test_what_is_known_of_a_server_is_found_by_its_folded_id_and_the_later_counts():
    tls, says = (Identity("Web", aspect, PinState.NEW) for aspect in (Aspect.TLS, Aspect.INSTRUCTIONS))
    board = Pins.of((), [tls, replace(says, server_id="other")]).with_identities([says])
    assert board.identities_of("WEB") == (tls, says)
    trusted = replace(tls, state=PinState.TRUSTED)
    assert board.with_identities([trusted]).identity("web", Aspect.TLS) == trusted
    assert Pins().identities_of("web") == ()


def test_a_servers_pins_are_its_own_whatever_the_case_of_its_id():
    board = Pins.of([Pin("FS", "read", "h"), Pin("fs", "rm", "h"), Pin("db", "read", "h")])
    assert [pin.tool for pin in board.of_server("Fs")] == ["read", "rm"]


def test_a_later_pin_replaces_the_earlier():
    board = Pins.of([pins.trust(TOOL, "a")]).with_pins([pins.trust(CHANGED, "b")])
    assert board.lookup("weather", "get_weather", CHANGED.hash) is PinState.TRUSTED
    assert board.get("weather", "get_weather").trusted_at == "b"


def test_first_trust_never_overwrites_a_pin():
    board, added = trust_first(Pins(), [TOOL], "now")
    assert added == (Pin("weather", "get_weather", TOOL.hash, TOOL.definition, PinState.TRUSTED, "now"),)
    again, none = trust_first(board, [CHANGED], "later")
    assert none == ()
    assert again.lookup("weather", "get_weather", CHANGED.hash) is PinState.CHANGED
    waiting = Pins.of([Pin("weather", "get_weather", TOOL.hash, state=PinState.NEW)])
    assert trust_first(waiting, [TOOL], "now") == (waiting, ())


@pytest.mark.parametrize(
    ("state", "pinning", "expected"),
    [
        (PinState.TRUSTED, {}, PinEffect.PASS),
        (PinState.NEW, {"auto_trust_first": True}, PinEffect.ALERT),
        (PinState.NEW, {"auto_trust_first": False}, PinEffect.BLOCK),
        (PinState.CHANGED, {"on_change": "block"}, PinEffect.BLOCK),
        (PinState.CHANGED, {"on_change": "alert"}, PinEffect.ALERT),
        (PinState.CHANGED, {"on_change": "allow"}, PinEffect.PASS),
        (PinState.CHANGED, {"enabled": False}, PinEffect.PASS),
    ],
)
def test_what_pinning_makes_of_a_call(state, pinning, expected):
    assert pins.effect(state, VersionPinning(**pinning)) is expected


def test_a_diff_shows_the_changed_hint():
    new = DEFINITION | {"annotations": {"readOnlyHint": True, "destructiveHint": True}}
    (found,) = pins.diff(DEFINITION, new)
    assert (found.path, found.old, found.new) == ("$.annotations.destructiveHint", "false", "true")
