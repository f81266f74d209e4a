"""What verdicts mean in the text of a chunk or completion: calls removed, indices closed up, notices in `content`.

Edits are spliced into the original text. Only what two parsers read in two ways is written anew from its parsed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentsh_net.core.dialects.openai_chat.calls import ChoiceState, Fate
from agentsh_net.core.dialects.openai_chat.fragments import Choice
from agentsh_net.core.dialects.openai_chat.ledger import Mark
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.json_splice import DELETE, splice
from agentsh_net.core.values.strict_json import Path, dump, read

Edits = dict[Path, Any]

# Reasons that promise the client a call, and the keys it stands under: the same two words.
_CALL_REASONS: Final = frozenset({"tool_calls", "function_call"})
_CALL_KEYS: Final = _CALL_REASONS
# What a line may end with; an event ends with two of them, unless the stream ended inside it.
_ONE_LINE: Final = frozenset({b"", b"\n", b"\r", b"\r\n"})
# A chunk with nothing but these, once its calls are gone, says nothing: it is left out.
_ENVELOPE: Final = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "service_tier", "obfuscation", "choices"}
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in one chunk or completion: where its calls stand, and where it promises one."""

    marks: tuple[Mark, ...] = ()
    finishes: tuple[tuple[int, Path], ...] = ()
    hostile: bool = False


def promises(choices: Iterable[Choice]) -> tuple[tuple[int, Path], ...]:
    """Return where choices end with a reason that promises a call."""
    return tuple((choice.number, choice.finish_path) for choice in choices if choice.finish in _CALL_REASONS)


def rewrite(data: bytes, found: Findings, choices: Mapping[int, ChoiceState]) -> bytes:
    """Return `data` as the client gets it: the same object where nothing changes, b"" where nothing is left to say.

    Raises ProtocolError where the text cannot be rewritten.
    """
    notices: dict[Path, list[str]] = {}
    edits = _edits(found, choices, notices)
    if found.hostile and not any(mark.call.fate is Fate.KEPT for mark in found.marks):
        return _rebuilt(read(data).value, edits, notices)
    if not edits:
        return data
    value = read(data).value
    if not notices and _says_nothing(value, edits):
        return b""
    for carrier, texts in notices.items():
        edits.update([_content(value, carrier, texts)])
    return splice(data, edits)


def whole(frame: Frame) -> bool:
    """Say whether an event ended, which only the stream's last one may not have."""
    return _ending(frame) not in _ONE_LINE


def event(frame: Frame, data: bytes) -> bytes:
    """Return `data` as an event in the place of `frame`, or nothing.

    It ends as the frame did: where CR LF is cut in two, the LF is still to come.
    """
    if not data:
        return b""
    name = f"event: {frame.event}\n".encode() if frame.event else b""
    ending = _ending(frame) if whole(frame) else b"\n\n"
    return name + b"data: " + data.replace(b"\n", b"\ndata: ") + ending


def _ending(frame: Frame) -> bytes:
    return frame.raw[len(frame.raw.rstrip(b"\r\n")) :]


def _edits(found: Findings, choices: Mapping[int, ChoiceState], notices: dict[Path, list[str]]) -> Edits:
    edits: Edits = {}
    removed: dict[Path, list[Path]] = {}
    for mark in found.marks:
        call = mark.call
        if call.fate is Fate.REMOVED or (call.whole is not None and call.name_written):
            _remove(mark, removed, edits)
            if call.notice:
                notices.setdefault(mark.carrier, []).append(call.notice)
                call.notice = ""
            continue
        if call.number is not None and mark.keys is not None and call.number != call.slot[2]:
            edits[mark.keys[0]] = call.number
        if choices[call.choice].unified:
            _unify(mark, choices[call.choice], edits)
        call.name_written = call.name_written or bool(mark.names)
    for parent, paths in removed.items():
        if parent not in edits:
            edits.update(dict.fromkeys(paths, DELETE))
    for number, path in found.finishes:
        if number in choices and choices[number].emptied:
            edits[path] = "stop"
    return edits


def _remove(mark: Mark, removed: dict[Path, list[Path]], edits: Edits) -> None:
    """Note the removal of an entry; with the last entry the list goes."""
    if not mark.siblings:
        edits[mark.path] = DELETE
        return
    parent = mark.path[:-1]
    paths = removed.setdefault(parent, [])
    paths.append(mark.path)
    if len(paths) == mark.siblings:
        edits[parent] = DELETE


def _unify(mark: Mark, choice: ChoiceState, edits: Edits) -> None:
    """Write the whole name, with an id, where its first fragment stands, and none where the others do; plain indices."""
    call = mark.call
    if mark.names and mark.keys is not None and not call.name_written and mark.id != choice.own_id(call):
        edits[mark.keys[1]] = choice.own_id(call)
    for path in mark.names:
        edits[path] = "" if call.name_written else call.name
        call.name_written = True
    if call.whole is not None:
        edits[*mark.path, "function", "arguments"] = call.whole
    if mark.keys is not None and call.number is not None:
        edits[mark.keys[0]] = call.number


def _content(value: Any, carrier: Path, texts: list[str]) -> tuple[Path, Any]:
    """Return the edit that writes notices behind what the message says."""
    message = value
    for key in carrier:
        message = message[key]
    key = next((k for k in message if k.casefold() == "content"), "content")
    said = message.get(key)
    text = "".join(texts)
    if isinstance(said, list):
        return (*carrier, key), [*said, {"type": "text", "text": text}]
    return (*carrier, key), f"{said}\n\n{text}" if isinstance(said, str) and said else text


def _says_nothing(value: dict[str, Any], edits: Edits) -> bool:
    """Say whether only removed calls and an envelope are in this chunk."""
    if any(edit is not DELETE for edit in edits.values()):
        return False
    gone = {path for path in edits if path[-1] in _CALL_KEYS}
    if any(member is not None for key, member in value.items() if key not in _ENVELOPE):
        return False
    return all(
        _choice_says_nothing(choice, ("choices", at), gone) for at, choice in enumerate(value["choices"])
    )


def _choice_says_nothing(choice: Any, at: Path, gone: set[Path]) -> bool:
    if not isinstance(choice, dict):
        return False
    for key, member in choice.items():
        if key == "delta":
            if not isinstance(member, dict) or not all((*at, key, inner) in gone for inner in member):
                return False
        elif key != "index" and member is not None:
            return False
    return True


def _rebuilt(value: Any, edits: Edits, notices: Mapping[Path, list[str]]) -> bytes:
    """Return a chunk written anew, without any call, whatever spelling or place it has."""
    _strip(value)
    changed = dict(_content(value, carrier, texts) for carrier, texts in notices.items())
    changed |= {path: edit for path, edit in edits.items() if edit is not DELETE}
    for path, edit in changed.items():
        container = value
        for key in path[:-1]:
            container = container[key]
        container[path[-1]] = edit
    return dump(value).encode()


def _strip(value: Any) -> None:
    """Remove calls at any depth; a loop, because depth is the sender's choice."""
    containers = [value]
    while containers:
        container = containers.pop()
        if isinstance(container, dict):
            for key in [key for key in container if key.casefold() in _CALL_KEYS]:
                del container[key]
            containers += container.values()
        elif isinstance(container, list):
            containers += container
