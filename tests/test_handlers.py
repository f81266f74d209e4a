"""Every call of the control socket does what its command promises, and refuses what it cannot understand."""

from __future__ import annotations

import hashlib
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


def test_status_tells_what_is_in_force_and_where(here: Running) -> None:
    status = here.status()
    assert status["policy"]["mode"] == "enforce"
    assert status["layers"][0]["in_force"]
    assert status["store"]["path"] == str(here.folder / "events.db")
    assert status["servers"][0]["addresses"] == ["10.9.0.2"]
    assert status["proxy"]["listen"] == ""


def test_status_shows_no_path_of_a_provider_that_came_from_a_reference(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("k-secret")
    providers = {
        "anthropic": {"base_url": f"http://127.0.0.1:9/${{file:{tmp_path}/secret}}/v1"},
        "openai": {"base_url": "http://127.0.0.1:9/openai/v1"},
    }
    with running(tmp_path, {"proxy": {"port": 0, "providers": providers}}) as here:
        shown = here.status()["proxy"]["providers"]
    assert shown["anthropic"]["base_url"] == "http://127.0.0.1:9/..."
    assert shown["openai"]["base_url"] == "http://127.0.0.1:9/openai/v1"


def test_explain_is_the_verdict_that_the_daemon_would_give(listed: Running) -> None:
    assert verdict(listed, "delete_all")["rule"] == "sandbox.mcp.denied_tools[0]"
    assert verdict(listed, "get")["action"] == "block"  # not yet trusted


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
    assert len(listed.client.call("pins.trust", server="weather", tool=None)) == 2


def test_a_new_session_has_a_token_of_which_only_the_digest_is_kept(here: Running) -> None:
    told = here.client.call("session.new", session_id="agent-7")
    assert told["session_id"] == "agent-7"
    assert told["env"]["AGENTSH_NET_SESSION"] == told["token"]  # by which shims name the session
    assert here.client.call("session.list") == [{"session_id": "agent-7", "running": False}]
    database = b"".join(path.read_bytes() for path in here.folder.glob("events.db*"))
    assert told["token"].encode() not in database
    assert hashlib.sha256(told["token"].encode()).hexdigest().encode() in database


def test_a_session_without_a_name_gets_one(here: Running) -> None:
    assert here.client.call("session.new", session_id=None)["session_id"].startswith("s-")


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("explain", {}),
        ("explain", {"tool": 7}),
        ("query", {"kind": "nonsense"}),
        ("query", {"kind": "events", "filters": 7}),
        ("session.new", {"session_id": "../x"}),
        ("pins.trust", {}),
        ("pins.reset", {"tool": "x"}),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_reason(
    here: Running, call: str, args: dict[str, Any]
) -> None:
    with pytest.raises(ControlError) as told:
        here.client.call(call, **args)
    assert told.value.kind == "request"
    assert here.status()  # and the daemon goes on


def test_stop_answers_before_it_stops(here: Running) -> None:
    assert here.client.call("stop") == {"stopping": True}
    awaited(lambda: here.exit == 0)
