"""Whichever way an event takes onto the record, it is masked, counted, joined, read by the detectors, kept once and shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from situations import situation

from agentsh_net.audit.call_inspection import MAX_AT_ONCE
from agentsh_net.audit.recording import Outlets, Recording
from agentsh_net.core.audit.drafts import Sheet, drawn_up
from agentsh_net.core.audit.events import NetworkConnection, PolicyReloaded, ToolCalled
from agentsh_net.core.audit.tally import Tally
from agentsh_net.core.configuration.settings import Dlp
from agentsh_net.core.snapshot import Snapshot

CALL = ToolCalled(
    server_id="fs", tool_name="ls", jsonrpc_id=1, input={"path": "/home/u/.ssh/id_rsa"}, via="shim"
)


class Scene:
    def __init__(self) -> None:
        self.snapshot: Snapshot = situation(("fs",), {"fs": ["ls"]})
        self.noted: list[Any] = []
        self.kept: list[Any] = []
        self.shown: list[Any] = []
        self.tally = Tally()
        self.tasks: list[Any] = []
        self.followed = True
        self.rows: list[Any] = []
        outlets = Outlets(
            self.noted.append, self.kept.extend, self.rows.extend, self.shown.append, lambda: self.followed
        )
        self.recording = Recording(
            lambda: self.snapshot,
            outlets,
            self.tally,
            lambda reading: self.tasks.append(asyncio.get_running_loop().create_task(reading)),
        )

    def emit(self, call: ToolCalled) -> None:
        self.recording.emit(call)

    def calls(self, call: ToolCalled) -> None:
        event = call.to_stamped_json(id="1", timestamp="2026-01-01T00:00:00.000000Z")
        self.recording.calls([event], len(json.dumps(call.input)))

    def sheet(self, call: ToolCalled, *more: Any) -> None:
        texts = [json.dumps(value, separators=(",", ":")) for value in (call.input, *more)]
        draft = drawn_up(replace(call, input=None).to_json())
        ids = [str(number) for number in range(len(texts))]
        self.recording.sheet(
            Sheet("2026-01-01T00:00:00.000000Z", ids, [(draft, "1", text) for text in texts])
        )


Way = Callable[[Scene, ToolCalled], None]
WAYS = pytest.mark.parametrize("way", [Scene.emit, Scene.calls, Scene.sheet])


@WAYS
def test_a_call_is_counted_read_kept_and_shown(way: Way) -> None:
    scene = Scene()
    way(scene, CALL)
    assert scene.kept == scene.shown
    (event,) = scene.kept
    assert event["id"] and event["timestamp"]
    assert event["max_severity"], "detectors read the arguments"
    assert scene.tally.calls == {("shim", "allow"): 1}


@WAYS
def test_a_call_is_masked_before_anybody_sees_it(way: Way) -> None:
    scene = Scene()
    config = replace(scene.snapshot.config, dlp=Dlp(mode="redact"))
    scene.snapshot = replace(scene.snapshot, config=config)
    way(scene, replace(CALL, input={"to": "jane.roe@example.com"}))
    assert len(scene.kept) == 1
    assert "jane.roe" not in str((scene.kept, scene.shown, scene.noted))


@WAYS
def test_a_call_explains_the_connection_after_it(way: Way) -> None:
    async def main() -> None:
        scene = Scene()
        way(scene, CALL)
        scene.recording.emit(NetworkConnection(server_id="fs", action="allow", layer="ebpf"))
        assert [e["correlated"] for e in scene.kept if e["type"] == NetworkConnection.type] == [True]

    asyncio.run(main())


@WAYS
def test_long_arguments_are_read_in_a_thread_and_recorded_once(way: Way) -> None:
    async def main() -> None:
        scene = Scene()
        text = "a " * MAX_AT_ONCE + "/home/u/.ssh/id_rsa"
        way(scene, replace(CALL, input={"path": text}))
        assert scene.kept == []
        await asyncio.gather(*scene.tasks)
        assert [bool(event["max_severity"]) for event in scene.kept] == [True]
        assert scene.shown == scene.kept

    asyncio.run(main())


def test_calls_that_hold_nothing_and_that_nobody_follows_are_kept_as_rows() -> None:
    async def main() -> None:
        scene = Scene()
        scene.followed = False
        scene.sheet(replace(CALL, input={"a": 1}), {"q": "a walk in the park"}, {"text": "two\nlines"})
        assert [json.loads(row[-1])["input"] for row in scene.rows] == [
            {"a": 1}, {"q": "a walk in the park"}, {"text": "two\nlines"},
        ]  # fmt: skip
        assert (scene.kept, scene.shown, scene.tally.calls) == ([], [], {("shim", "allow"): 3})
        scene.recording.emit(NetworkConnection(server_id="fs", action="allow", layer="ebpf"))
        assert [event["correlated"] for event in scene.kept] == [True]

    asyncio.run(main())


@pytest.mark.parametrize(
    "more", [{"path": "/home/u/.ssh/id_rsa"}, {"note": "a" + "\n" * 3 + "~/.aws/credentials"}]
)
def test_where_one_of_them_holds_something_each_is_told_of_with_what_it_holds(more: Any) -> None:
    scene = Scene()
    scene.followed = False
    scene.sheet(replace(CALL, input={"a": 1}), more, {"b": 2})
    assert scene.rows == []
    assert [bool(event["max_severity"]) for event in scene.kept] == [False, True, False]
    assert scene.tally.calls == {("shim", "allow"): 3}


def test_a_connection_that_nothing_explains_is_recorded_when_what_waits_is_flushed() -> None:
    async def main() -> None:
        scene = Scene()
        scene.recording.emit(NetworkConnection(server_id="fs", action="allow", layer="ebpf"))
        assert scene.kept == []
        scene.recording.flush()
        assert [event["correlated"] for event in scene.kept] == [False]

    asyncio.run(main())


def test_other_events_are_noted_and_kept_as_they_are() -> None:
    scene = Scene()
    scene.recording.emit(PolicyReloaded(generation=2, digest="d"))
    assert scene.noted == scene.kept == scene.shown
    assert scene.tally.reloads == {"applied": 1}
