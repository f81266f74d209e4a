"""Whether an answer spells the keys of its format as every client reads them: Go's fold their case, most others do not.

What stands under a key in another case is there for some clients alone, so that they add up other pieces of arguments: from then on nobody
can tell what the arguments of the answer's calls are. What a call is named is read by the dialects in every way, as before.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.values.members import plain

# What holds the parts of a call in the formats' streams. What is in arguments, results and definitions is somebody's data.
_WITHIN: Final = frozenset(
    {
        "choices", "delta", "message", "tool_calls", "function_call", "function", "custom",  # Chat, Ollama
        "item", "response", "output",  # Responses
        "content_block", "content",  # Messages
        "candidates", "parts", "functionCall", "partialArgs",  # Gemini
        "interaction", "step", "steps", "outputs",  # Interactions
        "start", "toolUse",  # Converse
        "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop",  # Converse in an invoked model's stream
    }
)  # fmt: skip
_SPELLED: Final = _WITHIN | {
    "type", "id", "index", "name", "namespace", "arguments", "input",
    "item_id", "output_index", "call_id", "tool_call_id", "server_label", "action", "operation",
    "partial_json", "server_name", "toolset_name",
    "args", "willContinue", "jsonPath", "stringValue", "numberValue", "boolValue", "nullValue",
    "event_type", "contentBlockIndex", "toolUseId",
}  # fmt: skip
_READ_ALIKE: Final = frozenset(map(plain, _SPELLED))
# Any longer key is none of these, nor remembered: it may be a whole frame.
_LONGEST: Final = 2 * max(map(len, _SPELLED))
_DOUBT: Final = "a key that only some clients read, for its case, stands in the answer"


class _Key(Enum):
    WITHIN = auto()
    ODD = auto()


class Spelling:
    """What one answer's judge is told of it."""

    __slots__ = ("_judge", "_odd")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._odd = False

    def judge(self, call: ToolCall) -> Verdict:
        """Judge a call, its arguments in doubt behind such a key."""
        return self._judge(replace(call, doubt=_DOUBT) if self._odd and not call.doubt else call)

    def note(self, value: Any) -> None:
        """Take what an event says, before the machine does."""
        self._odd = self._odd or _is_odd(value)


def _is_odd(value: Any) -> bool:
    if type(value) is dict:
        for key, inner in value.items():
            kind = _kind(key) if len(key) <= _LONGEST else None
            if kind and (kind is _Key.ODD or _is_odd(inner)):
                return True
        return False
    return type(value) is list and any(map(_is_odd, value))


# Honest answers have some dozen keys, and this runs for each of every event that is read.
@lru_cache(maxsize=1024)
def _kind(key: str) -> _Key | None:
    """Return what a key is, None for one that leads to no part of a call."""
    if key in _WITHIN:
        return _Key.WITHIN
    return _Key.ODD if key not in _SPELLED and plain(key) in _READ_ALIKE else None
