"""The laws of every dialect, over any stream: no exception, no denied call in what leaves, nothing touched that was not refused.

And: what a client runs was judged, by these arguments. How a stream is cut into chunks decides nothing, nor does the fast path, which lets frames pass unread.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_proxy.llm.inspecting import Inspection, read_whole
from fuzz import grammar, mutants, readers

from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.base import Dialect, Fault, Judge, Limits, Step, Stream
from agentsh_net.core.dialects.bedrock import dialect as bedrock
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.gemini.stream import GeminiStream
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.interactions import dialect as interactions
from agentsh_net.core.dialects.ollama import dialect as ollama
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.openai_responses import dialect as openai_responses
from agentsh_net.core.model import Action, ToolCall, Verdict

WIDE: Final = Limits()
NARROW: Final = Limits(max_frame=300, held=1500)

# What passes unread under fail open, because it outgrew a bound or no two clients could read it: no law holds there.
_UNREAD: Final = frozenset({"frame_too_long", "held_too_long", "body_too_large", "malformed_frame"})


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text)
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").strip().casefold()


def is_denied(name: Any, value: Any) -> bool:
    """Say whether a client must not run this; what has no name, nobody can run."""
    if not isinstance(name, str) or not name:
        return False
    return "drop" in _folded(name) or grammar.EVIL in json.dumps(value)


def _told(name: str, value: Any) -> tuple[str, str]:
    return _folded(name), json.dumps(value, sort_keys=True).casefold()  # keys are lower case to some readers


def judge(call: ToolCall) -> Verdict:
    """Refuse what is denied, and what can be read in several ways: a rule over arguments is about every tool here."""
    reason = call.flaw or call.doubt or ("denied" if is_denied(call.name or "?", call.input) else "")
    unread = isinstance(call.input, str) and call.input.lstrip()[:1] in ("{", "[")
    if not reason and (unread or call.hypothetical):
        reason = "arguments that nobody can judge"  # as rules over arguments have it
    return Verdict(Action.BLOCK, reason, "law") if reason else Verdict(Action.ALLOW, "allowed")


@dataclass
class Came:
    """What a stream came to."""

    out: bytes = b""
    allowed: set[tuple[str, str]] = field(default_factory=set)  # names and arguments, as `_told` has them
    judged: list[tuple[str, str, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    ended: bool = False
    unified: bool = False

    def judge(self, call: ToolCall) -> Verdict:
        """Judge, and note that only some clients would read a call: it is written so that none does."""
        self.unified = self.unified or call.hypothetical
        return judge(call)

    def knows(self, name: Any, value: Any) -> bool:
        """Say whether what a client runs was judged as that; some run a call with no arguments, be it that they lost them."""
        if not isinstance(name, str) or not name or not isinstance(value, dict) or not value:
            return True
        return _told(name, value) in self.allowed

    def take(self, step: Step) -> None:
        """Note what a step told."""
        self.judged += [(j.call.name, j.verdict.action.value, j.verdict.reason) for j in step.judged]
        self.allowed |= {_told(j.call.name, j.call.input) for j in step.judged if not j.verdict.blocked}
        self.faults += step.faults
        self.ended = step.end

    @property
    def blocked(self) -> list[tuple[str, str, str]]:
        return [one for one in self.judged if one[1] == "block"]


def came(
    wire: Wire, limits: Limits, chunks: Iterable[bytes], *, fail_closed: bool, fast: bool = True
) -> Came:
    """Feed a stream to its end."""
    result = Came()
    stream = wire.machine(limits, result.judge, fail_closed=fail_closed, fast=fast)
    out = []
    for chunk in chunks:
        step = stream.feed(chunk)
        out.append(step.out)
        result.take(step)
        if step.end:
            break
    else:
        step = stream.finish()
        out.append(step.out)
        result.take(step)
    result.out = b"".join(out)
    return result


def cut(data: bytes, seed: int) -> list[bytes]:
    """Return `data` in pieces: one, single bytes, or any."""
    if seed % 8 == 0:
        return [data]
    if seed % 8 == 1 and len(data) <= 300:
        return [data[at : at + 1] for at in range(len(data))]
    rng = random.Random(seed)
    places = sorted(rng.randrange(len(data) + 1) for _ in range(1 + seed % 13))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


class _SlowGemini(GeminiStream):
    def _begin(self, start: bytes) -> Inspector:
        inspector = super()._begin(start)
        inspector.heed()
        return inspector


Framed = Callable[[Iterable[grammar.Made], grammar.Choices], bytes]
Reader = Callable[[readers.Values, readers.Hook], Iterator[readers.Run]]
Framing = Callable[[bytes, readers.Hook], readers.Values]


@dataclass(frozen=True)
class Wire:
    """A dialect, how hostile streams of it are made, and how clients read it."""

    dialect: Dialect
    build: grammar.Builder
    framed: Framed
    framings: tuple[Framing, ...]
    reader: Reader

    def make(self, c: grammar.Choices, *, honest: bool = False) -> bytes:
        """Return a stream: of any events, or an `honest` one with some changes."""
        events = mutants.mutated(self.build.__name__, c) if honest else grammar.made(self.build, c)
        return self.framed(events, c)

    def machine(self, limits: Limits, judge: Judge, *, fail_closed: bool, fast: bool = True) -> Stream:
        if not fast and self.dialect is gemini.STREAMED:
            return _SlowGemini(
                judge, limits=limits, fail_closed=fail_closed, enforce=lambda: True,
                error=lambda message: self.dialect.error(502, message),
            )  # fmt: skip
        stream = self.dialect.stream(judge, limits=limits, fail_closed=fail_closed)
        if not fast:
            assert isinstance(stream, Inspector)
            stream.heed()
        return stream

    def denied_in(self, out: bytes, judged: Came | None = None, *, whole: bool = False) -> str:
        """Return who would run what is denied in these bytes, and what; or what is not among the `judged`."""
        framings: tuple[Framing, ...] = (_whole,) if whole else self.framings
        for framing in framings:
            for manner, hook in readers.HOOKS.items():
                for name, value in self.reader(framing(out, hook), hook):
                    if is_denied(name, value) or (judged is not None and not judged.knows(name, value)):
                        return f"{framing.__name__}, {manner}: {name!r} with {value!r}"
        return ""


def _whole(data: bytes, hook: readers.Hook) -> readers.Values:
    value = readers.loads(data, hook)
    return [("", one) for one in (value if isinstance(value, list) else [value])]


def _gemini_stream(events: Iterable[grammar.Made], c: grammar.Choices) -> bytes:
    return grammar.sse(events, c) if c.byte() & 1 else grammar.array(events, c)


def _wrapped(events: Iterable[grammar.Made], c: grammar.Choices) -> bytes:
    return grammar.messages(events, c, wrap=True)


def _bare(events: Iterable[grammar.Made], c: grammar.Choices) -> bytes:
    return grammar.messages(events, c, wrap=False)


_SSE: Final = (readers.by_events, readers.by_decoded_lines)
WIRES: Final[dict[str, Wire]] = {
    "anthropic": Wire(anthropic.DIALECT, grammar.anthropic, grammar.sse, _SSE, readers.anthropic),
    "chat": Wire(openai_chat.DIALECT, grammar.chat, grammar.sse, _SSE, readers.chat),
    "responses": Wire(openai_responses.DIALECT, grammar.responses, grammar.sse, _SSE, readers.responses),
    "gemini": Wire(
        gemini.STREAMED, grammar.gemini, _gemini_stream, (*_SSE, readers.by_objects, readers.by_joined_lines), readers.gemini
    ),
    "interactions": Wire(interactions.DIALECT, grammar.interactions, grammar.sse, _SSE, readers.interactions),
    "ollama": Wire(ollama.DIALECT, grammar.ollama, grammar.lines, (readers.by_lines, readers.by_objects), readers.ollama),
    "converse": Wire(bedrock.CONVERSE_STREAM, grammar.converse, _bare, (readers.by_messages,), readers.converse),
    "invoke": Wire(bedrock.INVOKE_STREAM, grammar.anthropic, _wrapped, (readers.by_chunks,), readers.anthropic),
}  # fmt: skip

# The head of an input: how it is made into a stream, how that is cut, and what the operator wants.
HEAD: Final = 2


def check(wire: Wire, data: bytes) -> None:
    """Run one input through all laws. Raises AssertionError where one is broken."""
    options, seed = (*data[:HEAD], 0, 0)[:2]
    fail_closed, narrow, grown, honest = bool(options & 1), options & 6 == 6, options & 8, bool(options & 16)
    stream = wire.make(grammar.Choices(data[HEAD:]), honest=honest) if grown else data[HEAD:]
    limits = NARROW if narrow else WIDE
    pieces = cut(stream, seed)
    fast = came(wire, limits, pieces, fail_closed=fail_closed)
    _check_out(wire, stream, fast)
    if narrow:
        return  # where a bound is met, chunks decide what of an oversize frame comes first
    once = came(wire, limits, [stream], fail_closed=fail_closed)
    # A CR at the end of a chunk ends its line: the LF behind it is then a blank line of its own, which says nothing.
    alike = [(one.out.translate(None, b"\r\n"), one.judged, one.ended) for one in (once, fast)]
    # A stream that is cut may be cut at another of its faults.
    assert alike[0] == alike[1] or (once.ended and fast.ended and once.faults), "chunks decide"
    slow = came(wire, limits, pieces, fail_closed=fail_closed, fast=False)
    if slow.out != fast.out:
        _check_out(wire, stream, slow)
    # Broken frames and keys that stand twice pass unread where no call can be in them.
    unread = Counter((n, a) for n, a, _ in slow.judged) - Counter((n, a) for n, a, _ in fast.judged)
    assert not any(name for name, _ in unread) or slow.ended, f"the fast path let {unread} pass"
    if not slow.faults and slow.judged == fast.judged:
        assert (slow.out, slow.ended) == (fast.out, fast.ended), "the fast path decides"


def _check_out(wire: Wire, stream: bytes, result: Came) -> None:
    passed = {fault.cause for fault in result.faults if not fault.cut}
    if not passed & _UNREAD:
        found = wire.denied_in(result.out, result)
        assert not found, f"{found} ({result.judged}, {result.faults})"
    if not (result.blocked or result.faults or result.unified):
        assert result.out == stream, "touched, though nothing was refused"
    facts = len(result.judged) + len(result.faults)
    assert len(result.out) <= 4 * len(stream) + 16384 * (1 + facts), "more leaves than came"


def check_whole(wire: Wire, data: bytes) -> None:
    """Run one input through the laws of a whole answer, read as the proxy does."""
    options = (*data[:1], 0)[0]
    fail_closed, grown = bool(options & 1), options & 8
    c = grammar.Choices(data[1:])
    text = _whole_answer(wire, c) if grown else data[1:]
    faults: list[Fault] = []
    inspection = Inspection(
        wire.dialect, judge, WIDE, fail_closed, 1 << 20, wants_stream=False, note=lambda step: faults.extend(step.faults)
    )  # fmt: skip
    step = read_whole(text, inspection)
    if not {fault.cause for fault in step.faults if not fault.cut} & _UNREAD:
        found = wire.denied_in(step.out, whole=True)
        assert not found, f"{found} in {step.out!r}"
    if not step.faults and not any(j.verdict.blocked for j in step.judged):
        assert step.out == text


def _whole_answer(wire: Wire, c: grammar.Choices) -> bytes:
    """Return one JSON answer."""
    value: Any
    match wire.dialect.name:
        case "anthropic":
            value = {
                "type": "message",
                "content": [grammar._block(c) for _ in range(1 + c.byte() % 3)],
                "stop_reason": "tool_use",
            }
        case "openai_chat" | "openai":
            made = [grammar._chat_entry(c) for _ in range(1 + c.byte() % 3)]
            message = {"role": "assistant", "content": None, "tool_calls": made}
            if c.byte() & 1:
                message["function_call"] = {"name": c.pick(grammar.NAMES), "arguments": c.pick(grammar.PARTS)}
            value = {"choices": [{"index": 0, "message": message, "finish_reason": c.pick(grammar.REASONS)}]}
        case "openai_responses":
            value = {
                "id": "r",
                "object": "response",
                "output": [grammar._item(c) for _ in range(1 + c.byte() % 3)],
            }
        case "gemini":
            value = grammar.gemini(c)[1]
        case "interactions":
            steps = [grammar._step(c) for _ in range(1 + c.byte() % 3)]
            value = {"id": "i", "status": c.pick(("requires_action", "completed")), "steps": steps}
        case "ollama":
            value = grammar.ollama(c)[1]
        case _:
            use = {
                "name": c.pick(grammar.NAMES),
                "toolUseId": c.pick(grammar.IDS),
                "input": c.pick(grammar.INPUTS),
            }
            value = {
                "output": {
                    "message": {"role": "assistant", "content": [{"toolUse": use}, {"text": c.text()}]}
                }
            }
    return grammar.spelled(value, c).encode("utf-8", "surrogatepass")
