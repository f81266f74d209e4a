"""What detectors find in a call's arguments stands in its event, whichever layer saw the call; other events stay as they are."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import Any

import pytest

from agentsh_net.audit import call_inspection
from agentsh_net.audit.call_inspection import CallInspector
from agentsh_net.core.configuration.settings import CustomPattern, Inspection
from agentsh_net.core.inspect.contents import inspect_calls

CUSTOM = Inspection(custom_patterns=(CustomPattern("project", "PROJ-[0-9]+", severity="medium"),))


def event(value: Any, kind: str = "mcp_tool_called") -> dict[str, Any]:
    return {"type": kind, "input": value, "detections": [], "max_severity": ""}


@pytest.mark.parametrize("kind", ["mcp_tool_called", "mcp_tool_call_intercepted"])
def test_a_call_that_reaches_for_a_secret_says_so(kind: str) -> None:
    inspector = CallInspector(Inspection)
    value = event({"path": "/home/u/.ssh/id_rsa"}, kind)
    assert inspector.wanted(value) and inspector.quick(value)
    found = inspector.inspected(value)
    assert found["max_severity"]
    assert {d["path"] for d in found["detections"]} == {"$.path"}
    assert value["detections"] == [], "the value that was given is not changed"


def test_ordinary_arguments_leave_the_event_as_it_is() -> None:
    value = event({"path": "/srv/app/main.py", "content": "print(1); x = `ls`"})
    assert CallInspector(Inspection).inspected(value) is value


def test_the_operators_patterns_are_those_of_the_policy_in_force() -> None:
    policy = [Inspection()]
    inspector = CallInspector(lambda: policy[0])
    value = event({"title": "PROJ-1234"})
    assert inspector.inspected(value)["detections"] == []
    policy[0] = CUSTOM
    assert [d["pattern"] for d in inspector.inspected(value)["detections"]] == ["project"]


def test_arguments_that_are_remembered_take_the_room_that_is_said() -> None:
    inspector = CallInspector(Inspection)
    inspector.together([event({"number": -1})])
    tracemalloc.start()
    try:
        for number in range(call_inspection.MAX_KNOWN):
            inspector.together([event({"number": number})])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < call_inspection.MAX_KNOWN * call_inspection.MAX_KNOWN_SIZE


def test_arguments_that_come_again_are_looked_at_once_and_told_of_each_time(monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    looked: list[Any] = []

    def inspect(values: Any, customs: Any) -> Any:
        looked.extend(values)
        return inspect_calls(values, customs)

    monkeypatch.setattr(call_inspection, "inspect_calls", inspect)
    monkeypatch.setattr(call_inspection, "MAX_KNOWN", 2)
    policy = [Inspection()]
    inspector = CallInspector(lambda: policy[0])
    secret = event({"path": "/home/u/.ssh/id_rsa", "title": "PROJ-1"})
    (first,) = inspector.together([secret])
    (second,) = inspector.together([secret | {"id": "2"}])
    assert len(looked) == 1
    assert first["detections"] == second["detections"] != []
    assert second["id"] == "2"
    for number in range(5):
        inspector.together([event({"n": number})])
    inspector.together([secret])
    assert len(looked) == 7  # and forgotten where there is no room
    assert len(inspector._known) == 2
    policy[0] = CUSTOM
    (third,) = inspector.together([secret])
    assert "project" in {d["pattern"] for d in third["detections"]}  # and where the patterns are others
    inspector.together([event({"a": "x" * 2000})])
    assert len(inspector._known) == 1  # long ones are not remembered


def test_of_many_calls_each_is_told_what_it_holds_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_inspection, "MAX_TOGETHER", 7)
    inspector = CallInspector(Inspection)
    values = [event({"n": number}) for number in range(50)]
    values[3]["input"] = {"path": "/home/u/.ssh/id_rsa"}
    values[20]["input"] = {"a": "x" * 2000}
    values[21]["input"] = None
    values[44]["input"] = {"other": {"deep": "/home/u/.aws/credentials"}}
    values.append(values[3] | {"id": "again"})
    told = inspector.together(values)
    assert [i for i, value in enumerate(told) if value["detections"]] == [3, 44, 50]
    assert [d["path"] for d in told[44]["detections"]] == ["$.other.deep"]
    assert told == [
        value if value["input"] is None else CallInspector(Inspection).inspected(value) for value in values
    ]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (event({}), False),
        (event(None), False),
        (event("not JSON {"), True),
        (event({"a": 1}, "mcp_tool_seen"), False),
    ],
)
def test_only_calls_with_arguments_are_read(value: Any, wanted: bool) -> None:
    assert CallInspector(Inspection).wanted(value) is wanted


def test_long_arguments_are_not_read_on_the_spot_and_counting_them_is_quick() -> None:
    inspector = CallInspector(Inspection)
    assert inspector.quick(event({"a": ["x" * 100] * 30}))
    assert not inspector.quick(event({"a": "x" * 5000}))
    deep: Any = "x"
    for _ in range(20_000):
        deep = [deep]
    began = time.perf_counter()
    assert not inspector.quick(event([deep, *range(100_000)]))
    assert time.perf_counter() - began < 1


def test_long_arguments_are_recorded_when_they_are_read_or_when_the_daemon_ends() -> None:
    inspector, kept = CallInspector(Inspection), []
    inspector.take(event({"path": "/tmp"}), kept.append)
    assert len(kept) == 1
    long = event({"a": "x" * 5000, "path": "~/.ssh/id_rsa"})
    reading = inspector.take(long, kept.append)
    assert reading is not None and len(kept) == 1
    asyncio.run(reading)
    assert kept[1]["max_severity"]

    async def ended() -> None:
        reading = inspector.take(long, kept.append)
        assert reading is not None
        task = asyncio.create_task(reading)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(ended())
    assert kept[2] == long
