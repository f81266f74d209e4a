"""A stream whose events come as messages, one each (WebSocket), through the machine that reads them as server-sent events.

What the machine lets pass unchanged leaves as the message it came in. What an event means is the dialect's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from agentsh_net.core.dialects.base import Step, Stream

_DATA: Final = b"data: "
_END: Final = b"\n\n"
# What a message gains on its way into the machine, which must not put it over the bound that it is held to.
GAIN: Final = len(_DATA) + len(_END)
_BEGINS: Final = b'"response.created"'


class Passed(NamedTuple):
    """A message that leaves: `raw` as it came, or (None) `text` that the machine made."""

    raw: bytes | None
    text: bytes


class Leaving(NamedTuple):
    """What one message leads to. `end`: nothing may follow."""

    messages: list[Passed]
    facts: Step
    end: bool = False


class MessageStream:
    """The events of one connection; each answer that begins on it gets a machine of its own."""

    __slots__ = ("_machine", "_make", "_max", "_waiting")

    def __init__(self, make: Callable[[], Stream], *, max_frame: int) -> None:
        self._make = make
        self._machine = make()
        self._max = max_frame
        self._waiting: deque[tuple[bytes, bytes]] = deque()  # as the machine was fed, and as it came

    def feed(self, text: bytes, raw: bytes) -> Leaving:
        """Take a message."""
        begins = len(text) <= self._max and _BEGINS in text and _begins(text)
        first = self._begin() if begins else Leaving([], Step(b""))
        if first.end:
            return first
        fed = _DATA + text.replace(b"\r", b" ").replace(b"\n", b" ")
        self._waiting.append((fed, raw))
        step = self._machine.feed(fed + _END)
        facts = step._replace(
            judged=first.facts.judged + step.judged, faults=first.facts.faults + step.faults
        )
        return Leaving(first.messages + self._left(step.out), facts, step.end)

    def finish(self) -> Leaving:
        """Take the end of the connection: what is held is never released."""
        step = self._machine.finish()
        left = self._left(step.out)
        self._waiting.clear()
        return Leaving(left, step, step.end)

    def _begin(self) -> Leaving:
        ended = self.finish()
        self._machine = self._make()
        return ended

    def _left(self, out: bytes) -> list[Passed]:
        """Return the messages in what the machine let go: it changes no order, so that what is passed over was replaced."""
        left = []
        for frame in out.split(_END):
            if not frame:
                continue
            at = next((at for at, (fed, _) in enumerate(self._waiting) if fed == frame), -1)
            if at < 0:
                left.append(Passed(None, frame[frame.find(_DATA) + len(_DATA) :]))
                continue
            for _ in range(at):
                self._waiting.popleft()
            left.append(Passed(self._waiting.popleft()[1], b""))
        if not self._machine.holding:
            self._waiting.clear()
        return left


def _begins(text: bytes) -> bool:
    """Say whether a message is the first of an answer."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and value.get("type") == "response.created"
