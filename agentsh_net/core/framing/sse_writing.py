"""Server-sent events as they are written: whole frames, each with its own `event:` line, which every client reads alike.

How frames are read is `sse`'s business, what stands in them the dialects'.
"""

from __future__ import annotations

from agentsh_net.core.framing.sse import Frame


def make_frame(event: str, data: bytes) -> bytes:
    """Return a frame of one `event:` and one `data:` line."""
    # Line endings in JSON text are only ever space between its tokens.
    line = data.replace(b"\r", b" ").replace(b"\n", b" ")
    name = event.replace("\n", "").replace("\r", "").encode()
    return (b"event: " + name + b"\n" if name else b"") + b"data: " + line + b"\n\n"


def with_data(frame: Frame, data: bytes) -> bytes:
    """Return the bytes of a frame with other data; what else is in it stays where the old data is one piece."""
    old = frame.data or b""
    if b"\n" not in old and frame.raw.count(old) == 1:
        return frame.raw.replace(old, data)
    return make_frame(frame.event, data)
