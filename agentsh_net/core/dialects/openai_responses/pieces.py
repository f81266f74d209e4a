"""Calls as Mistral's conversations stream them: events without an item, whose arguments clients add up by the index they share.

Nothing is held for them. A call that came whole may not grow, and of one in pieces nobody knows the arguments yet, so that a rule
over arguments denies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from agentsh_net.core.dialects.openai_responses.event import Event
from agentsh_net.core.dialects.openai_responses.items import Call, message, read_call
from agentsh_net.core.dialects.openai_responses.rulings import Place, Rulings
from agentsh_net.core.dialects.openai_responses.slots import NO_INDEX
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing.sse_writing import make_frame
from agentsh_net.core.values.strict_json import dump

KIND: Final = "function.call.delta"
_TEXT: Final = "message.output.delta"
_GREW: Final = "arguments for a call that came whole"
_IN_PIECES: Final = "its arguments came in pieces"


@dataclass(slots=True)
class _Begun:
    call: Call  # without its arguments
    whole: bool
    refused: bool = False


class Pieces:
    """Those of one answer."""

    __slots__ = ("_begun", "_rulings")

    def __init__(self, rulings: Rulings) -> None:
        self._begun: dict[int, _Begun] = {}
        self._rulings = rulings

    def take(self, event: Event, out: Output, late: str) -> bytes | None:
        """Return what takes the place of an event, perhaps nothing; None where it may pass. `late` is the flaw of a call that begins now."""
        index = event.index or 0  # Mistral's client takes a missing one for 0
        fields = {**event.fields, "type": "function_call", "call_id": event.fields.get("tool_call_id")}
        call = read_call(fields, event.flaw or (NO_INDEX if event.odd else ""))
        whole = isinstance(call.asked().input, dict)
        begun = self._begun.get(index)
        if begun is not None:
            contradiction = _GREW if begun.whole else begun.call.differs(replace(call, arguments=None))
            call = replace(call, flaw=call.flaw or contradiction)
        certain = whole and begun is None
        judged = call if certain else replace(call, arguments=None)
        place = Place(another=begun is None, late=late, doubt="" if certain else _IN_PIECES)
        notice = self._rulings.decide(judged, out, place)
        if begun is None:
            begun = self._begun[index] = _Begun(replace(call, arguments=None), whole)
        if not (notice or begun.refused):
            return None
        told, begun.refused = begun.refused, True
        return b"" if told else _text(notice, call, index)


def _text(notice: str, call: Call, index: int) -> bytes:
    """Return the event of a piece of text."""
    said = {
        "id": message(notice, call, index)["id"],
        "output_index": index,
        "content_index": 0,
        "role": "assistant",
    }
    return make_frame(_TEXT, dump({"type": _TEXT, **said, "content": str(notice)}).encode())
