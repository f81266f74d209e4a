"""One event of a Responses stream as the most lenient parser reads it, and the events that replace an item.

What an event means among others is `stream`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from agentsh_net.core.dialects.openai_responses.items import (
    CARRIERS,
    Call,
    doubtful,
    folded,
    is_call,
    message,
    spelled,
    text_part,
    twice,
)
from agentsh_net.core.dialects.steering import Steered
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.framing.sse_writing import make_frame
from agentsh_net.core.values.json_splice import splice
from agentsh_net.core.values.members import clash_of, text_of
from agentsh_net.core.values.strict_json import Reading, dump

# What an event adds to a call; `status` and the like are no such thing.
_BRINGS: Final = frozenset(
    {"delta", "arguments", "input", "name", "command", "commands", "diff", "code", "operation", "action"}
)

# The provider runs these itself: what their events say reaches no tool of the client's.
_PROVIDERS: Final = ("web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call")

_NUMBER: Final = re.compile(rb'"sequence_number"[ \t\r\n]*:[ \t\r\n]*([0-9]++)(?![.eE])')

# The whole of what a shell of the provider's printed.
_PRINTED: Final = "response.shell_call_output_content.done"

# How an answer says that it is over.
_ENDS: Final = ("completed", "incomplete", "failed", "cancelled", "done")


# Not frozen: one is made for every event, and freezing it would double what reading costs.
@dataclass(slots=True)
class Event:
    """The parts of an event that matter. `flaw` says what makes parsers read different events in it."""

    kind: str
    index: int | None  # None: missing, or (`odd`) of a type that parsers coerce differently
    odd: bool
    item_id: str
    number: int | None  # the sequence_number, where it is a plain one
    number_key: str
    fields: Mapping[str, Any]  # all of it, keys folded
    item: Mapping[str, Any] | None  # keys folded
    lists: bool  # it carries a response, or an output of its own
    error: bool
    brings: bool  # a client could add something of it to a call
    providers: bool  # it tells of a tool that the provider runs itself
    flaw: str
    hidden: bool  # the flaw may hide a call from one parser

    @property
    def adds_item(self) -> bool:
        """Say whether more of its item is to come."""
        return self.item is not None and self.kind.endswith("item.added")

    @property
    def ends_answer(self) -> bool:
        """Say whether the response it carries is over."""
        return self.lists and self.kind.rpartition(".")[2] in _ENDS

    @property
    def fails_answer(self) -> bool:
        """Say whether what is not complete by now will never be."""
        return self.error or (self.lists and self.kind.endswith((".failed", ".cancelled")))


def read(frame: Frame, reading: Reading) -> Event | None:
    """Return the event in a frame; None where no client would find one (the data is no object)."""
    value = reading.value
    if not isinstance(value, dict):
        return None
    top = folded(value)
    name = frame.event.strip().casefold()
    kind = top["type"].strip().casefold() if isinstance(top.get("type"), str) else name
    item = top.get("item")
    clashes = twice(value, item, top.get("response"), duplicates=reading.duplicates)
    lists = isinstance(top.get("response"), dict) or _lists(top.get("output"), kind)
    brings = ("call" in kind or "call" in name) and not _BRINGS.isdisjoint(top)
    index, odd = _index(top.get("output_index"))
    hidden = bool(clashes & CARRIERS)
    matters = hidden or brings or isinstance(item, dict)
    flaw = clash_of(clashes) or (doubtful(folded(item), reading.duplicates) if reading.duplicates else "")
    if not flaw and name.startswith("response.") and name != kind:
        flaw = "the event's name and its type differ"  # clients go by one of the two
    return Event(
        kind=kind,
        index=index,
        odd=odd,
        item_id=text_of(top.get("item_id")),
        number=_index(top.get("sequence_number"))[0],
        number_key=spelled(value, "sequence_number"),
        fields=top,
        item=folded(item) if isinstance(item, dict) else None,
        lists=lists,
        error="error" in {kind, name} or (bool(top.get("error")) and not lists),
        brings=brings,
        providers=brings and all(any(tool in by for tool in _PROVIDERS) for by in (kind, name or kind)),
        flaw=flaw if matters else "",
        hidden=hidden,
    )


def _lists(output: Any, kind: str) -> bool:
    """Say whether an `output` is an answer's; what a shell printed is none, unless a client could find a call in it."""
    printed = (
        kind == _PRINTED and isinstance(output, list) and not any(is_call(folded(entry)) for entry in output)
    )
    return isinstance(output, list) and not printed


def renumbered(data: bytes, event: Event, number: int) -> bytes:
    """Return the text of a numbered event with another number."""
    key = b'"sequence_number"'
    # Within a string its quotes would be escaped: if it stands there once, with this value, it is the event's own.
    found = _NUMBER.search(data) if data.count(key) == 1 else None
    if found is not None and found[1] == b"%d" % (event.number or 0):
        return b"%b%d%b" % (data[: found.start(1)], number, data[found.end(1) :])
    return splice(data, {(event.number_key,): number})


def _index(value: Any) -> tuple[int | None, bool]:
    """Return a plain number, and whether there is one that is not plain."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JavaScript knows no difference
    if type(value) is int and value >= 0:
        return value, False
    return None, value is not None


def message_frames(
    notice: str, replaced: Call, index: int | None, number: int | None, pieces: int
) -> Iterator[bytes]:
    """Yield a whole message as 5 + `pieces` events, numbered from `number`, each with its own `event:` line.

    A steered call is a call of no tool, in four events.
    """
    item = message(notice, replaced, index)
    where = {} if index is None else {"output_index": index}
    part = {"item_id": item["id"], **where, "content_index": 0}
    cuts = [len(notice) * at // pieces for at in range(pieces + 1)]
    begun = ("output_item.added", {**where, "item": message(notice, replaced, index, begun=True)})
    called = {"item_id": item["id"], **where}
    steered: list[tuple[str, dict[str, Any]]] = [
        begun,
        ("function_call_arguments.delta", {**called, "delta": item.get("arguments")}),
        ("function_call_arguments.done", {**called, "arguments": item.get("arguments")}),
        ("output_item.done", {**where, "item": item}),
    ]
    events: list[tuple[str, dict[str, Any]]] = [
        begun,
        ("content_part.added", {**part, "part": text_part("")}),
        *(
            ("output_text.delta", {**part, "delta": notice[start:end], "logprobs": []})
            for start, end in pairwise(cuts)
        ),
        ("output_text.done", {**part, "text": notice, "logprobs": []}),
        ("content_part.done", {**part, "part": text_part(notice)}),
        ("output_item.done", {**where, "item": item}),
    ]
    for at, (kind, fields) in enumerate(steered if isinstance(notice, Steered) else events):
        told_number = {} if number is None else {"sequence_number": number + at}
        name = f"response.{kind}"
        yield make_frame(name, dump({"type": name, **told_number, **fields}).encode())
