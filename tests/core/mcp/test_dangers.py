"""A line that no strict reader takes is a danger where some peer may read a call in it, and who waits for its answer is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import glance, jsonrpc
from agentsh_net.core.mcp.dangers import answered_in, doubt, doubt_of_client, id_in, is_noise
from agentsh_net.core.mcp.skim import Skim

SECRET = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}'


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"jsonrpc":"2.0","method":"ping","method":"tools/call"}', "twice"),
        (b'{"a":{"b":1,"b":2}}', "twice"),
        (b'{"method":\r"ping"}', "carriage return"),
        (b'{"METHOD":"tools/call"}', "another case"),
        (b'{"id":1,"method":"tools/call","params":{"name":"\xff"}}', "tools/call"),
        (b'{"id":1,"method":"tools/call"}', "tools/call"),
        (b'[{"id":1,"method":"ping"},{"id":null,"method":"tools/call"}]', "tools/call"),
        (b'{"id":1,"method":"sampling/createMessage","params":NaN}', "sampling/createMessage"),
        (b'{"id":1,"method":["tools/call"]}', "no proper"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "deep"),
    ],
    ids=lambda v: repr(v[:30]),
)
def test_a_line_in_which_some_peer_may_read_a_call_is_a_danger(data: bytes, why: str) -> None:
    assert why in doubt(data)


@pytest.mark.parametrize(
    "data",
    [
        b"starting server",
        b"{",
        b"123",
        b'"tools/call"',
        b'{"method":"ping","id":null}',
        b'{"x":"\xff"}',
        b"[]",
    ],
)
def test_a_line_in_which_nobody_reads_a_call_is_none(data: bytes) -> None:
    assert doubt(data) == ""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (SECRET.decode().encode("utf-16"), "NUL"),
        (SECRET.decode().encode("utf-32-le"), "NUL"),
        (b"[[" + SECRET + b"]]", "a batch in a batch"),
    ],
)
def test_what_a_lenient_reader_may_decode_is_a_danger(data: bytes, why: str) -> None:
    assert why in doubt(data)
    assert why in doubt_of_client(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}' + SECRET, "JSON to some parsers"),
        (SECRET + b" x", "JSON to some parsers"),
        (b"[" + SECRET + b"] []", "JSON to some parsers"),
        (SECRET[:-2], "does not end"),
        (SECRET[:40], "does not end"),
        (b' {"a": "b', "does not end"),
        (b"{", "does not end"),
        (b'{"method":"x","method":"tools/call"}', "twice"),
    ],
)
def test_a_reader_of_a_stream_of_values_may_find_a_call_in_what_a_client_sends(data: bytes, why: str) -> None:
    assert why in doubt_of_client(data)


@pytest.mark.parametrize(
    "data", [b"starting server", b"123 x", b'"a" b', b"{nonsense}", b'{"a":1,}', b"", SECRET]
)
def test_nobody_finds_a_call_in_what_no_value_begins(data: bytes) -> None:
    assert doubt_of_client(data) == ("a tools/call that is no proper JSON-RPC" if data is SECRET else "")


def test_the_id_of_a_refused_line_is_found_where_there_is_one() -> None:
    assert id_in(b'{"id":7,"method":"tools/call","method":"x"}') == 7
    assert id_in(b'{"id":"a","x":NaN}') == "a"
    assert id_in(line({"id": "a" * jsonrpc.MAX_ID_LENGTH})) == "a" * jsonrpc.MAX_ID_LENGTH
    assert id_in(line({"id": "a" * (jsonrpc.MAX_ID_LENGTH + 1)})) is None
    assert id_in(line({"id": -jsonrpc.MAX_ID})) == -jsonrpc.MAX_ID
    assert id_in(line({"id": jsonrpc.MAX_ID + 1})) is None
    assert id_in(b'{"id":true}') is id_in(b'{"id":1.5}') is id_in(b"[1]") is id_in(b"nonsense") is None


@pytest.mark.parametrize(
    ("data", "id_"),
    [
        (b'{"id":7,"result":{},"result":{}}', [7]),
        (b'{"id":"a","error":{"code":1,"code":2}}', ["a"]),
        (
            b'[{"id":1.0,"result":{}},{"id":2,"method":[]},{"id":"3","Error":{}},{"id":[],"result":{}}]',
            [1, "3"],
        ),
        (b'{"id":7,"Method":"sampling/createMessage","result":{}}', []),
        (b'{"id":7,"method":"ping","params":{"a":1,"a":2}}', []),
        (b'{"id":7,"x":1,"x":2}', []),
        (b"[1]", []),
        (b"noise", []),
    ],
)
def test_an_answer_that_nobody_reads_for_certain_has_somebody_who_waits_for_it(data: bytes, id_: Any) -> None:
    assert answered_in(data) == id_


def test_what_holds_too_many_values_is_a_danger_and_its_id_is_found_unread() -> None:
    data = b'{"jsonrpc":"2.0","id":7,"result":{"x":[' + b"[]," * jsonrpc.MAX_VALUES + b"[]]}}"
    assert doubt(data) == doubt_of_client(data) == "JSON of more than 500000 values"
    assert (id_in(data), answered_in(data)) == (7, [7])


@pytest.mark.parametrize(
    "text",
    [
        '{/*a*/"method":"tools/call","params":{"name":"rm"}}',
        "{'method':'tools/call','params':{'name':'rm'}}",
        '{method:"Tools/Call",params:{name:"rm"}}',
        '[{"method":"tools/call","params":{"name":"rm"}},]',
        '{method:"\\x74ools/call",params:{name:"rm"}}',
        '{"method":"tools/call","params":{"name":"rm","arguments":{"a":01}}}',
    ],
)
def test_a_call_in_a_dialect_of_json_is_a_danger(text: str) -> None:
    with pytest.raises(ProtocolError):
        mcp_gate.read(text.encode())
    assert doubt_of_client(text.encode()) == "a tools/call to readers of more than JSON"


@pytest.mark.parametrize("text", ["hello", "tools", "Content-Length: 5", "{hello}"])
def test_other_text_that_is_no_json_is_none(text: str) -> None:
    assert doubt_of_client(text.encode()) == ""


@pytest.mark.parametrize("method", ["Tools/Call", "tools/call ", "TOOLS/CALL\t"])
def test_a_call_in_another_spelling_is_a_danger(method: str) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "rm"}}).encode()
    with pytest.raises(ProtocolError, match="another spelling"):
        mcp_gate.read(line)
    assert "no proper JSON-RPC" in doubt_of_client(line)
    with pytest.raises(glance.UnreadableError):
        glance.messages(line)
    assert Skim().of_client(line) is None


@pytest.mark.parametrize(
    "line",
    [b"Server running on stdio", b"[dotenv@17] injecting { path: 1 }", b"{ a: 1 }", b"42", b'"text"', b""],
)
def test_noise_is_what_no_reader_takes_for_a_message(line: bytes) -> None:
    assert is_noise(line)


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b'{"a":', b"[", b'{"a":NaN}', b'{"a":1} x', b'{"a":1,"a":2}', b'{"a":"']
)
def test_what_some_reader_takes_for_one_or_its_beginning_is_none(line: bytes) -> None:
    assert not is_noise(line)
