"""Results of batches are judged line by line, however they are cut; making one judges every server that its requests name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.batches import FILES, GEMINI_FILES, MADE, RESULTS
from agentsh_net.core.model import Action, ToolCall, Verdict

URL = "https://mcp.example/mcp"


def judge(call: ToolCall) -> Verdict:
    return Verdict(Action.BLOCK if call.name == "rm" else Action.ALLOW, "no")


def line(name: str) -> bytes:
    block = {"type": "tool_use", "id": "t", "name": name, "input": {}}
    message = {"type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    return (
        json.dumps({"custom_id": "c", "result": {"type": "succeeded", "message": message}}).encode() + b"\n"
    )


def played(
    data: bytes, size: int, *, fail_closed: bool = False, max_frame: int = 1 << 20
) -> tuple[bytes, list[Any], list[str]]:
    stream = RESULTS.stream(judge, limits=Limits(max_frame), fail_closed=fail_closed)
    steps = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]
    steps += [] if steps and steps[-1].end else [stream.finish()]
    return (
        b"".join(s.out for s in steps),
        [(j.call.name, j.verdict.blocked) for s in steps for j in s.judged],
        [f.cause for s in steps for f in s.faults],
    )


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_denied_calls_leave_their_lines_and_all_other_lines_are_the_same_bytes(size: int) -> None:
    error = b'{"custom_id":"e","result":{"type":"errored","error":{"type":"error"}}}\n'
    sent = line("get") + error + line("rm") + b"\n" + line("get").rstrip()
    out, judged, faults = played(sent, size)
    lines = out.split(b"\n")
    assert [lines[at] for at in (0, 1, 3, 4)] == [sent.split(b"\n")[at] for at in (0, 1, 3, 4)]
    content = json.loads(lines[2])["result"]["message"]
    assert (content["content"][0]["type"], content["stop_reason"]) == ("text", "end_turn")
    assert (judged, faults) == ([("get", False), ("rm", True), ("get", False)], [])


def test_calls_that_speak_of_no_tool_are_seen() -> None:
    items = [
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["x"]}},
        {"type": "mcp_call", "id": "m", "name": "rm", "arguments": "{}"},
    ]
    sent = json.dumps({"response": {"body": {"output": items}}}).encode() + b"\n"
    assert [name for name, _ in played(sent, 99)[1]] == ["shell", "rm"]


def test_a_line_above_the_bound_goes_by_fail_closed() -> None:
    sent = line("get") + line("rm").replace(b'"c"', b'"' + b"c" * 5000 + b'"')
    out, _, faults = played(sent, 500, max_frame=1000)
    assert (out, faults) == (sent, ["frame_too_long"])
    out, _, faults = played(sent, 500, max_frame=1000, fail_closed=True)
    assert faults == ["frame_too_long"]
    assert b"cccc" not in out
    assert out.startswith(line("get"))


def test_a_broken_line_that_may_hide_a_call_passes_nobody() -> None:
    out, _, faults = played(line("rm")[:-5] + b"\n" + line("get"), 1 << 20)
    assert faults == ["malformed_json"]
    assert b'"rm"' not in out


@pytest.mark.parametrize("end", [b"\r", b"\x0b", b"\xe2\x80\xa8", b"\xc2\x85", b" "])
@pytest.mark.parametrize("kind", ["shell_call", "mcp_call", "program"])
def test_lines_that_only_some_clients_tell_apart_hide_no_call(kind: str, end: bytes) -> None:
    item = {"type": kind, "id": "i", "name": "rm", "code": "x"}
    hidden = json.dumps({"response": {"body": {"output": [item]}}}).encode()
    out, _, faults = played(b'{"a": 1}' + end + hidden + b"\n", 1 << 20)
    assert b'"rm"' not in out
    assert faults == ["malformed_json"]


@pytest.mark.parametrize(
    ("dialect", "method", "path", "read"),
    [
        (MADE, "POST", "/v1/messages/batches", True),
        (MADE, "GET", "/v1/messages/batches", False),
        (MADE, "POST", "/v1/messages/batches/b/cancel", False),
        (RESULTS, "GET", "/v1/messages/batches/b/results?x=1", True),
        (RESULTS, "GET", "/v1/messages/batches/b", False),
        (FILES, "GET", "/v1/files/f/content", True),
        (FILES, "GET", "/openai/v1/files/f/content/", True),
        (FILES, "GET", "/v1/files/f", False),
        (FILES, "POST", "/v1/files", False),
        (GEMINI_FILES, "GET", "/download/v1beta/files/f:download?alt=media", True),
        (GEMINI_FILES, "GET", "/v1beta/files/f:DOWNLOAD", True),
    ],
)
def test_it_reads_what_may_bring_calls(dialect: Any, method: str, path: str, *, read: bool) -> None:
    assert dialect.inspects(method, path) is read


def test_every_server_that_a_batch_names_is_told_once() -> None:
    params = {"model": "m", "mcp_servers": [{"type": "url", "name": "fs", "url": URL}]}
    other = {"mcp_servers": [{"type": "url", "name": "db", "url": URL}]}
    body = {"requests": [{"custom_id": "1", "params": p} for p in (params, {"model": "m"}, params, other)]}
    facts = MADE.request(json.dumps(body).encode())
    assert [(c.server_id, c.url) for c in facts.connectors] == [("fs", URL), ("db", URL)]
    assert facts.parsed == body
    assert MADE.request(b'{"requests": [{"params": {"model": "m"}}]}').quiet


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ('{"requests": [{"params": {"mcp_servers": []}}], "requests": []}', "duplicate_keys"),
        ('{"requests": [{"params": {"mcp_servers": []}}], "Requests": []}', "duplicate_keys"),
        ('{"requests": [{"params": {"mcp_servers": []}, "PARAMS": {}}]}', "duplicate_keys"),
        ('{"requests": [{"params": {"mcp_servers": [{"name": 1}]}}]}', "malformed_connector"),
        (json.dumps({"requests": [{"params": {"mcp_servers": [{"name": f"{n}", "url": URL}]}} for n in range(99)]}), "too_many_connectors"),
        ('{"mcp_servers": 1} {}', "unreadable_json"),
    ],
)  # fmt: skip
def test_a_batch_whose_servers_cannot_be_judged_is_told_as_such(body: str, cause: str) -> None:
    fault = MADE.request(body.encode()).fault
    assert fault is not None
    assert (fault.cause, fault.cut) == (cause, True)


def test_errors_have_the_shape_of_the_api() -> None:
    assert json.loads(RESULTS.error(502, "x"))["type"] == "error"
    assert json.loads(FILES.error(404, "x"))["error"]["code"] == "not_found"
    assert FILES.error_frame("x").endswith(b"}\n")
    assert (FILES.files, RESULTS.files, MADE.framing) == (True, False, None)
    assert RESULTS.request(b"").stream
