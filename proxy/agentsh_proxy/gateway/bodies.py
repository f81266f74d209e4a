"""What the gateway writes in place of events and bodies that it had to change: the rest of them stays as it came.

What is changed is the review's business, and sending is `forward`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agentsh_net.core.framing import line_ends, sse
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.jsonrpc import Id

_FIELDS = (b"data:", b"event:", b"id:", b"retry:")  # of an event (HTML standard, 9.2.6)


def flattened(data: bytes) -> bytes:
    """Return JSON without line breaks: outside of strings they mean nothing, and inside of them they are not allowed."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in data or b"\r" in data else data


def as_body(messages: Collection[bytes]) -> bytes | None:
    """Return messages as one body: alone, or as a batch; None for none."""
    if not messages:
        return None
    return next(iter(messages)) if len(messages) == 1 else b"[" + b",".join(messages) + b"]"


def errors(ids: Iterable[Id], why: str) -> list[bytes]:
    """Return an error for each request that has no answer."""
    return [jsonrpc.error(id_, jsonrpc.INTERNAL_ERROR, f"[agentsh] {why}") for id_ in ids]


def failure(ids: Iterable[Id], why: str) -> bytes:
    """Return those errors as a body; where there is no request, one that answers none."""
    return as_body(errors(ids, why)) or jsonrpc.error(None, jsonrpc.INTERNAL_ERROR, f"[agentsh] {why}")


def event_of(message: bytes) -> bytes:
    """Return a message as an event."""
    return b"event: message\ndata: " + message + b"\n\n"


def is_plain(raw: bytes) -> bool:
    """Say whether every reader finds the same in an event: one line of data at most, and no line that is no field but ASCII comments.

    Some trim a field's name, skip a byte order mark in any of its spellings, end lines elsewhere or take each line of data for itself.
    """
    # Of the last CRLF the LF may not be here yet.
    unix = raw.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in raw else raw
    if b"\r" in unix or line_ends.has_others(unix):
        return False
    lines = unix.split(b"\n")
    known = all(
        not line or line.startswith(_FIELDS) or (line[:1] == b":" and line.isascii()) for line in lines
    )
    return known and sum(line.startswith(b"data:") for line in lines) <= 1


def on_one_line(data: bytes) -> bytes:
    """Return JSON as every reader of lines finds it on one."""
    return line_ends.escaped(flattened(data))


def rewritten(frame: sse.Frame, data: bytes | None) -> bytes:
    """Return an event with other data; without any, what is left of it is its id, which streams are resumed by."""
    kept = [
        line
        for line in frame.raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if line.startswith((b"id:", b"retry:", b"event:") if data is not None else b"id:")
        and not line_ends.has_others(line)
    ]
    if data is not None:
        kept.append(b"data: " + data)
    return b"\n".join(kept) + b"\n\n" if kept else b""


def joined(body: bytes | None, extra: Collection[bytes]) -> bytes | None:
    """Return the answer to a batch with the errors of those calls in it that did not go on."""
    text = (body or b"").strip()
    if not text and len(extra) < 2:
        return as_body(extra)
    parts = [text, *extra] if text else extra
    return b"[" + b",".join(filter(None, map(_members, parts))) + b"]"


def _members(text: bytes) -> bytes:
    """Return the messages of a body, without the brackets of a batch."""
    return text[1:-1].strip() if text.startswith(b"[") else text
