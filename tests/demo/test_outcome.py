"""A scenario counts only if the attack worked without enforcement, did not with it, honest calls succeeded, and the right event says who stopped it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentsh_net.demo.outcome import Outcome, Run, decisive, layer_of, outcome, stolen
from agentsh_net.demo.scenarios import BY_NAME

PULL = BY_NAME["rug-pull"]
EVENT = {
    "id": "e1",
    "type": "mcp_tool_call_intercepted",
    "action": "block",
    "rule": "sandbox.mcp.version_pinning.on_change",
    "reason": "tool calc/add is not the version that was trusted",
    "server_id": "calc",
    "candidates": [{"server_id": "calc", "tool_name": "add"}],
}
WORKED, STOPPED = Run(worked=True, honest=1, ended=True), Run(worked=False, honest=1, ended=True)


def came_of(without: Run = WORKED, with_: Run = STOPPED, **event: Any) -> Outcome:
    return outcome(PULL, without, with_, [EVENT | event])


def test_an_attack_that_worked_and_was_stopped_by_the_right_event_is_as_expected() -> None:
    row = came_of()
    assert row.as_expected
    assert (row.without, row.with_, row.layer) == ("calc got the key", "stopped", "LLM proxy")
    assert row.to_json()["with"] == "stopped"
    assert (row.event_id, row.honest) == ("e1", 1)


@pytest.mark.parametrize(
    ("without", "with_", "says"),
    [
        (replace(WORKED, worked=False), STOPPED, "stopped"),  # stopped proves nothing
        (WORKED, replace(STOPPED, worked=True), "calc got the key"),
        (WORKED, replace(STOPPED, ended=False), "the agent failed"),
        (WORKED, replace(STOPPED, honest=0), "stopped"),  # the honest call was stopped too
    ],
)
def test_anything_less_is_not(without: Run, with_: Run, says: str) -> None:
    row = came_of(without, with_)
    assert not row.as_expected
    assert row.with_ == says


@pytest.mark.parametrize(
    "other",
    [
        {"action": "allow"},
        {"type": "mcp_tool_called"},
        {"rule": "sandbox.mcp.denied_tools[0]"},
        {"server_id": "mail", "candidates": []},
        {"via": "gateway"},
    ],
)
def test_another_event_does_not_count(other: dict[str, Any]) -> None:
    assert decisive(PULL, [EVENT | other]) is None
    row = came_of(**other)
    assert (row.with_, row.as_expected) == ("no such event", False)


def test_a_layer_is_read_from_the_event() -> None:
    assert layer_of({"layer": "ebpf"}) == "eBPF"
    assert layer_of({"layer": "nftables"}) == "nftables"
    assert layer_of({"via": "shim"}) == "shim"
    assert layer_of({"type": "mcp_tool_call_intercepted"}) == "LLM proxy"


def test_a_theft_is_the_secret_in_the_hands_of_the_thief() -> None:
    row = {"server": "calc", "tool": "add", "arguments": {"context": "s3"}}
    assert stolen(PULL, [row], "s3")
    assert not stolen(PULL, [row], "another")
    assert not stolen(PULL, [row | {"server": "mail"}], "s3")


def test_what_detectors_found_is_named_in_the_reason() -> None:
    assert came_of(detections=[{"pattern": "block-tag"}]).reason.endswith("[block-tag]")
