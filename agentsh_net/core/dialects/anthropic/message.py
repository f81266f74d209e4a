"""Whole Anthropic messages, as the answer itself or inside a `message_start`: refused calls leave, all other bytes stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.dialects.anthropic.blocks import (
    Rulings,
    folded,
    is_call,
    spelled,
    stand_in,
    twice,
)
from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.values import json_splice, members, strict_json
from agentsh_net.core.values.members import clash_of
from agentsh_net.core.values.strict_json import Path, Reading


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A message after its calls were judged: `data` is None where nothing had to change."""

    data: bytes | None
    content: tuple[str, ...] = ()  # what became of each entry of its content: "" stays, else its notice
    calls: frozenset[int] = frozenset()  # which entries are calls


def rewritten(
    data: bytes,
    reading: Reading,
    rulings: Rulings,
    out: Output,
    *,
    key: str = "",
    flaw: str = "",
    late: str = "",
) -> Rewriting:
    """Judge the calls of the message in `data` (under `key`, or at the top), and return what the client may see of it.

    A text that two parsers read differently (`flaw`) is written anew, so that there is only one thing to read. `late` is the
    reason for which calls are refused unheard.
    """
    top = reading.value
    prefix: Path = (spelled(top, key),) if key else ()
    message = members.at(top, prefix)
    content = folded(message).get("content")
    entries = content if isinstance(content, list) else []
    flaw = flaw or clash_of(twice(top, message, *entries, duplicates=reading.duplicates))
    notices = rulings.replaced(entries, late or flaw, out, doubtful=bool(reading.duplicates))
    calls = frozenset(at for at, entry in enumerate(entries) if is_call(folded(entry)))
    where = (*prefix, spelled(message, "content"))
    edits: dict[Path, Any] = {(*where, at): stand_in(text, entries[at]) for at, text in notices.items()}
    reason = spelled(message, "stop_reason")
    if rulings.ends_turn and message.get(reason) == "tool_use":
        edits[*prefix, reason] = "end_turn"
    became = tuple(notices.get(at, "") for at in range(len(entries)))
    if flaw and (notices or not calls):
        if not calls:
            out.dropped("duplicate_keys", flaw)
        return Rewriting(_anew(top, edits, prefix), became, calls)
    return Rewriting(json_splice.splice(data, edits) if edits else None, became, calls)


def rewrite_whole(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of a whole answer and return what the client may have of it; None: all."""
    return rewritten(data, reading, Rulings(judge), out).data if isinstance(reading.value, dict) else None


def _anew(top: dict[str, Any], edits: Mapping[Path, Any], prefix: Path) -> bytes:
    """Return JSON text in which every key of the envelope, the message and its blocks stands once."""
    for path, value in edits.items():
        members.at(top, path[:-1])[path[-1]] = value
    message = _once(members.at(top, prefix))
    content = spelled(message, "content")
    if isinstance(message.get(content), list):
        message[content] = [_once(entry) for entry in message[content]]
    # In an envelope, `type` is all that a client needs besides the message: no second place for a call to stand.
    plain = {str(prefix[0]): message} if prefix else message
    if prefix and "type" in top:
        plain = {"type": top["type"], **plain}
    return strict_json.dump(plain).encode()


def _once(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    last = {key.casefold(): key for key in value}
    return {key: item for key, item in value.items() if last[key.casefold()] == key}
