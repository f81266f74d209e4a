"""The order in which the pieces of a streamed completion's calls come: only in the plainest do all clients add up the same arguments.

Some go by the index and some by the id, some take what comes for the last call, the first entry of a list, the first choice, or every
piece with a name for a call of its own. Names are the ledger's business; it asks about every reading.
"""

from __future__ import annotations

from typing import Final

from agentsh_net.core.dialects.openai_chat.calls import Call
from agentsh_net.core.dialects.openai_chat.fragments import Fragment, Slot

_BROKEN: Final = "some clients add its pieces up in another way"


class Order:
    """Follows the pieces; `broken` says why nobody can tell what arguments are, or nothing."""

    __slots__ = ("_framed", "_ids", "_last", "_place", "_slots", "broken")

    def __init__(self) -> None:
        self.broken = ""
        self._place: tuple[int, str, str] | None = None  # choice, and where in it
        self._slots: set[Slot] = set()
        self._ids: dict[str, Call] = {}
        self._last: Call | None = None
        self._framed = False  # the last call has a piece in this frame

    def begin_frame(self) -> None:
        """Note that what follows comes in another frame."""
        self._framed = False

    def follow(self, fragment: Fragment, call: Call, *, begins: bool) -> None:
        """Take the next piece, before its call grows by it; `begins`: it is the first of its call."""
        if self.broken:
            return
        carrier, kind, _ = fragment.slot
        place = (fragment.choice, carrier, kind)
        self._place = self._place or place
        owner = self._ids.setdefault(fragment.id, call) if fragment.id else call
        if begins:
            plain = fragment.slot not in self._slots
            self._slots.add(fragment.slot)
            unplaced = len(self._slots) > 1 and (carrier, kind, None) in self._slots
        else:
            plain = call is self._last and not self._framed and not (fragment.names and any(call.texts))
            unplaced = False
        same_id = owner is call and fragment.id in ("", call.id or fragment.id)
        if not (plain and same_id and place == self._place) or unplaced or fragment.odd:
            self.broken = _BROKEN
        self._last, self._framed = call, True
