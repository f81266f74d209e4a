"""The items of one streamed response as they grow: which event belongs to which, and what the events say of a call together.

Parsers find an item by `output_index` or by `item_id`; an event that means two calls that way is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agentsh_net.core.dialects.machine import State
from agentsh_net.core.dialects.openai_responses.event import Event
from agentsh_net.core.dialects.openai_responses.items import Call
from agentsh_net.core.values.members import text_of

# Far beyond any answer; other streams wait while those of a hostile one are judged, some 50 us each.
MAX_SLOTS: Final = 1 << 12

REUSED: Final = "its output_index is another call's"
NO_INDEX: Final = "the item's output_index is no plain number"
_LACKING: Final = "the item ended without the arguments that other events gave it"


@dataclass(slots=True, eq=False)
class Slot:
    """One item. `over`: its `done` came."""

    index: int | None
    state: State = State.PLAIN
    kind: str = ""
    call: Call = field(default_factory=Call)
    start: str = ""  # the arguments that the item began with
    address: tuple[int | None, str] | None = None  # under which its deltas come
    parts: list[str] = field(default_factory=list)  # of the arguments, by deltas
    finals: list[str] = field(default_factory=list)  # the arguments as events repeated them whole
    over: bool = False
    doubt: str = ""  # why nobody can tell what its arguments are
    lacking: bool = False  # a place that a client may run it from has no arguments
    notice: str = ""  # still to be written in its place
    frames: int = 0  # that wait for its verdict

    @property
    def is_call(self) -> bool:
        """Say whether this was ever taken for a call."""
        return self.state is not State.PLAIN

    def flag(self, flaw: str) -> None:
        """Note why no verdict can be trusted; the first reason stays."""
        if not self.call.flaw:
            self.call = replace(self.call, flaw=flaw)

    def view(self, call: Call, *, whole: bool = False) -> None:
        """Take what another place says of the call; `whole`: there is no more to come of it there."""
        self.call = self.call.joined(call)
        self.lacking = self.lacking or (whole and call.arguments in (None, ""))

    def grow(self, event: Event) -> None:
        """Take an event that brings a piece of the arguments, or all of them."""
        fields = event.fields
        if not all(
            isinstance(fields.get(key), str | None) for key in ("delta", "arguments", "input", "name")
        ):
            self.flag("arguments of an odd type")
        said = Call(name=text_of(fields.get("name")), call_id=text_of(fields.get("call_id")))
        if said != Call():
            self.view(said)
        address = (event.index, event.item_id)
        if "delta" in fields:
            if self.address not in {None, address}:
                self.flag("deltas under two addresses")  # a client that goes by index or id alone misses some
            self.address = address
        if "arguments" in event.kind or "input" in event.kind:
            self.parts.append(text_of(fields.get("delta")))
            self.finals += [text for key in ("arguments", "input") if (text := text_of(fields.get(key)))]

    def whole(self) -> Call:
        """Return the call that all events together tell of; a flaw where they tell of two."""
        call = self.call
        joined = "".join(self.parts)
        for text in (joined, *self.finals):
            if text:
                call = Call(kind=call.kind, arguments=text).joined(call)
        # A client that appends deltas to what the item began with reads it twice: that only parses if it is no object.
        if self.start and joined and not joined.lstrip().startswith("{"):
            call = replace(call, flaw=call.flaw or "arguments in the item's start and in deltas")
        return call

    def doubts(self, call: Call) -> str:
        """Say why nobody can tell the arguments of the whole call."""
        return self.doubt or (_LACKING if self.lacking and call.arguments not in (None, "") else "")


class Slots:
    """All items of a stream."""

    __slots__ = ("_by_id", "_by_index", "_count")

    def __init__(self) -> None:
        self._by_index: dict[int | None, Slot] = {}
        self._by_id: dict[str, Slot] = {}
        self._count = 0

    @property
    def full(self) -> bool:
        """Say whether there were more items than any answer has."""
        return self._count > MAX_SLOTS

    def add(self, event: Event, item: Mapping[str, Any]) -> Slot:
        """Return a new slot for an event's item, found from now on by its index and id."""
        slot = Slot(event.index, kind=text_of(item.get("type")).strip().casefold())
        self.place(slot, text_of(item.get("id")))
        return slot

    def place(self, slot: Slot, item_id: str) -> None:
        """Let a slot be found."""
        self._count += 1
        self._by_index[slot.index] = slot
        if item_id:
            self._by_id[item_id] = slot

    def at(self, index: int | None) -> Slot | None:
        """Return what stands at an index now; None: what came without one."""
        return self._by_index.get(index)

    def of_item(self, event: Event, item: Mapping[str, Any]) -> Slot | None:
        """Return the slot that an event with a whole item is about."""
        if event.index is not None:
            return self._by_index.get(event.index)
        return self._by_id.get(text_of(item.get("id"))) or self._by_index.get(None)

    def of_detail(self, event: Event) -> tuple[Slot | None, str]:
        """Return the slot an event without an item belongs to, and why parsers would disagree on that."""
        by_id = self._by_id.get(event.item_id)
        if event.index is None:
            # What names no item and brings nothing (a keep-alive) belongs to none, be there one without an index.
            nameless = self._by_index.get(None) if event.brings or event.item_id else None
            return by_id or nameless, "arguments with an odd output_index" if event.odd else ""
        slot = self._by_index.get(event.index)
        if by_id is not None and slot is not by_id and (by_id.is_call or (slot is not None and slot.is_call)):
            return slot, "arguments for two calls, by index and by id"
        return slot, ""
