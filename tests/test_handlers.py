"""Every call of the control socket does what its command promises, and refuses what it cannot understand."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from running import Running, awaited, policy, running

from agentsh_net.clock import new_id
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer
from agentsh_net.handlers import handlers
from agentsh_net.store.bodies import Bodies, folder_beside


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


def ask(daemon: Any, call: str, uid: int, **args: Any) -> Any:
    """Ask as a process of this user, without a socket between."""
    return asyncio.run(handlers(daemon)[call](args, Peer(1, uid, 0)))


@pytest.mark.parametrize("call", sorted({*handlers(None)} - {"stop"}))  # type: ignore[arg-type] # their names
def test_a_daemon_that_is_starting_answers_to_nothing_but_stop(call: str) -> None:
    with pytest.raises(ControlError) as told:
        ask(SimpleNamespace(ready=False), call, 0)
    assert told.value.kind == "busy"


@pytest.mark.parametrize("remove", [True, False])
def test_a_daemon_that_is_starting_can_be_stopped(remove: bool) -> None:
    stopped: list[bool] = []

    def stop(*, remove: bool) -> None:
        stopped.append(remove)

    async def main() -> None:
        daemon: Any = SimpleNamespace(ready=False, stop=stop)
        assert await handlers(daemon)["stop"]({"remove": remove}, Peer(1, 0, 0)) == {"stopping": True}
        while not stopped:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert stopped == [remove]


def test_bodies_are_shown_to_root_and_the_daemons_own_user_alone(tmp_path: Path) -> None:
    database, record = tmp_path / "events.db", new_id()
    Bodies(folder_beside(database)).append(record, "request", b"secret")
    status = SimpleNamespace(path=str(database))
    daemon = SimpleNamespace(ready=True, writer=SimpleNamespace(status=lambda: status))
    with pytest.raises(ControlError) as told:
        ask(daemon, "llm.show", os.geteuid() + 1, id=record)
    assert told.value.kind == "denied"
    for uid in {0, os.geteuid()}:
        assert ask(daemon, "llm.show", uid, id=record)["request"]["text"] == "secret"
