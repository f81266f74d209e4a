"""What is skimmed is what a glance reads: for every line either the same, or nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from agentsh_net.core.mcp.glance import CALL, WATCHED, UnreadableError, asks_for_input, messages, plain_call
from agentsh_net.core.mcp.skim import MAX_SKIMMED, Skim, is_id

ARGUMENTS = {"path": "/tmp/ü", "deep": [{"a": 1, "b": {"c": [None, True, -1.5e3]}}, []], "": ""}
PARAMS = {"name": "read", "arguments": ARGUMENTS, "_meta": {"progressToken": 7}}
PLAIN = (
    {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": PARAMS},
    {"method": CALL, "params": {"arguments": {}, "name": "read"}, "jsonrpc": "2.0", "id": "a"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
)
ANSWERS = (
    {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": 'a "b"\n'}] * 2}},
    {"result": {"structuredContent": {"id": 9, "method": "x"}}, "jsonrpc": "2.0", "id": "a"},
    {"jsonrpc": "2.0", "id": 3, "result": {}},
)
# What a line is changed into, anywhere.
ODD = (
    "method", "tools/call", "tools/list", "id", "ID", "Method", "para\u017fs", "name", "result", "error", "input_required", "resultType", "\\u0069", "\\",
    '"', ":", ",", "{", "}", "[", "]", "null", "1", "1.0", "true", "NaN", " ", "\r", "\n", "\t", "\x00", "\ufeff", '{"id":2}', ',"id":2', '"id":1,',
    ',"method":"sampling/createMessage"', ',"name":"rm"', '"name":"rm",', ',"jsonrpc":"1.0"', "-32042",
)  # fmt: skip


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read(line: bytes) -> list[dict[str, Any]]:
    try:
        return messages(line)
    except UnreadableError:
        return []


def same_of_client(line: bytes, skim: Skim) -> bool:
    """Hold what is skimmed against what is read; say whether anything was."""
    seen = skim.of_client(line)
    if seen is not None:
        (found,) = messages(line)
        id_, tool = seen
        assert tool or "id" not in found
        assert tool == plain_call([found])
        assert tool or found["method"] != CALL
        assert (type(id_), id_) == (type(found.get("id")), found.get("id")) or not (
            is_id(id_) or is_id(found.get("id"))
        )
    return seen is not None


def same_of_server(line: bytes, skim: Skim) -> bool:
    seen = skim.of_server(line)
    if seen is not None:
        (found,) = messages(line)
        method, id_ = seen
        assert method == found.get("method", "")
        assert not asks_for_input(found)
        if not method:
            assert "result" in found
            assert (type(id_), id_) == (type(found["id"]), found["id"]) or not (
                is_id(id_) or is_id(found["id"])
            )
    return seen is not None


def changed(line: bytes, randomly: random.Random) -> Iterator[bytes]:
    text = line.decode()
    for _ in range(3000):
        other = text
        for _ in range(randomly.choice((1, 1, 2, 3))):
            at = randomly.randrange(len(other) + 1)
            to = min(len(other), at + randomly.choice((0, 0, 1, 2, 5, 12)))
            other = other[:at] + randomly.choice(ODD) + other[to:]
        yield other.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("message", PLAIN)
def test_calls_and_ordinary_requests_are_recognised_however_they_are_ordered(message: dict[str, Any]) -> None:
    skim = Skim()
    for keys in (list(message), list(reversed(message))):
        line = encode({key: message[key] for key in keys})
        assert skim.of_client(line) == (message.get("id"), plain_call([message]))
        assert skim.of_server(line) == (message["method"], None)


@pytest.mark.parametrize("message", ANSWERS)
def test_results_are_recognised_by_their_id(message: dict[str, Any]) -> None:
    assert Skim().of_server(encode(message)) == ("", message["id"])
    assert Skim().of_client(encode(message)) is None


@pytest.mark.parametrize("message", [*PLAIN, *ANSWERS])
def test_whatever_a_line_is_changed_into_is_read_alike_or_not_skimmed(message: dict[str, Any]) -> None:
    randomly, skim = random.Random(encode(message)), Skim()
    skimmed = 0
    for line in changed(encode(message), randomly):
        skimmed += same_of_client(line, skim) + same_of_server(line, skim)
    assert skimmed > 50, "not only refusals were compared"


@pytest.mark.parametrize(
    "line",
    [
        b"", b" ", b"null", b"7", b'"x"', b"[]", b"{}", b'[{"method":"ping"}]', b'{"method":"ping"} ', b' {"method":"ping"}', b'\xef\xbb\xbf{"method":"ping"}',
        b'{"method":"ping"}\r', b'{"method":"ping","method":"ping"}', b'{"method":"ping","params":{"a":1,"a":1}}', b'{"method":"ping","id":"\xff"}', b"[[" * 30_000,
        b'{"method":"ping","extra":1}', b'{"method":["ping"]}', b'{"method":""}', b'{"method":"ping","result":{}}', b'{"Method":"ping"}',
        b'{"id":1,"error":{"code":1,"message":""},"jsonrpc":"2.0"}', b'{"id":1,"result":{}}', b'{"id":1' + b"1" * 5000 + b',"result":{},"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{}}}', b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}', b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"\\u0069nput_required"}}',
        b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * MAX_SKIMMED + b'"}',
    ],
)  # fmt: skip
def test_what_is_odd_is_looked_at_closer(line: bytes) -> None:
    skim = Skim()
    assert skim.of_client(line) is None
    assert skim.of_server(line) is None
    assert not skim._objects, "and nothing of it is kept"


@pytest.mark.parametrize(
    "change",
    [
        {"method": "tools/list"}, {"method": "initialize"}, {"method": "server/discover"}, {"jsonrpc": "1.0"}, {"params": None}, {"params": ["t"]}, {"params": {}},
        {"id": None}, {"id": True}, {"id": 1.0}, {"id": {"name": "t"}}, {"jsonrpc": {"name": "t"}}, {"params": {"name": 7}}, {"params": {"name": ""}},
        {"params": {"name": {"name": "t"}}}, {"params": {"name": "t", "Name": "u"}}, {"params": {"name": "t", "cursor": "u"}},
    ],
)  # fmt: skip
def test_a_call_with_anything_odd_about_it_is_looked_at_closer(change: dict[str, Any]) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": {"name": "t", "arguments": {"name": "u"}}}
    assert Skim().of_client(encode(call)) == (1, "t")
    assert Skim().of_client(encode(call | change)) is None


def test_what_a_server_wants_of_its_client_is_named() -> None:
    for method in WATCHED:
        assert Skim().of_server(encode({"jsonrpc": "2.0", "id": 1, "method": method})) == (method, None)
