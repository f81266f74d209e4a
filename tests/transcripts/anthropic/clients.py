"""Clients as they are found: what each would execute of a stream. The official SDK first, then models of other families.

The models err on the harsh side: they skip what they cannot read, and execute whatever they have when the stream ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transcripts.key_readings import any_case, first_wins, last_wins

import anthropic
from agentsh_net.core.framing import sse
from anthropic import _base_client

# The HTTP library that the installed SDK is built on (httpx, or httpx2 in its newer versions).
httpx: Any = importlib.import_module("httpx2" if hasattr(_base_client, "httpx2") else "httpx")

Executed = list[tuple[str, Any]]
Hook = Callable[[list[tuple[str, Any]]], Any]


class _Chunks(httpx.SyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks


def sdk(
    chunks: Sequence[bytes], content_type: str = "text/event-stream", status: int = 200
) -> anthropic.Anthropic:
    """Return the official client, its next answer at hand; no socket is opened."""

    def answer(_: Any) -> Any:
        return httpx.Response(status, headers={"content-type": content_type}, stream=_Chunks(chunks))

    transport = httpx.Client(transport=httpx.MockTransport(answer))
    return anthropic.Anthropic(
        api_key="key", base_url="http://llm.invalid", max_retries=0, http_client=transport
    )


ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}


def _calls(content: Any) -> Executed:
    return [
        (block.name, block.input)
        for block in content or ()
        if getattr(block, "type", None) in ("tool_use", "mcp_tool_use")
    ]


def by_sdk(chunks: Sequence[bytes], *, beta: bool = False) -> Executed:
    """Execute every block that the SDK says has stopped (as eager runners do), and all that it has at the end."""
    client = sdk(chunks)
    executed: Executed = []
    messages: Any = client.beta.messages if beta else client.messages
    with messages.stream(**ASK) as stream:
        try:
            for event in stream:
                if event.type == "content_block_stop":
                    executed += _calls([event.content_block])
        except Exception:  # what a hostile stream makes the SDK raise is no matter: what it had by then is
            pass
        with contextlib.suppress(AssertionError):  # no message at all
            executed += _calls(stream.current_message_snapshot.content)
    return executed


def by_beta_sdk(chunks: Sequence[bytes]) -> Executed:
    """Execute what the SDK's beta namespace hands out (it knows mcp_tool_use)."""
    return by_sdk(chunks, beta=True)


def _events(data: bytes, hook: Hook, *, named: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    decoder = sse.Decoder(1 << 24)
    frames = decoder.feed(data)
    if rest := decoder.finish():
        frames.append(rest)
    for frame in frames:
        try:
            value = json.loads((frame.data or b"").decode("utf-8", "replace"), object_pairs_hook=hook)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield (frame.event if named else str(value.get("type"))), value


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and str(block.get("type")) in {"tool_use", "mcp_tool_use", "['tool_use']"}


def _input(block: dict[str, Any], text: str) -> Any:
    if not text:
        return block.get("input")
    try:
        return json.loads(text)
    except ValueError:
        return text


def by_index(data: bytes, hook: Hook, *, named: bool) -> Executed:
    """Execute a block at its stop, blocks kept in a map (as Claude Code does); repeated stops execute again."""
    blocks: dict[str, Any] = {}
    texts: dict[str, str] = {}
    executed: Executed = []
    for kind, event in _events(data, hook, named=named):
        key = str(event.get("index"))
        if kind == "message_start":
            content = (event.get("message") or {}).get("content")
            executed += [(str(b.get("name")), b.get("input")) for b in content or () if _is_call(b)]
        elif kind == "content_block_start":
            blocks[key], texts[key] = event.get("content_block"), ""
        elif kind == "content_block_delta":
            texts[key] = texts.get(key, "") + str((event.get("delta") or {}).get("partial_json", ""))
        elif kind == "content_block_stop" and _is_call(blocks.get(key)):
            executed.append((str(blocks[key].get("name")), _input(blocks[key], texts[key])))
    return executed


def by_position(data: bytes, hook: Hook, *, named: bool) -> Executed:
    """Execute at the end, blocks kept in a list that deltas index as JavaScript's `Array.at` does."""
    blocks: list[Any] = []
    texts: dict[int, str] = {}
    begun = False
    for kind, event in _events(data, hook, named=named):
        if kind == "message_start" and not begun:
            begun = True
            blocks = list((event.get("message") or {}).get("content") or ())
        elif kind == "content_block_start":
            blocks.append(event.get("content_block"))
        elif kind == "content_block_delta":
            try:
                at = int(float(event.get("index") or 0))
            except (TypeError, ValueError):
                at = 0
            at = at + len(blocks) if at < 0 else at
            if 0 <= at < len(blocks) and _is_call(blocks[at]):
                texts[at] = texts.get(at, "") + str((event.get("delta") or {}).get("partial_json", ""))
    return [(str(b.get("name")), _input(b, texts.get(at, ""))) for at, b in enumerate(blocks) if _is_call(b)]


def by_merging(data: bytes, hook: Hook, *, named: bool) -> Executed:
    """Execute at the end, pieces merged by index whatever came first (as LangChain does)."""
    names: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for kind, event in _events(data, hook, named=named):
        key = str(event.get("index"))
        block = event.get("content_block")
        if kind == "content_block_start" and _is_call(block):
            names.setdefault(key, block)
        elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            texts[key] = texts.get(key, "") + str(event["delta"].get("partial_json", ""))
    return [(str(block.get("name")), _input(block, texts.get(key, ""))) for key, block in names.items()]


def everyone(chunks: Sequence[bytes]) -> dict[str, Executed]:
    """Return what each client would execute."""
    data = b"".join(chunks)
    executed = {"the SDK": by_sdk(chunks), "the SDK's beta": by_beta_sdk(chunks)}
    return executed | models(data)


def models(data: bytes) -> dict[str, Executed]:
    """Return what each model of a client would execute."""
    return {
        f"{client.__name__}, {hook.__name__}, by {'name' if named else 'type'}": client(
            data, hook, named=named
        )
        for client in (by_index, by_position, by_merging)
        for hook in (last_wins, first_wins, any_case)
        for named in (False, True)
    }
