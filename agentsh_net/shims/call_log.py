"""Calls that passed by a standing verdict, put on record after the fact: many at a time, at the least price a call.

What a verdict that stands is, is policy's business; what an event looks like `audit.call_events`'. The server has the calls by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from agentsh_net.audit.call_events import MALFORMED, Teller
from agentsh_net.clock import new_ids, now_rfc3339
from agentsh_net.core.audit.drafts import Draft, Sheet, drawn_up
from agentsh_net.core.audit.event_values import bounded_input
from agentsh_net.core.audit.joining import Intent, mark
from agentsh_net.core.links.link import MAX_INPUT, MAX_TEXT
from agentsh_net.core.links.shim_link import LinkError
from agentsh_net.core.mcp import bursts
from agentsh_net.core.mcp.gate import Call
from agentsh_net.core.mcp.skim import is_id
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.shims.dependencies import Dependencies

# The verdict on a call that may carry out an intent, and whether it holds for every call of its tool.
Rule = Callable[[Call, Intent | None], tuple[Verdict, bool]]

MAX_DRAFTS: Final = 1_000  # tools of one shim whose events are drawn up in advance; a busy one uses dozens

# Bytes of a line whose arguments cannot be longer than MAX_INPUT: a short number may become one of five times as many digits.
SHORT: Final = MAX_INPUT // 8

_Entry = tuple[Draft, int | str, Any]  # a call: what it has in common with others, its id, its arguments


class _Stamp(NamedTuple):
    """When calls were told of, and the bytes of the longest of their lines."""

    now: str
    longest: int


class CallLog:
    """What one shim tells of its calls."""

    def __init__(self, daemon: Dependencies, server_id: str, session_id: str, tell: Teller) -> None:
        self._daemon = daemon
        self._server_id = server_id
        self._session_id = session_id
        self._tell = tell
        self._snapshot: Snapshot | None = None  # that the drafts are of
        self._drafts: dict[str, Draft] = {}

    def forget(self) -> None:
        """Draw up events anew: what the verdicts rest on may be another."""
        self._drafts.clear()

    def claim(self, call: Call) -> Intent | None:
        """Return the call in a model's answer that a call carries out, where that was seen."""
        masked = self._daemon.snapshot().masked
        return self._daemon.claim(
            self._server_id, call.tool, lambda: mark(masked(call.input)), self._session_id
        )

    def take(self, lines: bytes, rule: Rule) -> None:
        """Put calls on record, a line each. Raises LinkError for what is none."""
        snapshot = self._daemon.snapshot()
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._drafts.clear()
        if self._drafts and self._take_plain(lines):
            return
        told = lines.split(b"\n")
        gathered: list[_Entry] = []
        ready: dict[str, Draft] = {}  # of the tools that no model's answer asked for
        stamp = _Stamp(now_rfc3339(), max(map(len, told)))
        try:
            for line, value in zip(told, _values(told), strict=True):
                news = self._drawn_up(line, value, ready)
                if news is not None:
                    gathered.append(news)
                    continue
                self._record(gathered, stamp)
                call = self._read(line)
                if call is not None:
                    self._take_one(call, rule)
        finally:
            self._record(gathered, stamp)

    def _take_plain(self, lines: bytes) -> bool:
        """Put calls on record whose lines are all of the plainest shape and whose events are all drawn up; False for others."""
        found = _plain_calls(lines) if len(lines) <= bursts.MAX_BURST else []
        ready: dict[str, Draft] = {}
        for tool in {tool for _, tool, *_ in found}:
            draft = self._ready(tool, ready)
            if draft is None or draft.template is None:
                return False
        calls = [(ready[tool], id_, arguments) for id_, tool, arguments, _ in found]
        if not calls or max(len(arguments) for _, _, arguments in calls) > SHORT:
            return False
        self._daemon.record_sheet(Sheet(now_rfc3339(), new_ids(len(calls)), calls))
        return True

    def _drawn_up(self, line: bytes, value: Any, ready: dict[str, Draft]) -> _Entry | None:
        """Return a call whose event is drawn up but for what is its own; None for any other."""
        try:
            id_, params = value["id"], value["params"]
            tool = params["name"]
            draft = ready.get(tool) or self._ready(tool, ready)
        except (KeyError, TypeError):
            return None
        if draft is None or not is_id(id_):
            return None
        arguments = params.get("arguments")
        return draft, id_, arguments if len(line) <= SHORT else bounded_input(arguments)

    def _ready(self, tool: str, ready: dict[str, Draft]) -> Draft | None:
        draft = self._drafts.get(tool)
        if draft is None or self._daemon.awaits(self._server_id, tool):
            return None
        ready[tool] = draft
        return draft

    def _read(self, line: bytes) -> Call | None:
        """Return the call on a line; which tool it is was certain to the shim, the rest is for the record."""
        try:
            match orjson.loads(line):
                case {"id": int() | str() as id_, "params": {"name": str(tool)} as params}:
                    return Call(id_, tool, params.get("arguments"))
        except orjson.JSONDecodeError as error:
            self._tell.uninspected("client", MALFORMED, len(line), Verdict(Action.ALLOW, str(error)))
            return None
        raise LinkError("a call that passed and is none")

    def _take_one(self, call: Call, rule: Rule) -> None:
        """Tell of a call by itself, and draw up the events of those that follow."""
        intent = self.claim(call)
        verdict, stands = rule(call, intent)
        if verdict.blocked:  # the policy changed between the call and now
            verdict = replace(verdict, action=Action.ALLOW, would=Action.BLOCK)
        self._tell.called(call, verdict, intent)
        drafted = len(self._drafts) < MAX_DRAFTS and len(call.tool) <= MAX_TEXT
        if stands and drafted and verdict.crossing is None:
            self._drafts[call.tool] = drawn_up(self._tell.draft(call, verdict))

    def _record(self, gathered: list[_Entry], stamp: _Stamp) -> None:
        """Hand on what was gathered, so that the record keeps the order of the calls."""
        if gathered:
            ids = new_ids(len(gathered))
            events = [
                {**draft.event, "id": new, "timestamp": stamp.now, "jsonrpc_id": id_, "input": arguments}
                for new, (draft, id_, arguments) in zip(ids, gathered, strict=True)
            ]
            gathered.clear()
            self._daemon.record(events, stamp.longest)


def _plain_calls(lines: bytes) -> list[tuple[str, ...]]:
    """Return the calls on lines of the plainest shape; none where one is of another."""
    if b"\\u" in lines:  # what such an escape spells may be no text
        return []
    try:
        return bursts.calls(lines.decode() + "\n")
    except UnicodeDecodeError:
        return []


def _values(lines: Sequence[bytes]) -> list[Any]:
    """Return what stands on lines, None on one that is no JSON."""
    try:
        values = orjson.loads(b"[" + b",".join(lines) + b"]")
    except orjson.JSONDecodeError:
        values = []
    return values if len(values) == len(lines) else [*map(_value, lines)]


def _value(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
