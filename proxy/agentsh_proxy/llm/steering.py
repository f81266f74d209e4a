"""Which clients go on when a call names a tool that they do not have: they tell the model, which reads why and tries something else.

Others crash, or end the run (openai-agents raises, applications look the name up in a table): for them a refused call is text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from agentsh_net.core.dialects import steering
from agentsh_net.core.dialects.anthropic import blocks as anthropic_blocks
from agentsh_net.core.dialects.openai_responses import items as openai_responses_items
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.snapshot import Snapshot
from agentsh_proxy.llm.asked import Asked

# By what each sends as User-Agent, in the dialect that it speaks.
_GOES_ON: Final = {
    anthropic_blocks.NAME: re.compile(rb"\r\nuser-agent:[ \t]*claude-cli/", re.IGNORECASE),
    openai_responses_items.NAME: re.compile(rb"\r\nuser-agent:[ \t]*codex[_-]", re.IGNORECASE),
}


def steered(verdict: Verdict, call: ToolCall, snapshot: Snapshot, asked: Asked) -> Verdict:
    """Return the verdict on a call in the answer to a request, steered where it is a block and its client goes on."""
    if not verdict.blocked or not steers(snapshot, asked.admitted.dialect.name, asked.opening, call):
        return verdict
    return replace(verdict, steered=True)


def steers(snapshot: Snapshot, dialect: str, opening: bytes, call: ToolCall) -> bool:
    """Say whether a refused call is to be steered: policy asks for it, the call is certain, and the client goes on."""
    if snapshot.config.sandbox.mcp.block_mode != "steer" or call.flaw or call.server_name or not call.call_id:
        return False
    client = _GOES_ON.get(dialect)
    if client is None or not client.search(opening):
        return False
    return not snapshot.meant(ToolCall(steering.NAME))  # a server that calls its tool so gets no call by it
