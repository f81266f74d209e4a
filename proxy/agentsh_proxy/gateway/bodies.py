"""What the gateway writes in place of events and bodies that it had to change: the rest of them stays as it came.

What is changed is the review's business, and sending is `forward`'s.
"""

from __future__ import annotations

from collections.abc import Collection

from agentsh_net.core.framing import sse


def flattened(data: bytes) -> bytes:
    """Return JSON without line breaks: outside of strings they mean nothing, and inside of them they are not allowed."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in data or b"\r" in data else data


def as_body(messages: Collection[bytes]) -> bytes | None:
    """Return messages as one body: alone, or as a batch; None for none."""
    if not messages:
        return None
    return next(iter(messages)) if len(messages) == 1 else b"[" + b",".join(messages) + b"]"


def event_of(message: bytes) -> bytes:
    """Return a message as an event."""
    return b"event: message\ndata: " + message + b"\n\n"


def rewritten(frame: sse.Frame, data: bytes | None) -> bytes:
    """Return an event with other data; without any, what is left of it is its id, which streams are resumed by."""
    kept = [
        line
        for line in frame.raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if line.startswith((b"id:", b"retry:", b"event:")) and (data is not None or line.startswith(b"id:"))
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
