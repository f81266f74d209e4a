"""The events of a streamed interaction: what one says, and the step of text that stands in the place of a refused call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from agentsh_net.core.dialects.block_stream import MAX_BLOCKS, Event, Part, Words
from agentsh_net.core.dialects.interactions.steps import CARRIERS, Rulings, flaw_of, is_call, rewrite, strays
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.framing.sse_writing import make_frame, with_data
from agentsh_net.core.values.members import clash_of, folded, plain, twice
from agentsh_net.core.values.strict_json import Path, Reading, dump

_ENDS: Final = frozenset({"interaction.completed", "interaction.complete"})
# A step begins under one of these; until 2026 it was the other.
_STEP, _CONTENT = "step", "content"
_PARTS: Final = {
    f"{word}.{part.name.lower()}": part for word in (_STEP, _CONTENT) for part in (Part.START, Part.DELTA, Part.STOP)
}  # fmt: skip
# Every start is seen, so that steps are counted, the interaction's id, and every end, whatever else of an answer is: the dot may be
# spelled as an escape.
SIGNS: Final = (b".crea", b".star", b".comp", b"error", b"u002e")


def words(rulings: Rulings) -> Words:
    """Return what the machine has to know of one stream."""
    spoken = {_STEP}  # or, as it was until 2026, `content`
    provided: set[int] = set()  # indices of steps that the provider runs itself

    def read_event(kind: str, reading: Reading, _: Path) -> Event:
        event = read(kind, reading)
        name = _name(kind, reading.value)
        if name.startswith(_CONTENT):
            spoken.clear()
            spoken.add(_CONTENT)
        if event.index is None or event.call is not None:
            return event
        if event.piece is not None and event.index in provided and not is_call(folded(event.piece)):
            return replace(event, provided=True)
        if event.part is Part.START and len(provided) < MAX_BLOCKS:
            provided.add(event.index)
        return event

    def notice(index: int, told: str) -> Iterator[bytes]:
        (word,) = spoken
        step = {"type": "model_output"} if word == _STEP else {"type": "text", "text": ""}
        for name, fields in (
            (f"{word}.start", {word: step}),
            (f"{word}.delta", {"delta": {"type": "text", "text": told}}),
            (f"{word}.stop", {}),
        ):
            yield make_frame(name, dump({"event_type": name, "index": index, **fields}).encode())

    def rest(frame: Frame, reading: Reading, _: Event, out: Output) -> bytes:
        data = rewrite(frame.data or b"", reading, rulings, out)
        return frame.raw if data is None else with_data(frame, data)

    return Words(read_event, notice, rest, frozenset({Part.START}))


def read(kind: str, reading: Reading) -> Event:
    """Return the event in a frame; `kind` is what its `event:` line says."""
    root = reading.value
    top = folded(root)
    name = _name(kind, root)
    part = _part(name, top)
    begun, delta = _begun(top), top.get("delta")
    call = begun if isinstance(begun, dict) and is_call(folded(begun)) else None
    told = folded(delta)
    arguments = told.get("arguments")
    pieces = plain(str(told.get("type", ""))) == "argumentsdelta" or is_call(told)
    piece = delta if pieces and isinstance(delta, dict) else None
    alike: set[str] = set()
    for each in (root, begun, delta):
        alike |= twice(each) if isinstance(each, dict) else set()
    alike |= {plain(key) for key in reading.duplicates}
    flaw = clash_of(alike)
    if (call is not None and part is not Part.START) or (piece is not None and part is not Part.DELTA):
        flaw = flaw or "the event's type and its content differ"
    if kind and plain(kind.strip()) != plain(name):
        flaw = flaw or "the event's name and its type differ"
    if call is not None:
        flaw = flaw or flaw_of(call)
    index = top.get("index")
    lists = part in {Part.OTHER, Part.END, Part.ERROR}
    return Event(
        part=part,
        index=index if type(index) is int and index >= 0 else None,
        call=call,
        piece=piece if call is None else None,
        flaw=flaw,
        hidden=not lists and _hidden(root, alike, none=call is None and piece is None),
        text=arguments if isinstance(arguments, str) else None,
        given=folded(call).get("arguments")
        if call is not None
        else arguments
        if isinstance(arguments, dict)
        else None,
    )


def _name(kind: str, root: Any) -> str:
    told = folded(root).get("eventtype")
    return (told if isinstance(told, str) else kind).strip().casefold()


def _part(name: str, top: dict[str, Any]) -> Part:
    if name == "error" or (top.get("error") and "delta" not in top):
        return Part.ERROR
    if name in _ENDS:
        return Part.END
    return _PARTS.get(name, Part.OTHER)


def _begun(top: dict[str, Any]) -> Any:
    step = top.get(_STEP)
    return step if step is not None else top.get(_CONTENT)


def _hidden(root: Any, alike: set[str], *, none: bool) -> bool:
    """Say whether a parser may see a call in a part of a step that is not where one belongs."""
    known = frozenset(
        (key,) for key in root if plain(key) in {_STEP, _CONTENT, "delta"}
    ) if isinstance(root, dict) else frozenset()  # fmt: skip
    return (none and bool(alike & CARRIERS)) or strays(root, known)
