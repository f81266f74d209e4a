"""Response objects, as the answer itself or inside a lifecycle event: refused calls leave their `output`, all other bytes stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.core.dialects.openai_responses.items import (
    CARRIERS,
    Call,
    doubtful,
    folded,
    is_call,
    message,
    once,
    read_call,
    spelled,
    twice,
)
from agentsh_net.core.dialects.openai_responses.kept_calls import places
from agentsh_net.core.dialects.openai_responses.rulings import Place, Rulings
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import json_splice, strict_json
from agentsh_net.core.values.members import clash_of
from agentsh_net.core.values.strict_json import Path, Reading

# What `extra` adds to a call: the stream machine knows more of it than the list says.
Extra = Callable[[int, Call], Call]

# What a compaction lists was said before.
COMPACTED: Final = "response.compaction"

# Under which stored items are listed, by OpenAI and by Mistral.
_STORED: Final = ("data", "entries")


@dataclass(slots=True)
class Rewriting:
    """A text after its calls were judged: `data` is None where nothing had to change."""

    data: bytes | None = None
    calls: dict[int, tuple[Call, str]] = field(default_factory=dict)  # by position: the call and its notice


def containers(value: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the response objects in a parsed text and where they stand: itself, its `response`, the entries of its `data`."""
    if not isinstance(value, dict):
        return
    yield (), value
    key = spelled(value, "response")
    if isinstance(value.get(key), dict):
        yield (key,), value[key]
    key = spelled(value, "data")
    if isinstance(value.get(key), list):
        for at, entry in enumerate(value[key]):
            if isinstance(entry, dict):
                yield (key, at), entry


class _Listed:
    """Has the calls judged that one text lists."""

    __slots__ = ("_duplicates", "_extra", "_flaw", "_late", "_out", "_repeats", "_rulings", "calls")

    def __init__(
        self,
        rulings: Rulings,
        out: Output,
        duplicates: frozenset[str],
        flaw: str,
        extra: Extra | None,
        *,
        repeats: bool,
        late: str,
    ) -> None:
        self._rulings, self._out, self._duplicates, self._flaw = rulings, out, duplicates, flaw
        self._extra, self._repeats, self._late = extra, repeats, late
        self.calls: dict[int, tuple[Call, str]] = {}

    def read(self, item: dict[str, Any]) -> Call:
        """Return a call as it is listed, with what is wrong about it."""
        return read_call(item, self._flaw or doubtful(item, self._duplicates))

    def refused(self, holder: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the messages that take the place of what is refused, by position."""
        kept = _listing(holder).casefold() in _STORED or holder.get("object") == COMPACTED
        ids: set[str] = set()
        for at, entry in enumerate(_entries(holder)):
            item = folded(entry)
            if is_call(item):
                call = self._extra(at, self.read(item)) if self._extra is not None else self.read(item)
                again = bool(call.reply_id) and call.reply_id in ids
                ids.add(call.reply_id)
                place = Place(repeats=self._repeats, another=again, late=self._late, stored=kept)
                text = self._rulings.decide(call, self._out, place)
                self.calls[at] = (call, text)
            else:
                call, text = read_call(item), self._rulings.withheld(item)
            if text:
                yield at, message(text, call, at)


def rewritten(
    data: bytes,
    reading: Reading,
    rulings: Rulings,
    out: Output,
    *,
    repeats: bool = False,
    late: str = "",
    extra: Extra | None = None,
) -> Rewriting:
    """Judge the calls in every `output` of `data`, and return what the client may see of it.

    A text that two parsers read differently is written anew, so that there is only one thing to read. Raises ProtocolError
    where it cannot be written.
    """
    found = list(containers(reading.value))
    single = _single(reading.value)
    objects = [entry for _, holder in found for entry in (holder, *_entries(holder))]
    clashes = twice(*objects, duplicates=reading.duplicates)
    flaw = clash_of(clashes)
    listed = _Listed(rulings, out, reading.duplicates, flaw, extra, repeats=repeats, late=late)
    result = Rewriting(calls=listed.calls)
    edits: dict[Path, Any] = {}
    for path, holder in found:
        if len(path) == 1 or holder.get("object") == "response":
            rulings.kept_in = places(holder)
        edits.update(_edits(path, holder, dict(listed.refused(holder))))
    if single is not None:
        call = listed.read(single)
        text = rulings.decide(call, out, Place(stored=True))
        result.calls[0] = (call, text)
        result.data = strict_json.dump(message(text, call, 0)).encode() if text else None
    elif clashes & CARRIERS and not result.calls and rulings.decide(Call(flaw=flaw), out):
        result.data = _anew(reading.value, edits)  # another parser may see a call
    elif edits:
        result.data = _anew(reading.value, edits) if flaw else json_splice.splice(data, edits)
    return result


def _single(value: Any) -> dict[str, Any] | None:
    """Return the folded item that a text is as a whole (one of a conversation's), if it is a call."""
    if (
        not isinstance(value, dict)
        or _entries(value)
        or isinstance(value.get(spelled(value, "response")), dict)
    ):
        return None
    item = folded(value)
    return item if is_call(item) else None


def _listing(holder: dict[str, Any]) -> str:
    """Return the key of the items: `output`, `outputs` (Mistral), or what a page of a conversation's or request's items has."""
    keys = [spelled(holder, name) for name in ("output", "outputs", *_STORED)]
    return next((key for key in keys if key in holder), keys[0])


def _entries(holder: dict[str, Any]) -> list[Any]:
    listed = holder.get(_listing(holder))
    return listed if isinstance(listed, list) else []


def _edits(path: Path, holder: dict[str, Any], listed: Mapping[int, Any]) -> dict[Path, Any]:
    """Return the edits that put messages in the place of items, and their text into `output_text` where there is one."""
    if not listed:
        return {}
    where = (*path, _listing(holder))
    edits: dict[Path, Any] = {(*where, at): item for at, item in listed.items()}
    key = spelled(holder, "output_text")
    if isinstance(holder.get(key), str):
        items = [listed.get(at, entry) for at, entry in enumerate(_entries(holder))]
        edits[*path, key] = "".join(text for item in items for text in _texts(item))
    return edits


def _texts(item: Any) -> Iterator[str]:
    if (
        not isinstance(item, dict)
        or item.get("type") != "message"
        or not isinstance(item.get("content"), list)
    ):
        return
    for part in item["content"]:
        if isinstance(part, dict) and part.get("type") == "output_text" and isinstance(part.get("text"), str):
            yield part["text"]


def _anew(value: dict[str, Any], edits: Mapping[Path, Any]) -> bytes:
    """Return JSON text in which every key of the event, the response and its items stands once."""
    for path, edit in edits.items():
        node: Any = value
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = edit
    for _, holder in list(containers(value)):
        plain = once(holder)
        key = _listing(plain)
        if isinstance(plain.get(key), list):
            plain[key] = [once(entry) if isinstance(entry, dict) else entry for entry in plain[key]]
        holder.clear()
        holder.update(plain)
    try:
        return strict_json.dump(value).encode()
    except RecursionError as error:
        raise ProtocolError("JSON nested too deeply") from error
