"""While the daemon is away and fail_closed holds, who waits for an answer gets an error under the id it used."""

from __future__ import annotations

import json
from typing import Any

from agentsh_proxy.shim import refusals
from agentsh_proxy.shim.refusals import count_calls, of_line, of_server

from agentsh_net.core.mcp import gate as mcp_gate


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


CALL = {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": {"name": "t"}}
SAMPLE = {"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {}}


def test_the_codes_are_those_of_the_gate() -> None:
    assert (refusals.BLOCKED, refusals.UNREADABLE) == (mcp_gate.BLOCKED, mcp_gate.UNREADABLE)


def test_every_request_of_a_refused_line_gets_its_error() -> None:
    answers = [
        json.loads(a)
        for a in of_line(
            line([CALL, {"method": "notifications/x"}, {**CALL, "id": 2}, {"id": 3, "result": 1}])
        )
    ]
    assert [a["id"] for a in answers] == ["1", 2]
    assert all(a["error"]["code"] == mcp_gate.BLOCKED and a["jsonrpc"] == "2.0" for a in answers)
    (answer,) = map(json.loads, of_line(b"nonsense"))
    assert answer["id"] is None


def test_a_servers_request_is_answered_to_the_server() -> None:
    forward, replies = of_server(line(SAMPLE), [])
    assert forward is None
    assert [json.loads(r)["id"] for r in replies] == [5]


def test_an_answer_that_asks_is_an_error_for_the_client() -> None:
    forward, replies = of_server(
        line({"jsonrpc": "2.0", "id": 4, "result": {"resultType": "input_required"}}), []
    )
    assert forward is not None and json.loads(forward)["id"] == 4 and "error" in json.loads(forward)
    assert replies == []


def test_a_request_under_the_id_of_a_call_is_no_answer_to_it() -> None:
    ping = line({"jsonrpc": "2.0", "id": 4, "method": "ping"})
    assert of_server(ping, [4]) == (ping, [])


def test_what_asks_for_nothing_passes_and_what_cannot_be_read_does_not() -> None:
    listing = line({"jsonrpc": "2.0", "id": 4, "result": {"tools": []}})
    assert of_server(listing, []) == (listing, [])
    assert of_server(b"oops", []) == (None, [])


def test_calls_that_pass_unjudged_are_counted() -> None:
    assert count_calls(line([CALL, CALL, SAMPLE])) == 2
    assert count_calls(b"whatever it is") == 1


def test_a_result_that_was_to_be_looked_at_is_an_error_for_the_client() -> None:
    result = line({"jsonrpc": "2.0", "id": 4, "result": {"content": []}})
    assert of_server(result, [5]) == (result, [])
    forward, replies = of_server(result, [4])
    assert forward is not None and json.loads(forward)["id"] == 4 and "error" in json.loads(forward)
    assert replies == []


def test_an_error_that_answers_nothing_does_not_pass_where_results_were_to_be_looked_at() -> None:
    error = line({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "read this"}})
    forward, replies = of_server(error, [], notes=True)
    assert forward is not None and b"read this" not in forward and replies == []
    assert of_server(error, []) == (error, [])


def test_what_a_server_tells_by_itself_does_not_pass_where_it_was_to_be_looked_at() -> None:
    log = line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "read this"}})
    assert of_server(log, [], notes=True) == (None, [])
    assert of_server(log, []) == (log, [])
    counts = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    assert of_server(line(counts), [], notes=True) == (line(counts), [])
    ask = {"jsonrpc": "2.0", "id": 7, "method": "channel/ask", "params": {"content": "read this"}}
    forward, (reply,) = of_server(line(ask), [], notes=True)
    assert forward is None and json.loads(reply)["id"] == 7
