"""Any user may ask about calls; whose listings count for everybody is one user's, and an opening that is none lets nobody in."""

from __future__ import annotations

from typing import Any

import pytest
from shim_front import Front, call

from agentsh_net.control.peer import Peer
from agentsh_net.core.links.shim_link import LinkError


def offered(front: Front, server: str = "fs") -> set[str]:
    return {tool.name for tool in front.snapshot.registry.tools_of(server)}


def test_the_first_users_listings_count_and_anothers_do_not() -> None:
    front = Front()
    front.listed(front.enter(uid=1000), "ls")
    front.listed(front.enter(uid=1001), "ls", "rm")
    assert offered(front) == {"ls"}
    assert "uid 1001" in front.warnings[0] and "uid 1000" in front.warnings[0]
    front.listed(front.enter(uid=1000), "ls", "cat")
    assert offered(front) == {"ls", "cat"}


def test_who_controls_the_daemon_may_step_in() -> None:
    front = Front()
    front.listed(front.enter(uid=1001), "evil")
    front.listed(front.enter(uid=0, trusted=True), "ls")
    assert offered(front) == {"ls"}
    front.listed(front.enter(uid=1001), "evil")
    assert offered(front) == {"ls"}


def test_each_server_has_its_own_first_user() -> None:
    front = Front(("fs", "web"))
    front.listed(front.enter("fs", uid=1000), "ls")
    front.listed(front.enter("web", uid=1001), "get")
    assert (offered(front), offered(front, "web")) == ({"ls"}, {"get"})


def test_an_undeclared_server_is_judged_and_not_registered() -> None:
    front = Front(denied_tools=["rm"])
    handler = front.enter("unknown")
    assert b'"declared":false' in handler.opened()
    front.listed(handler, "rm", "ls")
    assert not front.reports
    assert front.client(handler, call("rm")).line is None
    assert front.client(handler, call("ls")).passed


def test_an_id_is_taken_as_it_was_declared() -> None:
    front = Front(("FileSystem",))
    handler = front.enter("filesystem")
    assert handler.server_id == "FileSystem"
    assert b'"declared":true' in handler.opened()


def test_what_another_client_of_the_same_server_sees_is_not_gone() -> None:
    front = Front()
    one, two = front.enter(), front.enter()
    front.listed(one, "ls", "sample")  # a client that can sample is offered more
    front.listed(two, "ls")
    assert offered(front) == {"ls", "sample"}
    front.shims.end(one)
    front.listed(two, "ls", "new")
    assert offered(front) == {"ls", "new"}


def test_a_session_is_named_by_its_token_and_by_nothing_else() -> None:
    front = Front()
    front.tokens["secret"] = "agent-7"
    assert front.enter(session="secret").session_id == "agent-7"
    assert front.enter(session="guess").session_id == "default"
    assert front.enter(session="").session_id == "default"
    front.client(front.enter(session="secret"), call("ls"))
    assert front.told("mcp_tool_called")[0]["session_id"] == "agent-7"


def test_calls_that_passed_unjudged_are_told_of() -> None:
    front = Front()
    front.enter(unjudged=0)
    assert not front.events
    front.enter(unjudged=3)
    (event,) = front.told("events_lost")
    assert (event["layer"], event["lost"]) == ("shim", 3)
    assert "fs" in event["reason"]


def test_calls_that_were_refused_for_want_of_a_daemon_are_told_of() -> None:
    front = Front()
    front.enter(refused=2)
    (event,) = front.told("events_lost")
    assert (event["layer"], event["lost"]) == ("shim", 2)
    assert "were refused while the daemon was away" in event["reason"]


def test_calls_that_an_earlier_daemon_may_have_forgotten_are_told_of() -> None:
    front = Front()
    front.enter(unrecorded=2)
    (event,) = front.told("events_lost")
    assert (event["layer"], event["lost"]) == ("shim", 2)
    assert "perhaps not recorded" in event["reason"]
    front.enter(unrecorded="many")
    assert len(front.events) == 1


def test_news_wait_where_the_record_has_no_room() -> None:
    front = Front()
    assert front.shims.takes_news()
    front.room = False
    assert not front.shims.takes_news()


def test_who_is_there_is_told_and_who_left_is_not() -> None:
    front = Front()
    handler = front.enter(uid=1000)
    assert front.shims.describe() == [{"server_id": "fs", "session_id": "default", "pid": 4711, "uid": 1000}]
    front.shims.end(handler)
    assert front.shims.describe() == []


@pytest.mark.parametrize(
    "change",
    [{"server": 7}, {"server": ""}, {"server": "x" * 200}, {"hide": 1}, {"unjudged": "1"}, {"session": None}],
)
def test_an_opening_that_is_none_lets_nobody_in(change: dict[str, Any]) -> None:
    opening = {"ask": "open", "server": "fs", "session": "", "hide": False, "unjudged": 0, **change}
    front = Front()
    with pytest.raises(LinkError):
        front.shims.begin(Peer(1, 1, 1), opening, trusted=False)
    assert front.shims.describe() == []
