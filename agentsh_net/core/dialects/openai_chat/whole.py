"""A chat completion that came whole, or a list of stored ones: every entry is a call, judged and removed or left to the byte."""

from __future__ import annotations

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_chat.calls import NAME
from agentsh_net.core.dialects.openai_chat.edits import Findings, promises, rewrite
from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.dialects.openai_chat.ledger import Ledger, Record
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.strict_json import Reading


def rewrite_whole(data: bytes, reading: Reading, judge: Judge, record: Record) -> bytes:
    """Return what the client gets for `data`, which was read as `reading`. Raises ProtocolError where it cannot be rewritten."""
    chunk = scan(reading.value, reading.duplicates)
    ledger = Ledger(judge, streamed=False)
    hostile = bool(chunk.hostile)
    if hostile and not chunk.fragments:
        hidden = ToolCall("", dialect=NAME, flaw=chunk.hostile)
        verdict = judge(hidden)
        record(hidden, verdict)
        hostile = verdict.blocked
    marks = ledger.take(chunk.fragments, chunk.hostile)
    ledger.settle(record)
    return rewrite(data, Findings(marks, promises(chunk.choices), hostile), ledger.choices)
