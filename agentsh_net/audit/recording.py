"""The way of an event onto the record: stamped, masked, counted, joined, read by the detectors, kept and shown.

Not its business: who makes events, how they are kept (`store`) and who follows them (`control`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentsh_net.audit.call_inspection import MAX_AT_ONCE, CallInspector
from agentsh_net.audit.correlator import Correlator
from agentsh_net.clock import new_id, now_rfc3339
from agentsh_net.core.audit import events
from agentsh_net.core.audit.drafts import Row, Sheet
from agentsh_net.core.audit.events import Event
from agentsh_net.core.audit.tally import Tally
from agentsh_net.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where stamped events (as JSON) go."""

    note: Callable[[Mapping[str, Any]], None]  # to what joins calls
    keep: Callable[[list[dict[str, Any]]], None]  # to the store
    keep_rows: Callable[[list[Row]], None]  # to the store, as its rows
    show: Callable[[Mapping[str, Any]], None]  # to whoever follows
    shown: Callable[[], bool]  # somebody follows


class Recording:
    """Puts events on record. All methods belong to one event loop."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        outlets: Outlets,
        tally: Tally,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._snapshot = snapshot
        self._outlets = outlets
        self._tally = tally
        self._spawn = spawn
        self._correlator = Correlator(self._put)
        self._arguments = CallInspector(lambda: snapshot().config.sandbox.mcp.inspection)

    def emit(self, event: Event) -> None:
        """Stamp an event, record it, and show it to whoever follows. Never waits; a connection may, for what explains it."""
        self._correlator.take(event)

    def calls(self, values: list[dict[str, Any]], longest: int) -> None:
        """Record calls of one session to one server, stamped and let through, as `emit` does, at a third of the price.

        `longest`: bytes that the arguments of none of them exceed.
        """
        snapshot = self._snapshot()
        self._correlator.note(values[-1])
        self._tally.note_calls(values)
        if snapshot.guard is not None:
            for value in values:
                value["input"] = snapshot.masked(value["input"])
        quick = values
        if longest > MAX_AT_ONCE:
            quick = [value for value in values if self._arguments.quick(value)]
            for value in values:
                if not self._arguments.quick(value):
                    self._spawn(self._arguments.later(value, self._keep))
        self._keep(*self._arguments.together(quick))

    def sheet(self, sheet: Sheet) -> None:
        """Record calls as `calls` does, at a third of its price where nobody but the store has to see their arguments."""
        plain = self._snapshot().guard is None and not self._outlets.shown()
        if plain and self._arguments.hold_nothing([arguments for _, _, arguments in sheet.calls]):
            self._correlator.note(sheet.calls[-1][0].event)
            self._tally.note_calls(draft.event for draft, *_ in sheet.calls)
            self._outlets.keep_rows(sheet.rows())
        else:
            self.calls(sheet.events(), max(len(arguments) for _, _, arguments in sheet.calls))

    def flush(self) -> None:
        """Record what waits for its explanation."""
        self._correlator.flush()

    def _put(self, event: Event) -> None:
        if isinstance(event, events.ToolCalled):
            masked = self._snapshot().masked(event.input)
            event = event if masked is event.input else replace(event, input=masked)
        value = event.to_stamped_json(id=new_id(), timestamp=now_rfc3339())
        self._tally.note(value)
        self._outlets.note(value)
        self._correlator.note(value)
        reading = self._arguments.take(value, self._keep)
        if reading is not None:
            self._spawn(reading)

    def _keep(self, *values: dict[str, Any]) -> None:
        self._outlets.keep(list(values))
        for value in values:
            self._outlets.show(value)
