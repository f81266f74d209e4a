"""Every call of the control socket does what its command promises, and refuses what it cannot understand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Running, awaited, policy, running

from agentsh_net.control.errors import ControlError


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, policy()) as daemon:
        yield daemon


def test_explain_is_the_verdict_that_the_daemon_would_give(here: Running) -> None:
    verdicts = {
        s: here.client.call("explain", tool="x", server=s, args={})["verdict"] for s in ("evil", "good")
    }
    assert verdicts["evil"]["rule"] == "sandbox.mcp.denied_servers[0]"
    assert (verdicts["evil"]["action"], verdicts["good"]["action"]) == ("block", "allow")


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
