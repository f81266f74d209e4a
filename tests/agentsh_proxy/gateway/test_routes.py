"""A message goes to whom it answers, else to whose progress it tells, else to who listens; what nobody reads is bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agentsh_proxy.gateway.review import Passed, Taken
from agentsh_proxy.gateway.routes import MAX_STREAMS, Routes
from agentsh_proxy.gateway.stream import GENERAL, Stream

from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.jsonrpc import Id


@pytest.fixture(name="forgotten")
def _forgotten() -> list[Id]:
    return []


@pytest.fixture(name="routes")
def _routes(forgotten: list[Id]) -> Routes:
    return Routes(forgotten.extend)


def taken(id_: Id, token: Any = None) -> Taken:
    meta = {"_meta": {"progressToken": token}} if token is not None else {}
    data = json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": meta}).encode()
    return Taken(data, (), jsonrpc.parse(data), (id_,))


def passed(message: dict[str, Any], *answered: Id) -> Passed:
    data = json.dumps({"jsonrpc": "2.0"} | message).encode()
    return Passed(data, (), answered, jsonrpc.parse(data))


def got(stream: Stream) -> list[Any]:
    found = []
    while stream.waiting:
        found.append(json.loads(stream.take()[1]).get("id"))
    return found


def test_answers_go_to_their_requests_by_id_and_type(routes: Routes) -> None:
    number, text = routes.begin(taken(1)), routes.begin(taken("1"))
    assert routes.ids == (1, "1") and routes.first_used((3, "1")) == "1"
    routes.carry(passed({"id": "1", "result": {}}, "1"))
    routes.carry(passed({"id": 1, "result": {}}, 1))
    assert (got(number), got(text)) == ([1], ["1"])
    assert routes.ids == () and number.ids == []


def test_whoever_sends_whole_answers_gets_one_that_has_no_other_message_before_it(routes: Routes) -> None:
    asks, said = {"id": 9, "method": "roots/list"}, []
    alone, second = routes.begin(taken(1)), routes.begin(taken(2))
    alone.whole = second.whole = said.append
    routes.carry(passed({"id": 1, "result": {}}, 1))
    routes.carry(passed(asks))
    routes.carry(passed({"id": 2, "result": {}}, 2))
    assert [json.loads(message)["id"] for message in said] == [1] and got(second) == [9, 2]
    for stream, kept in ((alone, 0), (second, 2)):
        routes.leave(stream)
        assert len(routes.listen((stream.number, 0))[2]) == kept


def test_progress_goes_to_whom_it_is_of(routes: Routes) -> None:
    first, second = routes.begin(taken(1, "t")), routes.begin(taken(2, 7))
    note = {"method": "notifications/progress", "params": {"progressToken": "t", "progress": 1}}
    routes.carry(passed(note))
    assert (got(first), got(second)) == ([None], [])


def test_what_a_server_asks_goes_to_the_newest_request_and_what_it_notes_to_who_listens(
    routes: Routes,
) -> None:
    asks, notes = {"id": 9, "method": "roots/list"}, {"method": "notifications/message", "params": {}}
    _, newest = routes.begin(taken(1)), routes.begin(taken(2))
    routes.carry(passed(asks))
    routes.carry(passed(notes))
    assert got(newest) == [9, None]
    general, _, _ = routes.listen(None)
    assert general is not None and general.number == GENERAL
    routes.carry(passed(asks))
    routes.carry(passed(notes))
    assert (got(newest), got(general)) == ([9], [None])


def test_what_nobody_waits_for_is_kept_for_who_comes(routes: Routes) -> None:
    routes.carry(passed({"method": "notifications/message", "params": {}}))
    general, seq, missed = routes.listen((GENERAL, 0))
    assert general is not None and seq == 0 and [number for number, _ in missed] == [1]
    assert routes.listen(None)[0] is None, "somebody reads it"


def test_a_lost_stream_is_found_again_until_its_answer_is_there(routes: Routes) -> None:
    stream = routes.begin(taken(1))
    routes.leave(stream)
    assert not routes.busy
    again, _, _ = routes.listen((stream.number, 0))
    assert again is stream and routes.busy
    routes.carry(passed({"id": 1, "result": {}}, 1))
    routes.leave(stream)
    assert routes.listen((stream.number, 0))[0] is not stream


def test_lost_streams_are_bounded_and_the_oldest_are_forgotten(routes: Routes, forgotten: list[Id]) -> None:
    for id_ in range(MAX_STREAMS + 3):
        routes.leave(routes.begin(taken(id_)))
    assert forgotten == [0, 1, 2]
    assert routes.ids == tuple(range(3, MAX_STREAMS + 3))
