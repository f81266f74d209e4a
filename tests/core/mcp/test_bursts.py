"""What is read of a burst at once is what a skim reads of each of its lines: either the same, or nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from agentsh_net.core.mcp import bursts
from agentsh_net.core.mcp.glance import CALL, INPUT_REQUIRED
from agentsh_net.core.mcp.skim import Skim

ARGUMENTS = (
    {},
    {"a": 5},
    {"path": "/tmp/ü", "head": -1.5, "tail": None, "all": True, "of": ["x", 'q"\n\\', 3]},
    {"": ""},
    {"headers": {"accept": ["a"], "n": 1}, "edits": [{"old": "x", "new": []}, {}], "none": {}, "of": []},
)
# As the SDKs of TypeScript, Python, Rust and Go write it.
CALLS = (
    *({"jsonrpc": "2.0", "id": 7, "method": CALL, "params": {"name": "read", "arguments": a}} for a in ARGUMENTS),
    {"method": CALL, "params": {"name": "a.b-c", "arguments": {"q": "x"}, "_meta": {"progressToken": 7}}, "jsonrpc": "2.0", "id": "a-1"},
)  # fmt: skip
TEXT = {"type": "text", "text": 'ä "b"\n\\ input_required'}
RESULTS = (
    {"jsonrpc": "2.0", "id": 7, "result": {"content": [TEXT, TEXT], "structuredContent": {"result": {"a": [5]}, "x": [{"y": 1}]}, "isError": False}},
    {"result": {"content": [TEXT]}, "jsonrpc": "2.0", "id": "a-1"},
    {"result": {"content": []}, "jsonrpc": "2.0", "id": 0},
)  # fmt: skip
# What a line is changed into, anywhere.
ODD = (
    "method", "tools/call", "tools/list", "id", "ID", "name", "result", "error", "input_required", "resultType", "isError", "\\u0069", "\\", "\\\\", '\\"',
    '"', ":", '":', ",", "{", "}", "[", "]", "null", "1", "-0", "1.0", "1e9", "true", "NaN", " ", "\r", "\n", "\t", "\x00", "\x7f", "\u2028", "\ufeff",
    '{"id":2}', '{"a":1}', '[{"a":1}]', ',{"b":{}}', ",{}", ',"id":2', '"id":1,', '"a":1,', ',"a":5', ',"path":""', ',"x":":x"', '",":"', ',"name":"rm"', '"name":"rm",', ',"_meta":{"x":1,"x":2}', ',"jsonrpc":"2.0"',
    '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm","arguments":{}}}',
)  # fmt: skip


def encode(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def same_calls(text: str) -> bool:
    """Hold what is read of a burst against its lines; say whether anything was."""
    found = bursts.calls(text)
    if found:
        lines = text.removesuffix("\n").split("\n")
        assert [(i, tool) for i, (_, tool, *_) in zip(bursts.ids_of(found), found, strict=True)] == [
            Skim().of_client(line.encode()) for line in lines
        ]
        for line, (_, _, arguments, meta) in zip(lines, found, strict=True):
            params = json.loads(line)["params"]
            assert json.loads(arguments) == params["arguments"]
            assert (json.loads(meta) if meta else None) == params.get("_meta")
    return bool(found)


def same_results(text: str) -> bool:
    ids = bursts.results(text)
    if ids:
        for line, id_ in zip(text.removesuffix("\n").split("\n"), ids, strict=True):
            value = json.loads(line, object_pairs_hook=distinct)
            assert value.keys() == {"jsonrpc", "id", "result"}
            assert (type(id_), id_) == (type(value["id"]), value["id"])
            assert value["result"].keys() <= {"content", "structuredContent", "isError"}
            # Where a skim looks closer, and finds nothing.
            if INPUT_REQUIRED not in line and "\\u" not in line:
                assert Skim().of_server(line.encode()) == ("", id_)
    return bool(ids)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def changed(text: str, randomly: random.Random) -> Iterator[str]:
    for _ in range(2000):
        other = text
        for _ in range(randomly.choice((1, 1, 2, 3))):
            start = randomly.randrange(len(other))
            end = start + randomly.choice((0, 0, 1, 2, 8))
            other = other[:start] + randomly.choice(ODD) + other[end:]
        yield other


@pytest.mark.parametrize("call", CALLS, ids=encode)
def test_a_call_is_read_as_a_skim_reads_it(call: dict[str, Any]) -> None:
    assert same_calls(encode(call) + "\n")


@pytest.mark.parametrize("result", RESULTS, ids=encode)
def test_a_result_is_read_as_a_skim_reads_it(result: dict[str, Any]) -> None:
    assert same_results(encode(result) + "\n")


def test_a_burst_is_read_as_its_lines_are() -> None:
    assert same_calls("".join(encode(call | {"id": n}) + "\n" for n, call in enumerate(CALLS[:4])))
    assert same_results("".join(encode(RESULTS[0] | {"id": n}) + "\n" for n in range(4)))


def test_changed_calls_are_read_as_their_lines_are_or_not_at_all() -> None:
    randomly = random.Random(1)
    texts = [encode(call) + "\n" for call in CALLS] + ["".join(encode(call) + "\n" for call in CALLS[:2])]
    read = sum(same_calls(other) for text in texts for other in changed(text, randomly))
    assert read > 100


def test_changed_results_are_read_as_their_lines_are_or_not_at_all() -> None:
    randomly = random.Random(2)
    texts = [encode(result) + "\n" for result in RESULTS] + [(encode(RESULTS[1]) + "\n") * 2]
    read = sum(same_results(other) for text in texts for other in changed(text, randomly))
    assert read > 100


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":1,"a":2}',
        '{"a":[":a",":b"],"b":1,"b":1}',
        '{"k":"","x":":","k":1}',
        r'{"a":"\",\"b\":","b":1,"b":2}',
        '{"a":{"b":{"c":1}}}',
        '{"a":[[1]]}',
        '{"a":{"b":[{}]}}',
        '{"a":{"b":1,"b":2}}',
        '{"a":[{"b":1},{"c":1,"c":2}]}',
        '{"a":{"b":1},"a":2}',
        '{"a":{"b":1,}}',
        '{"a":[{},]}',
        '{"a":[,1]}',
        r'{"\u0061":1}',
        '{"a":01}',
        '{"a":1e999}',
        '{"a":NaN}',
        '{"a":99999999999999999999}',
        '{"a" :1}',
        '{"a":"\t"}',
        '{"a":"\r"}',
        '{"a":1,}',
    ],
)
def test_arguments_that_somebody_may_read_otherwise_are_left_to_who_looks_closer(arguments: str) -> None:
    line = (
        f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}\n'
    )
    assert bursts.calls(line) == []
    assert bursts.calls(encode(CALLS[0]) + "\n" + line) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"input_required"}}\n',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"a":1,"a":2}}}\n',
        '{"jsonrpc":"2.0","id":1,"id":2,"result":{"content":[]}}\n',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[]},"method":"sampling/createMessage"}\n',
        '{"result":{"content":[{"type":"text","text":"x","text":"y"}]},"jsonrpc":"2.0","id":1}\n',
        '{"result":{"content":[]},"jsonrpc":"2.0","id":1.0}\n',
        '{"result":{"content":[]},"jsonrpc":"2.0","id":null}\n',
        '{"result":{"content":[]},"jsonrpc":"2.0","id":1}\r\n',
    ],
)
def test_a_result_that_may_ask_or_be_read_otherwise_is_left_to_who_looks_closer(line: str) -> None:
    assert bursts.results(line) == []


def test_a_hostile_line_is_read_in_linear_time() -> None:
    text = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{'
        + '"a":"\\"",' * 6000
        + "\n"
    )
    assert bursts.calls(text) == []
    assert bursts.calls(text.replace('"a":"\\"",', '"a":["\\"",') + "\n") == []
    assert bursts.calls(text.replace('"a":"\\"",', '"a":[{"b":"\\""},{}],') + "\n") == []
