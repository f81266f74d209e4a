"""Refused calls that a provider keeps in an answer and waits for, though the client never heard of them.

A request that goes on from such an answer (`previous_response_id`) has to bring a result for each, or the provider refuses it: the
result is that policy refused the call. One that refers to the message which the client got instead (`item_reference`) refers to what
the provider does not have: to the call and its result, then. Conversations that a provider keeps under an id of their own are not helped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agentsh_net.core.dialects.base import Judged
from agentsh_net.core.dialects.openai_responses.items import stand_in_id
from agentsh_net.core.dialects.output import notice
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values import json_splice
from agentsh_net.core.values.recent import remember

# Answers with refused calls, and such calls, of all sessions of a worker; each takes some hundred bytes.
MAX_ANSWERS: Final = 1024
MAX_MESSAGES: Final = 4096
MAX_CALLS: Final = 64  # of one answer: models send a handful
MAX_LENGTH: Final = 256  # of ids and names; OpenAI's have 64 at most


class _Refused(NamedTuple):
    call: ToolCall  # without its arguments
    text: str

    @property
    def result(self) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": self.call.call_id, "output": self.text}


class Pending:
    """Those of one worker, by session."""

    __slots__ = ("_by_answer", "_by_message")

    def __init__(self) -> None:
        self._by_answer: OrderedDict[tuple[str, str], dict[str, _Refused]] = OrderedDict()
        self._by_message: OrderedDict[tuple[str, str], _Refused] = OrderedDict()

    def note(self, session_id: str, judged: Judged) -> None:
        """Remember a call that was refused, unless its client answers it itself (`block_mode: steer`)."""
        call, verdict = judged.call, judged.verdict
        if not (call.kept_in and call.call_id and verdict.blocked) or verdict.steered:
            return
        if max(map(len, (call.kept_in, call.call_id, call.item_id))) > MAX_LENGTH:
            return  # no provider's
        kept = ToolCall(call.name[:MAX_LENGTH], call.call_id, item_id=call.item_id)
        refused = _Refused(kept, notice(kept.name, verdict.reason))
        calls = self._by_answer.get((session_id, call.kept_in), {})
        if len(calls) < MAX_CALLS:
            remember(
                self._by_answer, (session_id, call.kept_in), {**calls, call.call_id: refused}, MAX_ANSWERS
            )
        if call.item_id:
            message = stand_in_id(call.item_id, call.call_id)
            remember(self._by_message, (session_id, message), refused, MAX_MESSAGES)

    def answered(self, session_id: str, request: Mapping[str, Any], plain: bytes) -> bytes:
        """Return a request's text with a result for each call that its answer waits for; the same object where there is none."""
        if not self._by_answer:  # as in most workers
            return plain
        waiting = self._by_answer.get((session_id, str(request.get("previous_response_id"))), {})
        given = request.get("input")
        if not isinstance(given, str | list):
            return plain
        asked = given if isinstance(given, list) else [{"role": "user", "content": given}]
        items = [kept for item in asked for kept in self._referred(session_id, item, waiting)]
        brought = {str(item.get("call_id")) for item in items if isinstance(item, dict)}
        items = [*(refused.result for call_id, refused in waiting.items() if call_id not in brought), *items]
        try:
            return plain if items == asked else json_splice.splice(plain, {("input",): items})
        except ProtocolError:
            return plain  # the provider tells what it misses

    def _referred(self, session_id: str, item: Any, waiting: Mapping[str, _Refused]) -> Iterator[Any]:
        """Yield an item, or what one stands for that refers to a message of ours."""
        reference = isinstance(item, dict) and item.get("type") == "item_reference"
        refused = self._by_message.get((session_id, str(item.get("id")))) if reference else None
        if refused is None:
            yield item
            return
        if refused.call.call_id not in waiting:  # else the answer has it
            yield {"type": "item_reference", "id": refused.call.item_id}
        yield refused.result
