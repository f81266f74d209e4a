"""A chat completion that came whole, or a list of stored ones: every entry is a call, judged and removed or left to the byte."""

from __future__ import annotations

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_chat.calls import NAME
from agentsh_net.core.dialects.openai_chat.edits import Findings, promises, rewrite
from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.dialects.openai_chat.ledger import Ledger
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.strict_json import Reading


def rewrite_whole(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of a whole answer and return what the client may have of it; None: all.

    Raises ProtocolError where it cannot be rewritten.
    """
    chunk = scan(reading.value, reading.duplicates)
    ledger = Ledger(judge, streamed=False)
    hostile = bool(chunk.hostile)
    if hostile and not chunk.fragments:
        hidden = ToolCall("", dialect=NAME, flaw=chunk.hostile)
        verdict = judge(hidden)
        out.judged(hidden, verdict)
        hostile = verdict.blocked
    marks = ledger.take(chunk.fragments, chunk.hostile)
    ledger.settle(out.judged)
    made = rewrite(data, Findings(marks, promises(chunk.choices), hostile), ledger.choices)
    return None if made is data or made == data else made
