"""What a model that is invoked directly answers, in its maker's own format: Anthropic's, Converse's shape (Nova), OpenAI's, Cohere's.

Streams wrap it, base64 in a `chunk`. In a stream only the first two are read; a call in another format ends the answer, since
nobody could judge it: Converse speaks to every model.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from agentsh_net.core.dialects.anthropic import message as anthropic_message
from agentsh_net.core.dialects.anthropic.stream import SIGNS, AnthropicMachine
from agentsh_net.core.dialects.base import Judge, Limits
from agentsh_net.core.dialects.bedrock import calls as bedrock_calls
from agentsh_net.core.dialects.bedrock.events import message, words
from agentsh_net.core.dialects.block_stream import BlockMachine
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.foreign_calls import speaks_of_calls
from agentsh_net.core.dialects.machine import never
from agentsh_net.core.dialects.ollama import calls as ollama_calls
from agentsh_net.core.dialects.openai_chat import whole as openai_chat
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.spelling import Spelling
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import event_stream
from agentsh_net.core.framing.event_stream import ERROR
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.json_splice import splice
from agentsh_net.core.values.members import folded, plain
from agentsh_net.core.values.strict_json import Reading, dump, read

_CONVERSE: Final = frozenset(
    {"messagestart", "contentblockstart", "contentblockdelta", "contentblockstop", "messagestop", "metadata"}
)


class Family(Enum):
    """Whose format an event is in."""

    ANTHROPIC = auto()
    CONVERSE = auto()
    OTHER = auto()


def unwrapped(payload: Reading) -> bytes:
    """Return what a chunk holds. Raises ProtocolError where clients could decode it in two ways."""
    value = payload.value
    if not isinstance(value, dict) or [key for key in value if plain(key) == "bytes"] != ["bytes"]:
        raise ProtocolError("a chunk without bytes of its own")
    if any(plain(key) == "bytes" for key in payload.duplicates):
        raise ProtocolError("the key 'bytes' stands twice in a chunk")
    if speaks_of_calls({key: item for key, item in value.items() if key != "bytes"}):
        raise ProtocolError("a call beside the bytes of a chunk")
    text = value["bytes"]
    if not isinstance(text, str) or not text.isascii():
        raise ProtocolError("the bytes of a chunk are no base64")
    try:
        data = b64decode(text, validate=True)
    except ValueError as error:
        raise ProtocolError("the bytes of a chunk are no base64") from error
    if b64encode(data).decode() != text:  # bits that some decoders drop, or text behind the padding
        raise ProtocolError("the base64 of a chunk is not the one way to write its bytes")
    return data


def chunk(_: str, data: bytes) -> bytes:
    """Return an event as a message that wraps it."""
    return message("chunk", dump({"bytes": b64encode(data).decode()}).encode())


def put(frame: Frame, data: bytes) -> bytes:
    """Return the bytes of a message that wraps other data; what else its payload says stays."""
    payload = event_stream.read(frame.raw).payload
    return event_stream.with_payload(frame.raw, splice(payload, {("bytes",): b64encode(data).decode()}))


def _converse_chunk(kind: str, value: Mapping[str, Any]) -> bytes:
    return chunk("", dump({kind: dict(value)}).encode())


def family_of(value: Any) -> tuple[Family, str]:
    """Return whose format an event is in, and of Converse's its key."""
    keys = [key for key in value if plain(key) in _CONVERSE] if isinstance(value, dict) else []
    typed = isinstance(folded(value).get("type"), str)
    if typed and not keys:
        return Family.ANTHROPIC, ""
    if len(keys) == 1 and not typed:
        return Family.CONVERSE, keys[0]
    return Family.OTHER, ""


class InvokeMachine:
    """An `inspection.Machine` around that of the model's format, which the first event tells."""

    __slots__ = ("_anthropic", "_converse", "_family", "_spelling")

    knows = holds = never

    def __init__(self, judge: Judge, limits: Limits) -> None:
        self._spelling = Spelling(judge)  # of what is wrapped
        self._anthropic = AnthropicMachine(self._spelling.judge, limits, chunk, put)
        rulings = bedrock_calls.Rulings(self._spelling.judge)
        self._converse = BlockMachine(rulings, limits, words(rulings, _converse_chunk, put))
        self._family: Family | None = None

    @property
    def idle(self) -> bool:
        """Say whether there was no call in this answer."""
        return self._anthropic.idle and self._converse.idle

    @property
    def holding(self) -> bool:
        """Say whether events wait for a verdict."""
        return self._anthropic.holding or self._converse.holding

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a message."""
        if frame.event.startswith(ERROR):
            if reading is not None and speaks_of_calls(reading.value):
                out.fault("unknown_format", "a call in what says that it is an error", must_cut=True)
                return
            self._fail(frame, out)
        elif reading is None:
            self._pass(frame, out)
        else:
            self._chunk(frame, reading, out)

    def release(self, out: Output, doubt: str) -> None:
        """Let go of what the model's format lets go of."""
        self._anthropic.release(out, doubt)
        self._converse.release(out, doubt)

    def finish(self, out: Output) -> None:
        """Take the end of the stream."""
        self._anthropic.finish(out)
        if not out.end:
            self._converse.finish(out)

    def _chunk(self, frame: Frame, payload: Reading, out: Output) -> None:
        try:
            data = unwrapped(payload)
            if self.idle and not may_hide_call(data, SIGNS):
                self._pass(frame, out)
                return
            reading = read(data)
        except ProtocolError as error:
            out.fault("malformed_json", f"a chunk: {error}", must_cut=True)
            return
        self._spelling.note(reading.value)
        family, key = family_of(reading.value)
        if self._family is None and family is not Family.OTHER:
            self._family = family
        if family is not self._family or family is Family.OTHER:
            if speaks_of_calls(reading.value) or reading.duplicates:
                detail = "a call in a format that is not read in an invoked model's stream; converse-stream is read for every model"
                out.fault("unknown_format", detail, must_cut=True)
            else:
                self._pass(frame, out)
        elif family is Family.ANTHROPIC:
            self._anthropic.frame(Frame(frame.raw, data=data), reading, out)
        else:
            self._converse.take(Frame(frame.raw, data=data), key, reading, out, (key,))

    def _pass(self, frame: Frame, out: Output) -> None:
        """Pass a message on, behind what is held."""
        if self._family is Family.CONVERSE:
            self._converse.take(frame, "", None, out)
        else:
            self._anthropic.frame(Frame(frame.raw), None, out)

    def _fail(self, frame: Frame, out: Output) -> None:
        """Take an error of the provider."""
        if self._family is Family.CONVERSE:
            self._converse.take(frame, frame.event, None, out)
        else:
            self._anthropic.frame(Frame(frame.raw, "error", b"{}"), Reading({"type": "error"}), out)


def rewrite_whole(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of a whole answer in every format that it may be read in, by its keys; None where it stays."""
    made: bytes | None = None
    keys = frozenset(folded(reading.value)) | {plain(key) for key in reading.duplicates}
    formats = [rewrite for key, rewrite in _FORMATS if key in keys]
    for rewrite in formats or [anthropic_message.rewrite_whole]:
        changed = rewrite(data if made is None else made, reading, judge, out)
        if changed is not None:
            made = changed
            reading = strict_json.read(changed)
    return made


# By the key at the top that a format's calls stand under; a text in which several stand is read in each way.
_FORMATS: Final = (
    ("content", anthropic_message.rewrite_whole),
    ("choices", openai_chat.rewrite_whole),
    ("output", bedrock_calls.rewrite_whole),
    ("toolcalls", ollama_calls.rewrite_whole),
)
