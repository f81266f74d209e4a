"""The shim asks about lines that matter and about no others; an answer is recognised by the id of its request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agentsh_proxy.shim import traffic as module
from agentsh_proxy.shim.traffic import Traffic, judged, read

from agentsh_net.core.mcp.skim import Skim


def request(method: str, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def answer(id_: Any, result: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": {} if result is None else result}).encode()


def after(*requests: dict[str, Any]) -> Traffic:
    traffic = Traffic(Skim())
    traffic.sent(list(requests))
    return traffic


def test_a_call_is_seen_alone_and_in_a_batch_and_what_cannot_be_read_is_none() -> None:
    one = json.dumps(request("tools/call")).encode()
    for line in (one, b'[{"method":"ping"},' + one + b"]"):
        found = read(line)
        assert found is not None and judged(found, reading=False)
    assert read(b'{"method":"a","method":"tools/call"}') is None
    assert not judged(read(b'{"method":"tools/list"}') or [], reading=True)


def test_answers_to_ordinary_requests_do_not_matter() -> None:
    traffic = after(request("tools/call", 1), request("ping", "1"), request("resources/read", 2))
    for id_ in (1, "1", 2):
        assert traffic.matters(answer(id_)) is None


def test_every_answer_matters_where_results_do_and_names_what_was_asked_for() -> None:
    traffic = Traffic(Skim())
    asked = [
        request("resources/read", 1, uri="file:///n"),
        request("prompts/get", 2, name="p"),
        request("ping", 3),
    ]
    traffic.sent(asked, results=True)
    assert traffic.matters(answer(1)) == {
        "asked": [[0, 1, "resources/read", False, "file:///n"]],
        "stray": False,
    }
    assert traffic.matters(answer(2)) == {"asked": [[0, 2, "prompts/get", False, "p"]], "stray": False}
    assert traffic.matters(answer(3)) == {"asked": [[0, 3, "ping", False, ""]], "stray": False}


def test_answers_to_listings_and_handshakes_matter_once() -> None:
    traffic = after(request("initialize", 0), request("tools/list", "l"), request("tools/list", 7, cursor=""))
    assert traffic.matters(answer(0)) == {"asked": [[0, 0, "initialize", False, ""]], "stray": False}
    assert traffic.matters(answer("l")) == {"asked": [[0, "l", "tools/list", False, ""]], "stray": False}
    batch = b"[" + answer(9) + b"," + answer(7) + b"]"
    assert traffic.matters(batch) == {"asked": [[1, 7, "tools/list", True, ""]], "stray": True}


@pytest.mark.parametrize("id_", ["1", 1.0, True, "0x1", [1]])
def test_an_answer_under_a_like_id_is_a_stray_that_may_mean_the_listing(id_: Any) -> None:
    traffic = after(request("tools/list", 1))
    why = traffic.matters(answer(id_, {"tools": []}))
    assert why == {"asked": [[0, 1, "tools/list", False, ""]], "stray": True}


def test_an_answer_without_an_id_is_no_stray_and_matters_where_results_do() -> None:
    line = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}'
    assert Traffic(Skim()).matters(line) is None
    assert Traffic(Skim()).matters(line, results=True) == {"asked": [], "stray": False}


@pytest.mark.parametrize(
    "method",
    [
        "sampling/createMessage",
        "elicitation/create",
        "notifications/tools/list_changed",
        "notifications/tasks",
    ],
)
def test_what_a_server_wants_of_its_client_matters(method: str) -> None:
    assert Traffic(Skim()).matters(json.dumps(request(method)).encode()) == {"asked": [], "stray": False}


@pytest.mark.parametrize("method", ["ping", "roots/list", "notifications/progress", "notifications/message"])
def test_what_else_a_server_says_does_not(method: str) -> None:
    assert Traffic(Skim()).matters(json.dumps(request(method)).encode()) is None


def test_what_a_server_tells_by_itself_matters_where_results_do() -> None:
    def tells(**params: Any) -> bool:
        line = json.dumps({"jsonrpc": "2.0", "method": params.pop("method"), "params": params}).encode()
        return Traffic(Skim()).matters(line, results=True) is not None

    assert tells(method="notifications/message", level="info", data="read this")
    assert tells(method="notifications/progress", progressToken=1, progress=1, message="read this")
    assert tells(method="notifications/claude/channel", content="read this")
    assert not tells(method="notifications/progress", progressToken="a", progress=1, total=2)
    assert not tells(method="notifications/prompts/list_changed")
    assert tells(method="channel/ask", content="read this")
    assert not tells(method="roots/list")


def test_a_request_of_the_server_is_not_taken_for_an_answer() -> None:
    traffic = after(request("tools/list", 1))
    assert traffic.matters(json.dumps(request("ping", 1)).encode()) is None
    assert traffic.matters(answer(1)) is not None


def test_a_result_that_asks_matters() -> None:
    traffic = after(request("tools/call", 1))
    assert traffic.matters(answer(1, {"resultType": "input_required"})) == {"asked": [], "stray": False}
    traffic = after(request("tasks/get", 1))
    assert traffic.matters(answer(1, {"status": "input_required"})) == {"asked": [], "stray": False}
    traffic = after(request("tools/call", 1))
    assert traffic.matters(answer(1, {"inputRequests": {}})) == {"asked": [], "stray": False}


def test_a_line_that_cannot_be_read_matters_with_the_listings_it_may_answer() -> None:
    traffic = after(request("tools/list", "l"), request("tools/call", 2))
    assert traffic.matters(b"oops") == {"asked": [[0, "l", "tools/list", False, ""]], "stray": False}
    traffic = after(request("initialize", 1))
    assert traffic.matters(answer("1")) == {"asked": [[0, 1, "initialize", False, ""]], "stray": True}


def test_requests_that_are_never_answered_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OUTSTANDING", 10)
    traffic = after(*(request("ping", n) for n in range(100)))
    assert len(traffic._requests) == 10
    assert traffic.matters(answer(99)) is None


def test_a_line_that_was_skimmed_is_waited_for_like_others() -> None:
    traffic = Traffic(Skim())
    traffic.skimmed(1, "get", results=True)
    traffic.skimmed("1", "get", results=False)
    traffic.skimmed(2, "", results=True)
    traffic.skimmed(None, "get", results=True)
    assert traffic.matters(b"oops") == {"asked": [], "stray": False}, "no listing is waited for"
    assert traffic.matters(answer(1)) == {"asked": [[0, 1, "tools/call", False, "get"]], "stray": False}
    assert traffic.matters(answer("1")) is None
    assert traffic.matters(answer(2)) is None
    assert traffic.matters(answer(2)) == {"asked": [], "stray": True}, "it has its answer"


def test_what_stands_behind_it_in_a_batch_hides_no_request_of_the_server() -> None:
    asks = json.dumps([request("sampling/createMessage", 1), request("ping", 2)]).encode()
    assert Traffic(Skim()).matters(asks) == {"asked": [], "stray": False}
    answered = json.dumps([request("sampling/createMessage", 1), {"jsonrpc": "2.0", "id": 2, "result": {}}])
    assert after(request("ping", 2)).matters(answered.encode()) == {"asked": [], "stray": False}


@pytest.mark.parametrize("space", ["", " "])
def test_a_request_of_the_server_under_the_id_of_one_to_it_is_no_answer_to_that(space: str) -> None:
    traffic = after(request("ping", 1))
    asks = (space + json.dumps(request("sampling/createMessage", 1))).encode()
    assert traffic.matters(asks) == {"asked": [], "stray": False}
    assert traffic.matters(answer(1)) is None
    note = (space + json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})).encode()
    assert traffic.matters(note) is None


def test_notifications_and_answers_of_the_client_are_not_waited_for() -> None:
    traffic = after(
        {"method": "notifications/initialized"}, {"id": 3, "result": {}}, {"id": True, "method": "ping"}
    )
    assert not traffic._requests


def test_results_of_calls_matter_where_that_is_asked() -> None:
    traffic = Traffic(Skim())
    traffic.sent([request("tools/call", 1, name="ls")], results=True)
    assert traffic.matters(answer(1)) == {"asked": [[0, 1, "tools/call", False, "ls"]], "stray": False}


def test_calls_that_were_read_together_are_waited_for_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic = Traffic(Skim())
    traffic.called([1, "1"], ["ls", "rm"], results=False)
    assert traffic.matters(answer(1)) is None and traffic.matters(answer("1")) is None
    traffic.called([2, "2"], ["ls", "rm"], results=True)
    assert traffic.matters(answer("2")) == {"asked": [[0, "2", "tools/call", False, "rm"]], "stray": False}
    monkeypatch.setattr(module, "MAX_OUTSTANDING", 10)
    traffic.called(range(100), ["ls"] * 100, results=False)
    assert [*traffic._requests] == [*range(90, 100)]


def test_answers_that_do_not_matter_are_settled_together() -> None:
    traffic = after(request("tools/call", 1), request("tools/call", "1"))
    assert traffic.settle([1, "1"])
    assert not traffic._requests


@pytest.mark.parametrize("ids", [[1, 3], [1, 2], [1, "1"], [1, 1]], ids=["listing", "stray", "like", "twice"])
def test_of_answers_one_of_which_matters_none_is_settled(ids: list[Any]) -> None:
    traffic = after(request("tools/call", 1), request("tools/list", 3))
    assert not traffic.settle(ids)
    assert [*traffic._requests] == [1, 3]
