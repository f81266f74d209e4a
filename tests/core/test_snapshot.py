"""A snapshot judges alike on both sides of the socketpair, and what only the supervisor needs does not travel."""

from __future__ import annotations

import json
from dataclasses import replace

import orjson
import pytest
from situations import situation, verdict

from agentsh_net.core import snapshot
from agentsh_net.core.configuration import config
from agentsh_net.core.model import Action, PinState, Server, ToolCall, Transport
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot, decode, encode, explain
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins, trust_first

MAPPING = {
    "version": 1,
    "sandbox": {
        "mcp": {
            "fail_closed": True,
            "servers": [
                {
                    "id": "fs",
                    "type": "stdio",
                    "command": "npx",
                    "args": ["--key=s3cret-arg"],
                    "env": {"K": "s3cret-env"},
                },
                {
                    "id": "weather",
                    "type": "http",
                    "url": "https://mcp.example.com/mcp",
                    "headers": {"Authorization": "Bearer w"},
                },
            ],
            "denied_tools": [{"server": "fs", "tool": "rm"}],
            "native_tools": ["Bash"],
        }
    },
}


def loaded() -> Snapshot:
    parsed = config.parse(MAPPING)
    base = situation(offers={"fs": [{"name": "read", "description": "long text"}, "rm"], "weather": ["get"]})
    registry = Registry(parsed.sandbox.mcp.servers, base.registry.tools)
    pins, _ = trust_first(Pins(), registry.tools.values(), "2026-01-01T00:00:00Z")
    return Snapshot(7, "abc", parsed, registry, pins, MAPPING)


def over_the_wire(original):
    return decode(orjson.loads(orjson.dumps(encode(original))))  # as the link carries it


@pytest.mark.parametrize(
    "name", ["mcp__fs__read", "mcp__fs__rm", "rm", "fs-read", "Bash", "unknown", "mcp__x__y", "weather_get"]
)
def test_a_worker_judges_as_the_supervisor_does(name):
    original = loaded()
    assert verdict(over_the_wire(original), name) == verdict(original, name)


def test_a_pin_travels():
    original = loaded()
    changed, _ = original.registry.register(
        "weather", situation(offers={"weather": [{"name": "get", "title": "2"}]}).registry.tools_of("weather")
    )
    evolved = over_the_wire(original.evolve(registry=changed))
    assert verdict(evolved, "mcp__weather__get").action is Action.BLOCK
    assert verdict(over_the_wire(original), "mcp__weather__get").action is Action.ALLOW


def test_a_server_that_is_another_travels_and_what_it_said_stays_here():
    original = loaded()
    changed = Identity(
        "weather", Aspect.TLS, PinState.CHANGED, {}, {"certificate": "secretly"}, declared=True
    )
    evolved = original.evolve(pins=original.pins.with_identities([changed]))
    assert "secretly" not in json.dumps(encode(evolved))
    found = verdict(over_the_wire(evolved), "mcp__weather__get")
    assert found.action is Action.BLOCK
    assert found == verdict(evolved, "mcp__weather__get")
    assert "tls_fingerprint" in found.reason


def test_what_is_trusted_of_instructions_travels_as_a_digest():
    said = identity.instructions("secretly be kind")
    known = Identity("weather", Aspect.INSTRUCTIONS, PinState.TRUSTED, said, said)
    evolved = loaded().evolve(pins=Pins.of((), [known]))
    assert "secretly" not in json.dumps(encode(evolved))
    worker = over_the_wire(evolved).pins.identity("weather", Aspect.INSTRUCTIONS)
    assert identity.same(Aspect.INSTRUCTIONS, worker.pinned, said)
    assert not identity.same(Aspect.INSTRUCTIONS, worker.pinned, identity.instructions("be cruel"))
    untrusted = loaded().evolve(pins=Pins.of((), [replace(known, pinned={}, state=PinState.NEW)]))
    assert over_the_wire(untrusted).pins.identity("weather", Aspect.INSTRUCTIONS).pinned == {}


def test_generation_digest_and_servers_travel():
    worker = over_the_wire(loaded())
    assert (worker.generation, worker.digest) == (7, "abc")
    assert worker.registry.server("weather") == Server(
        "weather",
        Transport.HTTP,
        url="https://mcp.example.com/mcp",
        headers={"Authorization": "Bearer w"},
        host="mcp.example.com",
        port=443,
    )
    assert worker.registry.servers_at("mcp.example.com", 443)
    assert worker.judge_connector("weather", "https://mcp.example.com/mcp").action is Action.ALLOW


def test_commands_arguments_and_environments_stay_here():
    text = json.dumps(encode(loaded()))
    for secret in ("s3cret-arg", "s3cret-env", "npx", "long text"):
        assert secret not in text
    assert "Bearer w" in text  # discovery in the workers needs it


def test_encoding_changes_nothing_here():
    original = loaded()
    before = json.dumps(MAPPING)
    encode(original)
    assert json.dumps(MAPPING) == before


def test_a_snapshot_without_a_file_travels():
    empty = Snapshot(1, "", config.parse({}), Registry(), Pins())
    assert over_the_wire(empty) == empty


def test_the_next_generation_keeps_what_was_not_replaced():
    first = loaded()
    second = first.evolve(pins=Pins())
    assert (second.generation, second.registry, second.pins) == (8, first.registry, Pins())
    assert second.mapping is first.mapping


def test_what_was_prepared_says_what_was_not():
    prepared, other = loaded(), loaded()
    prepared.prepare()
    for name in ("read_file", "mcp__fs__read_file", "mcp__nobody__read_file", "unheard_of"):
        assert explain(prepared, ToolCall(name)) == explain(other, ToolCall(name))


def test_explain_is_the_snapshots_own():
    original = loaded()
    assert explain(original, ToolCall("rm")) == original.explain(ToolCall("rm"))
    assert snapshot.explain(original, ToolCall("rm")).verdict == verdict(original, "rm")


def test_snapshots_are_equal_by_what_they_say():
    assert loaded() == loaded()
    assert loaded() != loaded().evolve()


def test_what_detectors_said_of_tools_travels():
    original = loaded()
    mirrored = ((("in", "zone"), "Zone", "string"),)
    tools = {
        key: replace(t, max_severity="high", shadows=True, mirrored=mirrored)
        for key, t in original.registry.tools.items()
    }
    worker = over_the_wire(replace(original, registry=Registry(original.registry.servers, tools)))
    assert tools
    told = {(t.max_severity, t.shadows, t.mirrored) for t in worker.registry.tools.values()}
    assert told == {("high", True, mirrored)}
