"""`mcp calls --show` tells a call step by step with times, says what is missing and why, and shows nothing raw."""

import json

import pytest

from agentsh_net.cli import story as cli_story

INTENT = {
    "id": "1", "type": "mcp_tool_call_intercepted", "timestamp": "2026-01-01T00:00:00.000000Z", "action": "allow", "would": None,
    "session_id": "s1", "server_id": "weather", "tool_name": "mcp__weather__get", "tool_call_id": "toolu_1", "dialect": "anthropic",
    "input": {"city": "Rome\u200b"}, "reason": "allowed by allowed_tools[0]", "rule": "sandbox.mcp.allowed_tools[0]", "detections": [],
}  # fmt: skip
CALLED = INTENT | {"id": "2", "type": "mcp_tool_called", "timestamp": "2026-01-01T00:00:00.035000Z", "tool_name": "get", "via": "shim", "pid": 7, "jsonrpc_id": "a"}  # fmt: skip
CONNECTED = INTENT | {"id": "3", "type": "mcp_network_connection", "timestamp": "2026-01-01T00:00:00.040000Z", "comm": "node", "pid": 9, "remote_addr": "10.0.0.1:443", "layer": "ebpf", "joined_by": "session"}  # fmt: skip
RESULT = INTENT | {"id": "4", "type": "mcp_tool_result_inspected", "timestamp": "2026-01-01T00:00:01.000000Z", "action": "block", "content_length": 12, "detections": [{"pattern": "ignore-instructions"}]}  # fmt: skip
STORY = {"verdict": "block", "decided_by": "result", "intent": INTENT, "executions": [CALLED], "connections": [CONNECTED], "results": [RESULT], "session": []}  # fmt: skip


def test_each_layer_has_a_line_with_the_time_since_the_first(run, daemon):
    fake = daemon(story=STORY)
    result = run("mcp", "calls", "--show", "toolu_1")
    assert fake.asked == [("story", {"call": "toolu_1"})]
    assert result.exit_code == 0
    head, given, intent, execution, connection, found, verdict = result.stdout.splitlines()
    assert head == "call        weather/get  session s1"
    assert "Rome\\u200b" in given
    assert intent.startswith("2026-01-01T00:00:00.000000Z  intent      allow")
    assert "+0.035000 s  execution   allow        via shim, pid 7, JSON-RPC id 'a'" in execution
    assert "node[9] -> 10.0.0.1:443 (ebpf; joined by session)" in connection
    assert "result      block        12 bytes, 1 findings [ignore-instructions]" in found
    assert verdict == "verdict     block, decided by the result layer's event"


@pytest.mark.parametrize("form", ["--json", "--jsonl"])
def test_json_is_the_whole_story(run, daemon, form):
    daemon(story=STORY)
    told = run("mcp", "calls", "--show", "1", form).stdout
    assert "\u200b" not in told
    assert json.loads(told) == STORY


def test_what_nobody_saw_is_said_with_its_likely_reason():
    nothing = STORY | {"intent": None, "connections": [], "results": [], "verdict": "allow", "decided_by": ""}
    told = "\n".join(cli_story.lines(nothing))
    assert "no model's answer" in told and "stdio server" in told and "output_inspection is off" in told
    blocked = nothing | {"intent": INTENT, "executions": [], "verdict": "block", "decided_by": "intent"}
    assert "it was blocked before" in "\n".join(cli_story.lines(blocked))


def test_an_unknown_id_is_an_error_that_says_where_ids_are(run, daemon):
    daemon(story=None)
    result = run("mcp", "calls", "--show", "nobody")
    assert result.exit_code == 2
    assert "no call has the id 'nobody'" in result.stderr
    assert "fix:" in result.stderr
