"""Ollama's own API: answers by lines (what it does unless `stream` is false) and whole ones, requests, and errors in its shape.

Its OpenAI- and Anthropic-like endpoints are read by their dialects. Pulling, creating and embedding carry no calls.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dialects.base import (
    Dialect,
    Enforce,
    Fault,
    Framing,
    Judge,
    Limits,
    RequestFacts,
    Step,
    Stream,
    always,
    asked,
)
from agentsh_net.core.dialects.inline_edits import in_place
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Wire, never
from agentsh_net.core.dialects.ollama.calls import NAME, Rulings
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.request_offers import offering
from agentsh_net.core.dialects.request_reading import ambiguous, read_object
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless
from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import folded, plain, twice
from agentsh_net.core.values.strict_json import Reading

# `generate` takes no tools; its answer has a place for calls all the same.
_PATHS: Final = {"POST": re.compile(r".*/api/(?:chat|generate)")}

_WIRE: Final = Wire(LineDecoder, strict=True, comment=b"")


class OllamaMachine:
    """An `inspection.Machine`: every line stands for itself, and none is held."""

    __slots__ = ("_rulings",)

    idle = True
    holding = False
    knows = holds = never

    def __init__(self, judge: Judge) -> None:
        self._rulings = Rulings(judge)

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a line."""
        data = None if reading is None else self._rulings.rewrite(frame.data or b"", reading, out)
        out.write(frame.raw if data is None else in_place(frame, data))

    def release(self, out: Output, doubt: str) -> None:
        """Nothing is held."""

    def finish(self, out: Output) -> None:
        """Nothing is held."""


class OllamaDialect:
    """A `base.Dialect`."""

    __slots__ = ()

    name = NAME
    own_framing = True
    files = False
    harmless = staticmethod(is_harmless)

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry tool calls."""
        return asked(_PATHS, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read whether the answer streams; Ollama calls no MCP servers itself."""
        reading = read_object(body)
        if isinstance(reading, Fault):
            return RequestFacts(stream=True, fault=reading)
        keys = {plain(key) for key in reading.duplicates} | twice(reading.value)
        stream = folded(reading.value).get("stream") is not False
        return RequestFacts(
            stream=stream, fault=ambiguous(body, keys & {"stream", "tools"}), parsed=offering(reading.value)
        )

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer."""
        return Inspector(
            lambda: OllamaMachine(judge),
            _WIRE,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            enforce=enforce,
        )

    def framing(self, max_frame: int) -> Framing:
        """Its streams are lines."""
        return Framing(LineDecoder(max_frame), in_place)

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""

        def rewrite(reading: Reading, out: Output) -> bytes | None:
            return Rulings(judge).rewrite(data, reading, out)

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:  # noqa: ARG002 - the status is not repeated in the body
        """Return an error body: in Ollama's shape it is the message alone."""
        return strict_json.dump({"error": message}).encode()

    def error_frame(self, message: str) -> bytes:
        """Return the line that ends a stream with an error."""
        return self.error(502, message) + b"\n"


DIALECT: Final[Dialect] = OllamaDialect()
