"""A glance finds the messages on a line, and says so where two peers may read different ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.mcp.glance import UnreadableError, asks_for_input, id_of, messages, misspelt, plain_call

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}


def test_a_message_and_a_batch_are_lists_of_messages() -> None:
    line = json.dumps(CALL).encode()
    assert messages(line) == [CALL]
    assert messages(b"\xef\xbb\xbf " + line + b" \r") == [CALL]
    assert messages(b"[" + line + b"," + line + b"]") == [CALL, CALL]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "Expecting"),
        (b"starting server...", "Expecting"),
        (b'{"a":1} x', "Extra"),
        (b"7", "not a JSON-RPC"),
        (b"[1]", "not a JSON-RPC"),
        (b"[[" * 50_000, "recursion"),
        (b'{"id":"\xff"}', "utf-8"),
        (b'{"method":"ping","method":"tools/call"}', "twice"),
        (b'{"method":"ping","m\\u0065thod":"tools/call"}', "twice"),
        (b'{"params":{"name":"a","name":"b"}}', "twice"),
        (b'{"a":\r1}', "carriage return"),
        (b'{"Method":"tools/call"}', "not a JSON-RPC"),
        (b'{"method":"x","param\xc5\xbf":{}}', "not a JSON-RPC"),
        (b'{"method":["tools/call"]}', "no text"),
        (b'{"method":"a","result":{}}', "in one"),
        (b'{"method":"a","error":null}', "in one"),
    ],
)
def test_what_peers_may_read_differently_is_unreadable(line: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        messages(line)


def test_a_key_in_another_case_counts_as_misspelt_and_an_unknown_one_does_not() -> None:
    known = frozenset(("name", "arguments"))
    assert misspelt(["Name"], known)
    assert misspelt(["name\0x"], known) and misspelt(["NAME\0"], known)
    assert misspelt(["name", "ARGUMENTS"], known)
    assert not misspelt(["name", "_meta", "task"], known)


def test_a_plain_call_names_its_tool() -> None:
    assert plain_call([CALL]) == "t"


@pytest.mark.parametrize(
    "change",
    [
        {"method": "tools/list"}, {"jsonrpc": "1.0"}, {"params": None}, {"params": ["t"]}, {"id": None}, {"id": True}, {"id": 1.0},
        {"params": {"name": 7}}, {"params": {"name": "t", "Name": "u"}}, {"params": {}},
    ],
)  # fmt: skip
def test_a_call_with_anything_odd_about_it_is_not_plain(change: dict[str, object]) -> None:
    assert plain_call([CALL | change]) == ""
    assert plain_call([]) == plain_call([CALL, CALL]) == ""


def test_answers_that_ask_are_found_in_both_eras() -> None:
    assert asks_for_input({"id": 1, "result": {"resultType": "input_required"}})
    assert asks_for_input({"id": 1, "result": {"resultType": "complete", "inputRequests": None}})
    assert asks_for_input({"id": 1, "error": {"code": -32042, "message": "open this"}})
    assert not asks_for_input({"id": 1, "result": {"resultType": "complete"}})
    assert not asks_for_input({"id": 1, "error": {"code": -32600}})
    assert not asks_for_input({"id": 1, "result": ["input_required"], "error": "x"})


@pytest.mark.parametrize(
    ("head", "tail", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":17,"result":{"x', b"}}\n", 17),
        (b'{"id" : "a-b" , "result":{"x', b"}}\n", "a-b"),
        (b'{"result":{"x', b'"},"jsonrpc":"2.0","id":3}\n', 3),
        (b'{"method":"m","params":{"x', b'"},"id":"z","jsonrpc":"2.0"}\r\n', "z"),
        (b'{"result":{"x', b'"text","id":5}}\n', None),
        (b'{"result":"', b'\\"a\\",\\"id\\":5}"}\n', None),
        (b"xxx", b"yyy", None),
    ],
)
def test_the_id_of_a_message_too_long_to_read_is_found_at_its_ends(
    head: bytes, tail: bytes, id_: Any
) -> None:
    assert id_of(head, tail) == id_


def test_a_key_of_several_words_is_known_in_any_case() -> None:
    known = frozenset(("nextCursor",))
    assert misspelt(["nextcursor"], known) and misspelt(["NEXTCURSOR"], known)
    assert not misspelt(["nextCursor", "next"], known)


@pytest.mark.parametrize("key", ["resultType", "ResultType", "status"])
def test_a_result_that_asks_does_so_under_any_key(key: str) -> None:
    assert asks_for_input({"result": {key: "input_required"}})
    assert not asks_for_input({"result": {key: "complete", "content": ["input_required"]}})
