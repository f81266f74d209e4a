"""A call is found by the id of any of its events and by the model's own, with what belongs to it and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentsh_net import clock
from agentsh_net.core.audit.events import (
    Event,
    NetworkConnection,
    PolicyReloaded,
    ToolCalled,
    ToolCallIntercepted,
    ToolResultInspected,
)
from agentsh_net.core.errors import ProtocolError
from agentsh_net.store import records, stories
from agentsh_net.store.connect import open_writer

CANDIDATES = [{"server_id": "weather", "tool_name": "get", "tool_hash": ""}]
INTENT = ToolCallIntercepted(session_id="s1", server_id="weather", tool_name="mcp__weather__get", tool_call_id="toolu_1", candidates=CANDIDATES)  # fmt: skip
CALLED = ToolCalled(session_id="s1", server_id="weather", tool_name="get", jsonrpc_id=1, via="shim", pid=7)
RESULT = ToolResultInspected(session_id="s1", server_id="weather", tool_name="get", jsonrpc_id=1, pid=7)
CONNECTED = NetworkConnection(server_id="weather", remote_addr="10.0.0.1:443")


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "events.db"
    connection = open_writer(path)

    def write(event: Event, **fields: Any) -> str:
        stamped = replace(event, **fields).stamped(id=clock.new_id(), timestamp=clock.now_rfc3339())
        connection.execute(records.INSERT_EVENT, records.event_row(stamped.to_json()))
        return stamped.id

    yield path, write
    connection.close()


def ids(told):
    return [event["id"] for event in told.events]


def test_the_whole_story_is_found_from_any_of_its_ends(scene):
    path, write = scene
    write(CALLED, jsonrpc_id=9), write(RESULT, jsonrpc_id=9)
    intent = write(INTENT)
    called = write(CALLED, intercepted_id=intent, tool_call_id="toolu_1")
    connected = write(CONNECTED)
    write(CONNECTED, server_id="web"), write(PolicyReloaded())
    result = write(RESULT)
    for anchor in (intent, called, connected, result, "toolu_1"):
        told = stories.find(path, anchor)
        assert ids(told) == [intent, called, connected, result], anchor


def test_a_call_that_no_model_wrote_and_one_that_never_arrived_are_stories_too(scene):
    path, write = scene
    called = write(CALLED)
    assert ids(stories.find(path, called)) == [called]
    blocked = write(INTENT, action="block")
    assert ids(stories.find(path, "toolu_1")) == [blocked]


def test_of_calls_with_one_id_of_the_models_the_newest_is_told(scene):
    path, write = scene
    write(INTENT)
    newest = write(INTENT)
    assert stories.find(path, "toolu_1").intent["id"] == newest


def test_an_id_of_nothing_and_one_of_no_call(scene):
    path, write = scene
    assert stories.find(path, "nothing") is None
    with pytest.raises(ProtocolError, match="belongs to no recorded call"):
        stories.find(path, write(PolicyReloaded()))
    with pytest.raises(ProtocolError, match="1 to 256"):
        stories.find(path, "")
    with pytest.raises(ProtocolError, match="in UTF-8"):
        stories.find(path, "\udcff")


def test_the_connection_that_the_gateway_had_open_for_the_session_belongs_to_its_call(scene):
    path, write = scene
    own = {"session_id": "s1", "layer": "proxy", "correlated": True}
    write(CONNECTED, **own)
    opened = write(CONNECTED, **own)
    write(CONNECTED, **own | {"session_id": "s2"}), write(CONNECTED, **own | {"server_id": "web"})
    # Well before the call.
    connection = open_writer(path)
    early = []
    for (old,) in connection.execute("SELECT id FROM events"):
        a_minute_before = f"{int(old[:8] + old[9:13], 16) - 60_000:012x}"  # an id begins with milliseconds
        early.append((f"{a_minute_before[:8]}-{a_minute_before[8:]}{old[13:]}", old))
    for new, old in early:
        connection.execute("UPDATE events SET id = ? WHERE id = ?", (new, old))
    connection.close()
    called = write(CALLED, via="gateway")
    assert [c["id"] for c in stories.find(path, called).connections] == [opened]
    under_a_shim = write(CALLED)
    assert stories.find(path, under_a_shim).connections == ()
    fresh = write(CONNECTED, **own)
    assert [c["id"] for c in stories.find(path, called).connections] == [fresh]
