"""Amazon Bedrock's runtime: Converse and directly invoked models, whole and streamed, requests, and errors in its shape.

The path alone says which of the four. Guardrails, token counts and asynchronous invocations carry no calls. Who signs requests is
the proxy's business (core.web.aws_signature).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Final

from agentsh_net.core.dialects.base import Dialect, Framing, Judge, Limits
from agentsh_net.core.dialects.bedrock import events as bedrock_events
from agentsh_net.core.dialects.bedrock import invoke as bedrock_invoke
from agentsh_net.core.dialects.bedrock import request as bedrock_request
from agentsh_net.core.dialects.bedrock.calls import NAME, Rulings, rewrite_whole
from agentsh_net.core.dialects.block_stream import BlockMachine
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import event_stream
from agentsh_net.core.framing.event_stream import EventStreamDecoder
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values import strict_json

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


def _conversing(judge: Judge, limits: Limits) -> BlockMachine:
    rulings = Rulings(judge)
    return BlockMachine(
        rulings, limits, bedrock_events.words(rulings, bedrock_events.make, bedrock_events.put)
    )


def _messages(max_frame: int) -> Framing:
    return Framing(EventStreamDecoder(max_frame), bedrock_events.put)


def _unwrapped(max_frame: int) -> Framing:
    """Cut the messages of invoked models, which wrap what they say."""
    return Framing(_Unwrapping(max_frame), bedrock_invoke.put)


def _error(status: int, message: str) -> bytes:
    """Return an error body; the SDKs take its type for the error's code."""
    kind = _ERRORS.get(status, "ValidationException" if status < 500 else "InternalServerException")
    return strict_json.dump({"__type": kind, "message": message}).encode()


def _paths(operation: str) -> dict[str, re.Pattern[str]]:
    """Return where an operation is asked for; a model's id may be an ARN with slashes in it."""
    return {"POST": re.compile(rf"/(?:.*/)?model/.+/{operation}")}


# An event of a kind that no SDK knows: they skip it, and wait on.
_COMMENT: Final = event_stream.make(
    {":event-type": "ping", ":content-type": "application/json", ":message-type": "event"}, b"{}"
)
_WIRE: Final = Wire(EventStreamDecoder, strict=True, comment=_COMMENT)

DIALECT: Final = Dialect(
    NAME,
    _paths("converse"),
    request=partial(bedrock_request.converse, stream=False),
    stream=streamed(_conversing, _WIRE, bedrock_events.error),
    body=whole(rewrite_whole, _error),
    error=_error,
    error_frame=bedrock_events.error,
)
CONVERSE_STREAM: Final = replace(
    DIALECT,
    paths=_paths("converse-stream"),
    request=partial(bedrock_request.converse, stream=True),
    framing=_messages,
)
INVOKE: Final = replace(
    DIALECT,
    paths=_paths("invoke"),
    request=partial(bedrock_request.invoke, stream=False),
    stream=streamed(bedrock_invoke.InvokeMachine, replace(_WIRE, wraps=True), bedrock_events.error),
    body=whole(bedrock_invoke.rewrite_whole, _error),
)
INVOKE_STREAM: Final = replace(
    INVOKE,
    paths=_paths("invoke-with-response-stream"),
    request=partial(bedrock_request.invoke, stream=True),
    framing=_unwrapped,
)
