"""Answers that stand somewhere in a JSON text, as in the lines of a batch's results: each is read by the dialect that it is in.

What speaks of calls beside them is told, or stops the text, by fail_closed: nobody could judge it. Where such texts come from, and how
they are framed, is not its business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.base import Dialect, Judge
from agentsh_net.core.dialects.foreign_calls import speaks_of_calls
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.openai_responses import dialect as openai_responses
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.values import json_splice, strict_json
from agentsh_net.core.values.json_splice import Raw
from agentsh_net.core.values.members import clash_of, folded
from agentsh_net.core.values.strict_json import Path, Reading

# By the key under which an answer lists what it brings; one in which several stand is read in each way.
_DIALECTS: Final[tuple[tuple[str, Dialect], ...]] = (
    ("choices", openai_chat.DIALECT),
    ("output", openai_responses.DIALECT),
    ("candidates", gemini.DIALECT),
    ("content", anthropic.DIALECT),
)


def rewritten(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of every answer in a text, and return what the client may have of it; None: all."""
    if reading.duplicates and speaks_of_calls(reading.value):
        out.fault("duplicate_keys", clash_of(reading.duplicates), must_cut=True)
        return None
    edits: dict[Path, Raw] = {}
    rest = _without(reading.value, answers := dict(_answers(reading.value, ())))
    for path, (value, dialects) in answers.items():
        changed = _read(value, dialects, judge, out)
        if out.end:
            return None
        if changed is not None:
            edits[path] = Raw(changed)
    if speaks_of_calls(rest) and out.fault("unknown_format", "a call outside of any answer that is known"):
        return None
    if () in edits:
        return edits[()].text.encode()
    return json_splice.splice(data, edits) if edits else None


def _answers(value: Any, path: Path) -> Iterator[tuple[Path, tuple[dict[str, Any], list[Dialect]]]]:
    """Yield the answers in a value, the outermost of each place, and whose format each may be in."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _answers(item, (*path, at))
    elif isinstance(value, dict):
        keys = folded(value)
        dialects = [dialect for key, dialect in _DIALECTS if isinstance(keys.get(key), list)]
        if dialects:
            yield path, (value, dialects)
            return
        for key, item in value.items():
            yield from _answers(item, (*path, key))


def _read(value: Any, dialects: list[Dialect], judge: Judge, out: Output) -> str | None:
    """Return what is left of one answer; None: all of it."""
    text = first = strict_json.dump(value).encode()
    for dialect in dialects:
        step = dialect.body(text, judge, fail_closed=False)
        for judged in step.judged:
            out.judged(judged.call, judged.verdict)
        for fault in step.faults:
            if out.fault(fault.cause, fault.detail, must_cut=fault.cut):
                return None
        text = step.out
    return None if text == first else text.decode()


def _without(value: Any, answers: dict[Path, Any], path: Path = ()) -> Any:
    """Return a value without what is read as an answer."""
    if path in answers:
        return None
    if isinstance(value, list):
        return [_without(item, answers, (*path, at)) for at, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _without(item, answers, (*path, key)) for key, item in value.items()}
    return value
