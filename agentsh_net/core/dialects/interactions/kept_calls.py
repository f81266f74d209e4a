"""Refused calls as Google keeps them in an interaction: the next one (`previous_interaction_id`) has to bring their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentsh_net.core.model import Kept
from agentsh_net.core.values.members import text_of

MAX_LENGTH: Final = 256  # of ids
MAX_TEXT: Final = 1024  # characters of a result

_RESULT: Final = "function_result"


def kept(call_id: str, name: str, kept_in: str, text: str) -> Kept | None:
    """Return a refused call as its provider keeps it; None where nobody can bring its result. `text` is what the client reads."""
    if not (kept_in and call_id) or max(map(len, (kept_in, call_id, name))) > MAX_LENGTH:
        return None
    told = {"type": _RESULT, "call_id": call_id, "name": name, "result": text[:MAX_TEXT], "is_error": True}
    return Kept((kept_in,), told)


def goes_on_from(request: Mapping[str, Any]) -> str:
    """Return the id of the interaction that a request goes on from; empty for none."""
    return text_of(request.get("previous_interaction_id"))


def brought(given: Any, waiting: Sequence[Mapping[str, Any]]) -> Any:
    """Return the input of a request with the results that it lacks; the same where it lacks none."""
    steps = given if isinstance(given, list) else [given]
    said = {
        text_of(step.get("call_id"))
        for step in steps
        if isinstance(step, dict) and step.get("type") == _RESULT
    }
    lacking = [result for result in waiting if result["call_id"] not in said]
    if not lacking or not isinstance(given, str | dict | list):
        return given
    return [*lacking, *(steps if said or _are_steps(steps) else [_spoken(steps)])]


def _are_steps(entries: list[Any]) -> bool:
    """Say whether a list is one of steps; else it is what the user says, piece by piece."""
    return any(
        isinstance(entry, dict) and text_of(entry.get("type")) in {"user_input", "model_output", "thought"}
        for entry in entries
    )


def _spoken(pieces: list[Any]) -> dict[str, Any]:
    return {
        "type": "user_input",
        "content": [{"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces],
    }
