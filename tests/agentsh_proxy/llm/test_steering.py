"""Only a client that is known to go on gets a steered call, and only for a call that is certain."""

from __future__ import annotations

import pytest
from agentsh_proxy.llm.steering import steers
from situations import situation

from agentsh_net.core.dialects import steering
from agentsh_net.core.model import ToolCall

CALL = ToolCall("mcp__fs__rm", "toolu_1")
CLAUDE = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nUser-Agent: claude-cli/2.1.0 (external, cli)"
CODEX = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nuser-agent: codex_cli_rs/0.169.0"
STEER = situation(["fs"], block_mode="steer")


@pytest.mark.parametrize(("dialect", "opening"), [("anthropic", CLAUDE), ("openai_responses", CODEX)])
def test_clients_that_go_on_are_steered(dialect, opening):
    assert steers(STEER, dialect, opening, CALL)
    assert not steers(situation(["fs"]), dialect, opening, CALL)


@pytest.mark.parametrize(
    ("dialect", "opening"),
    [("openai", CODEX), ("openai_responses", CLAUDE), ("anthropic", CODEX), ("gemini", CLAUDE),
     ("anthropic", b"POST / HTTP/1.1\r\nUser-Agent: Anthropic/Python 0.60"), ("anthropic", b"POST / HTTP/1.1\r\nX-Was: claude-cli/2"),
     ("anthropic", b"POST / HTTP/1.1")],
)  # fmt: skip
def test_no_other_client_is(dialect, opening):
    assert not steers(STEER, dialect, opening, CALL)


@pytest.mark.parametrize(
    "call", [ToolCall("x"), ToolCall("x", "id", flaw="hostile"), ToolCall("x", "id", server_name="fs")]
)
def test_a_call_that_is_not_certain_or_not_the_clients_is_text(call):
    assert not steers(STEER, "anthropic", CLAUDE, call)


def test_a_server_that_calls_its_tool_so_gets_no_call_by_it():
    taken = situation(["fs"], {"fs": [steering.NAME]}, block_mode="steer")
    assert not steers(taken, "anthropic", CLAUDE, CALL)
