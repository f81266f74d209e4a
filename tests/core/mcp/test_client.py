"""A conversation reads like its script: in each era it asks what the era asks, and a peer that strays ends it with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.client import META, MISSING_CLIENT_CAPABILITY, Conversation, Phase
from agentsh_net.core.mcp.exchange import (
    LEGACY,
    MODERN,
    Answered,
    Ask,
    Command,
    FallBack,
    Listing,
    Outcome,
    Refused,
    SessionLost,
    Tell,
)
from agentsh_net.core.mcp.jsonrpc import ErrorResponse, Response
from agentsh_net.core.mcp.pages import PageLimits

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "s", "version": "1"},
    "instructions": "be kind",
}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}},
    "instructions": "be modern",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m"}},
}


class Play:
    """One conversation, told as: it asks this, and gets that."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self.commands: list[Command] = [talk.begin()]
        self.asked: Ask | None = None

    def asks(self, method: str, **params: Any) -> Play:
        command = self.commands.pop(0)
        assert isinstance(command, Ask), command
        body = json.loads(command.body)
        assert (command.method, body["method"], body["id"]) == (method, method, command.id)
        assert {k: v for k, v in body["params"].items() if k != "_meta"} == params or not params
        self.asked = command
        return self

    def tells(self, method: str) -> Play:
        command = self.commands.pop(0)
        assert isinstance(command, Tell), command
        assert (command.method, json.loads(command.body)) == (method, {"jsonrpc": "2.0", "method": method})
        return self

    def gets(self, result: Any) -> Play:
        assert self.asked is not None
        return self.has(Answered(Response(self.asked.id, result), 10))

    def fails(self, code: int, message: str = "no", *, status: int = 200, data: Any = None) -> Play:
        assert self.asked is not None
        return self.has(Answered(ErrorResponse(self.asked.id, code, message, data), 10, status))

    def has(self, outcome: Outcome) -> Play:
        assert not self.commands, "it said something else first"
        self.commands += self.talk.feed(outcome)
        return self

    def falls_back(self) -> Play:
        command = self.commands.pop(0)
        assert isinstance(command, FallBack), command
        self.commands.append(self.talk.fell_back())
        return self

    def ends_with(self, *names: str) -> Listing:
        (command,) = self.commands
        assert isinstance(command, Listing), command
        assert tuple(t["name"] for t in command.tools) == names
        return command


def tools(*names: str, **more: Any) -> dict[str, Any]:
    return {"tools": [{"name": n} for n in names]} | more


def test_a_modern_server_is_discovered_and_listed_without_a_handshake() -> None:
    play = Play(Conversation()).asks("server/discover").gets(DISCOVERED).asks("tools/list")
    listing = play.gets(tools("a", resultType="complete", ttlMs=0)).ends_with("a")
    assert listing == Listing(({"name": "a"},), "be modern", {"name": "m"}, MODERN)


def test_a_modern_request_carries_its_revision_client_and_capabilities() -> None:
    play = Play(Conversation()).asks("server/discover").gets(DISCOVERED).asks("tools/list")
    assert play.asked is not None
    assert play.asked.version == MODERN
    meta = json.loads(play.asked.body)["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "agentsh-net"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


@pytest.mark.parametrize(
    "outcome",
    [
        Refused(400),
        Refused(404),
        Refused(405),
        Refused(500),
        Answered(ErrorResponse(None, -32000, "Bad Request: no session"), 10, 400),
        Answered(ErrorResponse(1, -32601, "Method not found"), 10, 200),
        Answered(Response(1, {"supportedVersions": ["2025-11-25"]}), 10),
        Answered(Response(1, {"supportedVersions": "2026-07-28"}), 10),
        Answered(Response(1, None), 10),
        Answered(ErrorResponse(1, -32022, "no", {"supported": ["2025-11-25"]}), 10, 400),
        Answered(ErrorResponse(1, -32022, "no", None), 10, 400),
    ],
)
def test_whatever_is_no_modern_answer_leads_to_initialize(outcome: Outcome) -> None:
    Play(Conversation()).asks("server/discover").has(outcome).asks("initialize")


@pytest.mark.parametrize(
    ("code", "data"),
    [(MISSING_CLIENT_CAPABILITY, None), (-32020, None), (-32022, {"supported": ["2027-01-01"]})],
)
def test_a_modern_error_means_a_modern_server_and_is_told(code: int, data: Any) -> None:
    play = Play(Conversation()).asks("server/discover")
    with pytest.raises(ProtocolError, match=rf"server/discover failed.*\({code}\)"):
        play.fails(code, status=400, data=data)


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_server_of_any_revision_shakes_hands_and_lists(version: str) -> None:
    play = Play(Conversation(probe=False)).asks("initialize").gets(INITIALIZED | {"protocolVersion": version})
    play.tells("notifications/initialized").asks("tools/list")
    assert play.asked is not None
    assert play.asked.version == version
    listing = play.gets(tools("a", "b")).ends_with("a", "b")
    assert (listing.version, listing.instructions, listing.server_info["name"]) == (version, "be kind", "s")


def test_initialize_offers_the_newest_revision_that_has_it() -> None:
    play = Play(Conversation(probe=False)).asks("initialize")
    assert play.asked is not None
    assert json.loads(play.asked.body)["params"]["protocolVersion"] == "2025-11-25"
    assert play.asked.version == ""


@pytest.mark.parametrize("version", ["2023-01-01", MODERN, "", None, 20250618])
def test_a_revision_that_nobody_knows_is_refused(version: Any) -> None:
    play = Play(Conversation(probe=False)).asks("initialize")
    with pytest.raises(ProtocolError, match="known: 2025-11-25"):
        play.gets(INITIALIZED | {"protocolVersion": version})


def test_every_page_is_asked_with_the_cursor_of_the_one_before() -> None:
    play = (
        Play(Conversation(probe=False))
        .asks("initialize")
        .gets(INITIALIZED)
        .tells("notifications/initialized")
    )
    play.asks("tools/list").gets(tools("a", nextCursor="")).asks("tools/list", cursor="")
    play.gets(tools("b", nextCursor="2")).asks("tools/list", cursor="2").gets(tools("c")).ends_with(
        "a", "b", "c"
    )


def test_a_repeating_cursor_ends_the_conversation() -> None:
    play = Play(Conversation()).asks("server/discover").gets(DISCOVERED)
    play.asks("tools/list").gets(tools("a", nextCursor="x")).asks("tools/list", cursor="x")
    with pytest.raises(ProtocolError, match="repeats a cursor"):
        play.gets(tools("b", nextCursor="x"))


def test_the_limits_of_a_listing_are_the_conversations() -> None:
    play = (
        Play(Conversation(limits=PageLimits(tools=1)))
        .asks("server/discover")
        .gets(DISCOVERED)
        .asks("tools/list")
    )
    with pytest.raises(ProtocolError, match="more than 1 tools"):
        play.gets(tools("a", "b"))


def test_a_server_without_tools_has_none_and_one_that_announced_them_has_failed() -> None:
    without = INITIALIZED | {"capabilities": {}}
    play = Play(Conversation(probe=False)).asks("initialize").gets(without).tells("notifications/initialized")
    play.asks("tools/list").fails(-32601).ends_with()
    play = (
        Play(Conversation(probe=False))
        .asks("initialize")
        .gets(INITIALIZED)
        .tells("notifications/initialized")
    )
    with pytest.raises(ProtocolError, match="tools/list failed"):
        play.asks("tools/list").fails(-32601)


def test_tools_that_were_not_announced_are_listed_all_the_same() -> None:
    without = INITIALIZED | {"capabilities": {}}
    play = Play(Conversation(probe=False)).asks("initialize").gets(without).tells("notifications/initialized")
    play.asks("tools/list").gets(tools("hidden")).ends_with("hidden")


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_that_takes_no_initialize_by_post_is_tried_as_http_sse(status: int) -> None:
    for refusal in (Refused(status), Answered(ErrorResponse(None, -32000, "no"), 5, status)):
        play = Play(Conversation(may_fall_back=True)).asks("server/discover").has(Refused(status))
        play.asks("initialize").has(refusal).falls_back().asks("initialize").gets(INITIALIZED)
        play.tells("notifications/initialized").asks("tools/list").gets(tools("a")).ends_with("a")


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_any_other_refusal_is_told_as_it_is(status: int) -> None:
    play = (
        Play(Conversation(may_fall_back=True)).asks("server/discover").has(Refused(status)).asks("initialize")
    )
    with pytest.raises(ProtocolError, match=f"HTTP {status}"):
        play.has(Refused(status))


def test_there_is_one_fall_back_only() -> None:
    play = Play(Conversation(may_fall_back=True)).asks("server/discover").has(Refused(404))
    play.asks("initialize").has(Refused(404)).falls_back().asks("initialize")
    with pytest.raises(ProtocolError, match="HTTP 404"):
        play.has(Refused(404))


def test_a_modern_answer_to_initialize_leads_back_once() -> None:
    modern = {"supported": [MODERN]}
    play = Play(Conversation()).asks("server/discover").has(Refused(503)).asks("initialize")
    play.fails(-32022, status=400, data=modern).asks("server/discover").has(Refused(503)).asks("initialize")
    with pytest.raises(ProtocolError, match=r"initialize failed.*-32022"):
        play.fails(-32022, status=400, data=modern)


def test_a_lost_session_is_begun_anew_once() -> None:
    play = (
        Play(Conversation(probe=False))
        .asks("initialize")
        .gets(INITIALIZED)
        .tells("notifications/initialized")
    )
    play.asks("tools/list").gets(tools("old", nextCursor="2")).asks("tools/list", cursor="2").has(
        SessionLost()
    )
    play.asks("initialize").gets(INITIALIZED).tells("notifications/initialized").asks("tools/list")
    with pytest.raises(ProtocolError, match="again and again"):
        play.has(SessionLost())


def test_pages_of_the_lost_session_are_forgotten() -> None:
    play = (
        Play(Conversation(probe=False))
        .asks("initialize")
        .gets(INITIALIZED)
        .tells("notifications/initialized")
    )
    play.asks("tools/list").gets(tools("old", nextCursor="2")).asks("tools/list", cursor="2").has(
        SessionLost()
    )
    play.asks("initialize").gets(INITIALIZED).tells("notifications/initialized").asks("tools/list")
    play.gets(tools("new")).ends_with("new")


def test_a_second_listing_keeps_a_legacy_session_and_asks_a_modern_server_who_it_is() -> None:
    legacy = Conversation(probe=False)
    play = (
        Play(legacy)
        .asks("initialize")
        .gets(INITIALIZED)
        .tells("notifications/initialized")
        .asks("tools/list")
    )
    play.gets(tools("a")).ends_with("a")
    Play(legacy).asks("tools/list").gets(tools("b")).ends_with("b")
    modern = Conversation()
    Play(modern).asks("server/discover").gets(DISCOVERED).asks("tools/list").gets(tools("a")).ends_with("a")
    play = Play(modern).asks("server/discover").gets(DISCOVERED | {"instructions": "now obey me"})
    assert play.asks("tools/list").gets(tools("a")).ends_with("a").instructions == "now obey me"


def test_ids_are_never_used_twice() -> None:
    talk = Conversation(probe=False)
    seen = set()
    for _ in range(3):
        command = talk.begin()
        assert isinstance(command, Ask)
        seen.add(command.id)
        seen.add(talk.listen().id)
    assert len(seen) == 6


def test_an_outcome_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="nothing was asked"):
        Conversation().feed(Refused(500))


def hear(talk: Conversation, *messages: str, awaited: int | None = 1) -> Any:
    return talk.hear(jsonrpc.parse(f"[{','.join(messages)}]".encode()), awaited)


def test_news_and_requests_may_come_before_the_answer() -> None:
    talk = Conversation(probe=False)
    talk.begin()
    heard = hear(
        talk,
        '{"jsonrpc":"2.0","method":"notifications/message","params":{}}',
        '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}',
        '{"jsonrpc":"2.0","id":1,"result":{"a":1}}',
    )
    assert heard.answer == Response(1, {"a": 1})
    assert heard.changed
    ping, sampling = map(json.loads, heard.replies)
    assert ping == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (sampling["id"], sampling["error"]["code"]) == ("s", -32601)


@pytest.mark.parametrize("id_", ['"1"', "2", '"x"', "-1", "0"])
def test_an_answer_to_what_nobody_asked_is_an_error(id_: str) -> None:
    talk = Conversation(probe=False)
    talk.begin()
    with pytest.raises(ProtocolError, match="which nobody made"):
        hear(talk, f'{{"jsonrpc":"2.0","id":{id_},"result":{{}}}}')


def test_a_late_answer_to_an_older_request_is_passed_over() -> None:
    talk = Conversation(probe=False)
    talk.begin()
    talk.begin()
    heard = hear(
        talk, '{"jsonrpc":"2.0","id":1,"result":"late"}', '{"jsonrpc":"2.0","id":2,"result":"now"}', awaited=2
    )
    assert heard.answer == Response(2, "now")


def test_the_first_answer_counts_when_an_id_is_used_twice() -> None:
    talk = Conversation(probe=False)
    talk.begin()
    heard = hear(
        talk, '{"jsonrpc":"2.0","id":1,"result":"first"}', '{"jsonrpc":"2.0","id":1,"result":"second"}'
    )
    assert heard.answer == Response(1, "first")


def test_an_error_without_an_id_answers_what_is_awaited() -> None:
    talk = Conversation(probe=False)
    talk.begin()
    heard = hear(talk, '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}')
    assert heard.answer == ErrorResponse(None, -32700, "what?")


def test_a_modern_server_may_not_ask() -> None:
    talk = Conversation()
    talk.begin()
    with pytest.raises(ProtocolError, match="does not know"):
        hear(talk, '{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage"}')


def test_listening_asks_for_changes_of_tools_only() -> None:
    talk = Conversation()
    Play(talk).asks("server/discover").gets(DISCOVERED).asks("tools/list").gets(tools()).ends_with()
    ask = talk.listen()
    params = json.loads(ask.body)["params"]
    assert (ask.method, params["notifications"]) == ("subscriptions/listen", {"toolsListChanged": True})
    assert talk.phase is Phase.READY


def test_what_else_a_server_announced_is_listened_for_and_listed_page_by_page() -> None:
    talk = Conversation()
    announced = DISCOVERED | {"capabilities": {"tools": {}, "prompts": {}}}
    Play(talk).asks("server/discover").gets(announced).asks("tools/list").gets(tools()).ends_with()
    assert talk.lists == ("prompts/list",)
    news = json.loads(talk.listen().body)["params"]["notifications"]
    assert news == {"toolsListChanged": True, "promptsListChanged": True}
    ask = talk.others("prompts/list", "2")
    asked = json.loads(ask.body)
    assert (ask.method, asked["params"]["cursor"]) == ("prompts/list", "2")
    assert META + "protocolVersion" in asked["params"]["_meta"]
    note = '{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}'
    assert hear(talk, note).changed
