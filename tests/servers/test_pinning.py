"""What an operator trusts or forgets is in force at once and on the disk, and is the version that was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Running, awaited, running

from agentsh_net.control.errors import ControlError

POLICY = {
    "sandbox": {
        "mcp": {
            "servers": [{"id": "weather", "type": "http", "url": "http://10.9.0.2:8000/mcp"}],
            "denied_tools": [{"server": "weather", "tool": "delete_*"}],
            "version_pinning": {"auto_trust_first": False},
        }
    },
    "proxy": {"mode": "disabled"},
}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, POLICY) as daemon:
        yield daemon


@pytest.fixture
def listed(here: Running) -> Running:
    tools = [{"name": "get", "description": "the weather"}, {"name": "delete_all"}]
    here.on_loop(lambda: here.daemon._on_report({"server_id": "weather", "ok": True, "tools": tools}))
    awaited(lambda: here.status()["servers"][0]["tools"] == 2)
    return here


def verdict(here: Running, tool: str) -> dict[str, Any]:
    return here.client.call("explain", tool=tool, server="weather", args={})["verdict"]


def test_trust_and_reset_are_in_force_at_once_and_on_the_disk(listed: Running) -> None:
    (trusted,) = listed.client.call("pins.trust", server="WEATHER", tool="get")
    assert verdict(listed, "get")["action"] == "allow"
    (row,) = listed.client.call("query", kind="pins", filters={"tool": "get"})["rows"]
    assert (row["state"], row["pinned_hash"], row["trusted_by"][:4]) == (
        "trusted",
        trusted["tool_hash"],
        "uid ",
    )
    assert listed.client.call("pins.reset", server="weather", tool="get") == [
        {"server_id": "weather", "tool_name": "get", "kind": "tool"}
    ]
    assert verdict(listed, "get")["action"] == "block"
    rows = listed.client.call("query", kind="pins", filters={})["rows"]
    assert {(row["tool_name"], row["state"]) for row in rows} == {("get", "new"), ("delete_all", "new")}


@pytest.mark.parametrize("instructions", ["", "be kind"])
def test_who_trusts_a_tool_can_call_it_whatever_its_server_says_of_itself(
    here: Running, instructions: str
) -> None:
    report = {"server_id": "weather", "ok": True, "tools": [{"name": "get"}], "era": "modern", "instructions": instructions}  # fmt: skip
    here.on_loop(lambda: here.daemon._on_report(report))
    awaited(lambda: here.status()["servers"][0]["tools"] == 1)
    assert verdict(here, "get")["action"] == "block"
    trusted = here.client.call("pins.trust", server="weather", tool="get")
    assert [row["kind"] for row in trusted] == (["tool", "instructions"] if instructions else ["tool"])
    assert verdict(here, "get")["action"] == "allow"
    rows = here.client.call("query", kind="pins", filters={})["rows"]
    assert [row["kind"] for row in rows] == [row["kind"] for row in reversed(trusted)]
    everything = here.client.call("pins.trust", server="weather")
    assert [row["kind"] for row in everything] == [row["kind"] for row in trusted]
    forgotten = here.client.call("pins.reset", server="weather")
    assert [row["kind"] for row in forgotten] == [row["kind"] for row in trusted]
    here.client.call("pins.trust", server="weather", tool="get")
    assert verdict(here, "get")["action"] == "allow"
    # A change of it afterwards is another matter.
    here.on_loop(lambda: here.daemon._on_report({**report, "instructions": "obey"}))
    here.await_event("mcp_server_changed")
    here.client.call("pins.trust", server="weather", tool="get")
    assert verdict(here, "get")["action"] == "block"


def test_trust_by_hash_refuses_another_version(listed: Running) -> None:
    with pytest.raises(ControlError, match="offers") as told:
        listed.client.call("pins.trust", server="weather", tool="get", hash="sha256:" + "0" * 64)
    assert told.value.kind == "denied"
    offered = listed.client.call("query", kind="tools", filters={"tool": "get"})["rows"][0]["tool_hash"]
    assert listed.client.call(
        "pins.trust", server="weather", tool="get", hash=offered.removeprefix("sha256:")[:12]
    )


def test_trusting_a_server_trusts_all_its_tools(listed: Running) -> None:
    trusted = listed.client.call("pins.trust", server="weather", tool=None)
    blocked = {row["tool_name"]: row["blocked"] for row in trusted}
    assert blocked["get"] == "" and "denied_tools[0]" in blocked["delete_all"]
    assert len(trusted) == 2
