"""Refused calls that a provider keeps in an answer and waits for, though the client never heard of them.

A request that goes on from such an answer (`previous_response_id`) has to bring a result for each, or the provider refuses it: the
result is that policy refused the call. Conversations that a provider keeps under an id of their own are not helped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from agentsh_net.core.dialects.base import Judged
from agentsh_net.core.dialects.output import notice
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import json_splice
from agentsh_net.core.values.recent import remember

# Answers with refused calls, of all sessions of a worker; each takes some hundred bytes a call.
MAX_ANSWERS: Final = 1024
MAX_CALLS: Final = 64  # of one answer: models send a handful

_CALL_ID: Final = "call_id"


class Pending:
    """Those of one worker, by session and answer."""

    __slots__ = ("_refused",)

    def __init__(self) -> None:
        self._refused: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()

    def note(self, session_id: str, judged: Judged) -> None:
        """Remember a call that was refused, unless its client answers it itself (`block_mode: steer`)."""
        call, verdict = judged.call, judged.verdict
        if not (call.kept_in and call.call_id and verdict.blocked) or verdict.steered:
            return
        key = (session_id, call.kept_in)
        calls = self._refused.get(key, {})
        if len(calls) < MAX_CALLS:
            remember(
                self._refused, key, {**calls, call.call_id: notice(call.name, verdict.reason)}, MAX_ANSWERS
            )

    def answered(self, session_id: str, request: Mapping[str, Any], plain: bytes) -> bytes:
        """Return a request's text with a result for each call that its answer waits for; the same object where there is none."""
        waiting = self._refused.get((session_id, str(request.get("previous_response_id"))))
        given = request.get("input")
        if not waiting or not isinstance(given, str | list):
            return plain
        items = given if isinstance(given, list) else [{"role": "user", "content": given}]
        brought = {str(item.get(_CALL_ID)) for item in items if isinstance(item, dict)}
        results = [
            {"type": "function_call_output", _CALL_ID: call_id, "output": text}
            for call_id, text in waiting.items()
            if call_id not in brought
        ]
        try:
            return json_splice.splice(plain, {("input",): [*results, *items]}) if results else plain
        except ProtocolError:
            return plain  # the provider tells what it misses
