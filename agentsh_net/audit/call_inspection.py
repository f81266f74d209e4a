"""What detectors find in the arguments of calls, put into their events: told, and never a verdict.

One place for every layer that sees a call, in the supervisor, where the operator's own patterns are known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import orjson

from agentsh_net.core.audit.events import ToolCalled, ToolCallIntercepted
from agentsh_net.core.configuration.settings import CustomPattern, Inspection
from agentsh_net.core.inspect.contents import QUIET, inspect_arguments, inspect_calls
from agentsh_net.core.inspect.custom import Custom, compiled
from agentsh_net.core.inspect.findings import Finding, worst

Record = Callable[..., None]  # takes events

KINDS = frozenset({ToolCalled.type, ToolCallIntercepted.type})

# Strings and other values that are looked at on the spot, some 2 ms; more of them would hold up the event loop.
MAX_AT_ONCE = 4 << 10

# Calls whose arguments are read together; where one of them holds something, each of them is read by itself.
MAX_TOGETHER = 64

# Arguments that were looked at and may come again, as those of a client that polls: half a megabyte at most.
MAX_KNOWN = 512
MAX_KNOWN_SIZE = 1 << 10  # bytes


class CallInspector:
    """The detectors of the policy in force, over the arguments that events carry (64 KiB of them at most)."""

    def __init__(self, inspection: Callable[[], Inspection]) -> None:
        self._inspection = inspection
        self._customs: tuple[tuple[CustomPattern, ...], tuple[Custom, ...]] = (), ()
        self._known: dict[bytes, tuple[Finding, ...]] = {}  # arguments as JSON -> what they hold

    def take(self, value: dict[str, Any], record: Record) -> Coroutine[Any, Any, None] | None:
        """Record an event with what its arguments hold, or return what does so: long ones wait for a thread, their call does not."""
        if not self.wanted(value):
            record(value)
        elif self.quick(value):
            record(*self.together([value]))
        else:
            return self.later(value, record)
        return None

    def together(self, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return events whose arguments are `quick` to read with what they hold."""
        patterns = self._patterns()
        texts = [_text(value["input"]) for value in values]
        new = [i for i, text in enumerate(texts) if values[i].get("input") and text not in self._known]
        read: dict[int, tuple[Finding, ...]] = {}
        new.sort(key=lambda i: texts[i].isascii())  # one of another alphabet has all with it read one by one
        for start in range(0, len(new), MAX_TOGETHER):
            some = new[start : start + MAX_TOGETHER]
            read |= zip(some, inspect_calls([values[i]["input"] for i in some], patterns), strict=True)
        known = [
            _with(value, found) if (found := read.get(i, self._known.get(texts[i], ()))) else value
            for i, value in enumerate(values)
        ]
        for i, found in read.items():
            self._remember(texts[i], found)
        return known

    def hold_nothing(self, texts: Sequence[str]) -> bool:
        """Say whether arguments, each as compact JSON, surely hold nothing."""
        if self._patterns():
            return False
        plain: list[str] = []
        others: list[str] = []
        for text in texts:
            (plain if text.isascii() and "\\" not in text and "%" not in text else others).append(text)
        texts = [*QUIET.doubtful(plain), *others]
        if not texts:
            return True
        if max(map(len, texts)) > MAX_AT_ONCE:
            return False
        # Those that no glance tells apart from others by themselves.
        values = orjson.loads("[" + ",".join(sorted(texts, key=str.isascii)) + "]")
        parts = (values[start : start + MAX_TOGETHER] for start in range(0, len(values), MAX_TOGETHER))
        return not any(any(inspect_calls(part)) for part in parts)

    async def later(self, value: dict[str, Any], record: Record) -> None:
        """Record an event with what its long arguments hold, read in a thread."""
        try:
            value = await asyncio.to_thread(self.inspected, value)
        finally:
            record(value)  # as it is, where the daemon ends meanwhile

    def wanted(self, value: dict[str, Any]) -> bool:
        """Say whether an event (as JSON) is a call with arguments."""
        return value["type"] in KINDS and bool(value.get("input"))

    def quick(self, value: dict[str, Any]) -> bool:
        """Say whether its arguments are read at once."""
        return _size(value["input"], MAX_AT_ONCE) <= MAX_AT_ONCE

    def inspected(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the event with what was found."""
        return _with(value, inspect_arguments(value["input"], self._patterns()))

    def _remember(self, text: bytes, found: tuple[Finding, ...]) -> None:
        if not text:
            return
        while len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        # A copy: what orjson returns keeps the room in which it was written.
        self._known[bytes(memoryview(text))] = found

    def _patterns(self) -> tuple[Custom, ...]:
        wanted = self._inspection().custom_patterns
        if self._customs[0] != wanted:
            self._known = {}
            self._customs = wanted, compiled(wanted)
        return self._customs[1]


def _with(value: dict[str, Any], found: tuple[Finding, ...]) -> dict[str, Any]:
    if not found:
        return value
    return value | {"detections": [f.to_json() for f in found], "max_severity": worst(found)}


def _text(value: Any) -> bytes:
    """Return short arguments as JSON; empty for others."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # orjson.JSONEncodeError
        return b""
    return text if len(text) <= MAX_KNOWN_SIZE else b""


def _size(value: Any, limit: int) -> int:
    """Return about how many characters a value holds; past `limit` it stops counting."""
    waiting, size = [value], 0
    while waiting and size <= limit:
        match waiting.pop():
            case str() as text:
                size += len(text)
            case dict() as members:
                size += sum(map(len, members)) + len(members)
                waiting += members.values()
            case list() as items:
                size += len(items)
                waiting += items
    return size
