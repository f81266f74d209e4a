"""Chat completion streams in the shapes that providers send, their building blocks, and a way to run them through the dialect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transcripts import playing
from transcripts.playing import Denying, cut_at, denying, every_chunking, runner

from agentsh_net.core.dialects.openai_chat.dialect import DIALECT
from agentsh_net.core.model import Action, ToolCall, Verdict

__all__ = ["Denying", "cut_at", "denying", "every_chunking"]

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.sse"))

# The tools of the transcripts.
WEATHER, DELETE = "mcp__weather__get", "mcp__fs__delete"
DONE = b"data: [DONE]\n\n"


def load(name: str) -> bytes:
    """Return a transcript."""
    return (HERE / f"{name}.sse").read_bytes()


def raw(data: str | bytes) -> bytes:
    """Return an event with any data."""
    return b"data: " + (data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data) + b"\n\n"


def chunk(
    delta: dict[str, Any] | None = None,
    finish: Any = None,
    *,
    choice: Any = 0,
    carrier: str = "delta",
    **more: Any,
) -> bytes:
    """Return an event with one choice, spaced and with a float that a careless rewrite would spoil."""
    return raw(
        json.dumps(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1700000000,
                "model": "gpt-test",
                "choices": [{"index": choice, carrier: delta or {}, "finish_reason": finish}],
                **more,
            }
        )
    )


def text(content: str, *, choice: int = 0) -> bytes:
    """Return a text delta."""
    return chunk({"content": content}, choice=choice)


def entry(
    index: Any = 0, *, name: Any = None, args: Any = None, call_id: Any = None, **more: Any
) -> dict[str, Any]:
    """Return an entry of `tool_calls`; `index=...` leaves it without one."""
    function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}
    known = {} if index is ... else {"index": index}
    if call_id is not None:
        known |= {"id": call_id, "type": "function"}
    return known | {"function": function} | more


def calls(*entries: dict[str, Any], finish: Any = None, choice: int = 0, **more: Any) -> bytes:
    """Return a chunk with these entries."""
    return chunk({"tool_calls": list(entries)}, finish, choice=choice, **more)


def call(index: int, name: str, args: Any = None, *, call_id: str = "", choice: int = 0) -> bytes:
    """Return a whole call: name first, then arguments in pieces of three characters."""
    spelled = json.dumps({} if args is None else args)
    return calls(
        entry(index, name=name, args="", call_id=call_id or f"call_{index}"), choice=choice
    ) + b"".join(
        calls(entry(index, args=spelled[at : at + 3]), choice=choice) for at in range(0, len(spelled), 3)
    )


def end(reason: Any = "tool_calls", *, choice: int = 0) -> bytes:
    """Return the last chunk of a choice."""
    return chunk({}, reason, choice=choice)


def refused(name: str, reason: str = "denied") -> str:
    """Return the text that stands where a refused call stood."""
    return f"[agentsh] Tool '{name}' blocked by policy: {reason}"


def completion(message: dict[str, Any], finish: Any = "tool_calls", **more: Any) -> bytes:
    """Return a whole answer."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "logprobs": None,
        "finish_reason": finish,
    }
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "gpt-test"}
    return json.dumps(whole | {"choices": [choice], "usage": {"total_tokens": 9}} | more, indent=1).encode()


@dataclass
class Knowing:
    """A judge under fail_closed: it refuses every name but these, and every flaw."""

    names: frozenset[str]

    def __call__(self, tool_call: ToolCall) -> Verdict:
        if tool_call.flaw:
            return Verdict(Action.BLOCK, tool_call.flaw, "protocol")
        known = tool_call.name in self.names
        return Verdict(Action.ALLOW, "allowed") if known else Verdict(Action.BLOCK, "denied", "fail_closed")


def knowing(*names: str) -> Knowing:
    """Return a judge that knows only these."""
    return Knowing(frozenset(names))


class Result(playing.Result):
    """What a stream came to."""

    @property
    def chunks(self) -> list[Any]:
        """Return the JSON of every event but `[DONE]`."""
        datas = [frame[6:] for frame in self.out.split(b"\n\n") if frame.startswith(b"data: ")]
        return [json.loads(data) for data in datas if data != b"[DONE]"]


run = runner(DIALECT, Result)
