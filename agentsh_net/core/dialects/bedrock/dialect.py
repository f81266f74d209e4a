"""Amazon Bedrock's runtime: Converse and directly invoked models, whole and streamed, requests, and errors in its shape.

The path alone says which of the four. Guardrails, token counts and asynchronous invocations carry no calls. Who signs requests is
the proxy's business (core.web.aws_signature).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from agentsh_net.core.dialects.base import (
    Dialect,
    Enforce,
    Framing,
    Judge,
    Limits,
    RequestFacts,
    Step,
    Stream,
    always,
    asked,
)
from agentsh_net.core.dialects.bedrock import events as bedrock_events
from agentsh_net.core.dialects.bedrock import invoke as bedrock_invoke
from agentsh_net.core.dialects.bedrock import request as bedrock_request
from agentsh_net.core.dialects.bedrock.calls import NAME, Rulings, rewrite_whole
from agentsh_net.core.dialects.block_stream import BlockMachine
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Machine, Wire
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import event_stream
from agentsh_net.core.framing.event_stream import EventStreamDecoder
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, "Errors"
_ERRORS: Final = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    413: "ValidationException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


class _Unwrapping:
    """Cuts messages, and shows what their chunks wrap (`base.FrameDecoder`)."""

    __slots__ = ("_decoder",)

    def __init__(self, max_frame: int) -> None:
        self._decoder = EventStreamDecoder(max_frame)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes."""
        return [_shown(frame) for frame in self._decoder.feed(data)]

    def finish(self) -> Frame | None:
        """Return what the stream ended in the middle of."""
        return self._decoder.finish()


def _shown(frame: Frame) -> Frame:
    if frame.data is None or frame.oversize or frame.flaw:
        return frame
    try:
        return Frame(frame.raw, frame.event, bedrock_invoke.unwrapped(strict_json.read(frame.data)))
    except ProtocolError:
        return Frame(frame.raw)


class BedrockDialect:
    """A `base.Dialect` of one of the four operations."""

    __slots__ = ("_converses", "_paths", "_streams", "own_framing")

    name = NAME
    files = False
    harmless = staticmethod(is_harmless)

    def __init__(self, operation: str, *, converses: bool, streams: bool) -> None:
        # A model's id may be an ARN with slashes in it.
        self._paths = {"POST": re.compile(rf"/(?:.*/)?model/.+/{operation}")}
        self._converses = converses
        self._streams = streams
        self.own_framing = streams

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry tool calls."""
        return asked(self._paths, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read which MCP servers the provider is to call, and what it offers."""
        read = bedrock_request.converse if self._converses else bedrock_request.invoke
        return read(body, stream=self._streams)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer."""

        def machine() -> Machine:
            if self._converses:
                rulings = Rulings(judge)
                words = bedrock_events.words(rulings, bedrock_events.make, bedrock_events.put)
                return BlockMachine(rulings, limits, words)
            return bedrock_invoke.InvokeMachine(judge, limits)

        return Inspector(
            machine,
            _CONVERSING if self._converses else _INVOKED,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            enforce=enforce,
        )

    def framing(self, max_frame: int) -> Framing | None:
        """Its streams are messages; those of invoked models wrap what they say."""
        if not self._streams:
            return None
        if self._converses:
            return Framing(EventStreamDecoder(max_frame), bedrock_events.put)
        return Framing(_Unwrapping(max_frame), bedrock_invoke.put)

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""

        def rewrite(reading: Reading, out: Output) -> bytes | None:
            if self._converses:
                return rewrite_whole(data, reading, Rulings(judge), out)
            return bedrock_invoke.rewrite(data, judge, reading, out)

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body; the SDKs take its type for the error's code."""
        kind = _ERRORS.get(status, "ValidationException" if status < 500 else "InternalServerException")
        return strict_json.dump({"__type": kind, "message": message}).encode()

    def error_frame(self, message: str) -> bytes:
        """Return the message that ends a stream with an error."""
        return bedrock_events.error(message)


# An event of a kind that no SDK knows: they skip it, and wait on.
_COMMENT: Final = event_stream.make(
    {":event-type": "ping", ":content-type": "application/json", ":message-type": "event"}, b"{}"
)

_CONVERSING: Final = Wire(EventStreamDecoder, strict=True, comment=_COMMENT)
_INVOKED: Final = replace(_CONVERSING, wraps=True)

DIALECT: Final[Dialect] = BedrockDialect("converse", converses=True, streams=False)
CONVERSE_STREAM: Final[Dialect] = BedrockDialect("converse-stream", converses=True, streams=True)
INVOKE: Final[Dialect] = BedrockDialect("invoke", converses=False, streams=False)
INVOKE_STREAM: Final[Dialect] = BedrockDialect("invoke-with-response-stream", converses=False, streams=True)
