"""The laws of lines of MCP: what may pass holds no call, no list of tools and no question but those that were judged, to any reader.

A line is one of `LINES` with pieces put in, each at a place that the input names.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

from fuzz import readers
from mcp_types import jsonrpc_message_adapter
from transcripts.key_readings import any_case, first_wins

from agentsh_net.core.configuration.settings import Mcp, ServerAsks
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import bursts, dangers, gate, glance, uncertain
from agentsh_net.core.mcp.skim import Skim

CALL: Final = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm","arguments":{"a":"b"}}}'
LIST: Final = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"rm","inputSchema":{}}]}}'
RESULT: Final = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}'
ASKS: Final = '{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[]}}'
LINES: Final = tuple(map(str.encode, (CALL, LIST, RESULT, ASKS, f"[{CALL}]", f"[{RESULT},{LIST}]")))
PIECES: Final = (
    b" ", b"\t", b"\r", b"\0", b"\x0b", b"\x1e", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\xa0", b"\\", b"\\u0000",
    b"\\ud800", b"\\u006d", b"\\/", b'"', b"'", b",", b":", b"{", b"}", b"[", b"]", b"//", b"/**/", b"0", b".0", b"e0", b"-", b"NaN", b"1e400", b"null", b"true",
    b'"id":1,', b'"id":"1",', b'"id":1.0,', b'"ID":2,', b'"method":"ping",', b'"Method":"tools/call",', b'"method":["tools/call"],', b'"params":{"name":"ls"},',
    b'"name":"ls",', b'"Name":"ls",', b'"result":{},', b'"Result":{},', b'"error":null,', b'"tools":[],', b'"Tools":[],', b'"jsonrpc":"1.0",', b'"__proto__":{},',
    CALL.encode(), LIST.encode(),
)  # fmt: skip
_MCP: Final = Mcp(sampling=ServerAsks("block"), elicitation=ServerAsks("block"))
_HOOKS: Final = (None, first_wins, any_case)


def line_of(data: bytes) -> bytes:
    """Return the line that an input makes: its first byte chooses one, three more put in each piece."""
    line = LINES[(*data[:1], 0)[0] % len(LINES)]
    for at in range(1, len(data) - 2, 3):
        place = int.from_bytes(data[at : at + 2], "big") % (len(line) + 1)
        line = line[:place] + PIECES[data[at + 2] % len(PIECES)] + line[place:]
    return line.replace(b"\n", b" ")


def of_client(data: bytes) -> None:
    """Whatever tool a server may read in what passes was judged, and the quick readers read what the strict one does."""
    line = line_of(data)
    judged: set[str] = set()
    try:
        body = gate.read(line)
        judged = {gate.call_in(m).tool for m in body.messages if gate.is_call(m)}
    except ProtocolError:
        if dangers.doubt_of_client(line):
            return
        body = None
    for message in _messages(line):
        if message.get("method") == "tools/call":
            params = message.get("params")
            assert isinstance(params, dict) and params.get("name") in judged, (line, message)
    quick = Skim().of_client(line)
    assert quick in (None, (None, "")) or (body is not None and quick[1] == gate.lone_call(body)), line
    for id_, tool, *_ in bursts.calls(_text(line + b"\n")):
        assert (
            body is not None
            and tool == gate.lone_call(body)
            and id_ == json.dumps(body.messages[0].raw["id"])
        )
    try:
        plain = glance.plain_call(glance.messages(line))
    except glance.UnreadableError:
        plain = ""
    assert not plain or plain in judged, line


def of_server(data: bytes) -> None:
    """Whatever a client may take for a list of tools or a question passes only where it was read so, or is judged for itself."""
    line = line_of(data)
    lists = asks = False
    try:
        body = gate.read(line)
        lists = any(
            "tools" in m.result for m in body.messages if hasattr(m, "result") and isinstance(m.result, dict)
        )
        asks = any(True for _ in gate.askings(body))
    except ProtocolError:
        holds = uncertain.held(_MCP, "s", line)
        if dangers.doubt(line) or holds.danger or (holds.verdict is not None and holds.verdict.blocked):
            return
    for message in _messages(line):
        result = message.get("result")
        assert lists or not (isinstance(result, dict) and "tools" in result), (line, message)
        assert asks or message.get("method") != "sampling/createMessage", (line, message)


def _messages(line: bytes) -> Iterator[dict[str, Any]]:
    """Yield what readers find on a line: the official SDK for Python, and lenient ones."""
    for text in {line, line.removeprefix(b"\xef\xbb\xbf")}:
        with contextlib.suppress(ValueError):
            yield jsonrpc_message_adapter.validate_json(text, by_name=False).model_dump(by_alias=True)
        for hook in _HOOKS:
            value = readers.loads(text, hook)
            yield from (m for m in (value if isinstance(value, list) else [value]) if isinstance(m, dict))


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return ""
