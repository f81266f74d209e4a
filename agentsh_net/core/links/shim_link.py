"""What a shim and the daemon say to each other: a JSON header on a line, then as many bytes as its `size` says.

A shim asks (`ask`), the daemon answers each question in order (`do`). What is asked and decided is not its business.
Light on purpose, as the shim starts with every MCP server: no dataclasses, nothing beyond `json`.
"""

from __future__ import annotations

import json

# The name that type checkers know; importing it from `typing` costs the shim milliseconds.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final

# Questions: `open` begins; `client` and `server` carry a line of that side; `long` is about one past MAX_LINE.
# Two are none: `called` tells of calls that passed by a verdict that stands, a line each, before the server sees them, and
# `stopped` of a server that ran, was ended because policy denies it, and left so many `requests` unanswered.
OPEN: Final = "open"
CLIENT: Final = "client"
SERVER: Final = "server"
LONG: Final = "long"
CALLED: Final = "called"
STOPPED: Final = "stopped"

# Answers: forward the line as it is (`stands`: and so for every call of this tool, until `revoke`); do what the payload
# says instead; the answer to `open`. `wait` is none yet, and `revoke` none at all; neither is `noted`, which says how
# many calls that a shim told of are on record.
PASS: Final = "pass"  # noqa: S105 - no password
EDIT: Final = "edit"
OPENED: Final = "opened"
WAIT: Final = "wait"
REVOKE: Final = "revoke"
NOTED: Final = "noted"

# Bytes of one line that is read whole. Screenshots in base64 reach 10 MiB; discovery reads listings up to 16 MiB too.
MAX_LINE: Final = 16 << 20
# An edited line holds JSON in JSON: every quote may gain a backslash.
MAX_PAYLOAD: Final = 2 * MAX_LINE + (1 << 20)
MAX_HEADER: Final = 1 << 20  # a batch may answer a thousand requests, whose ids it lists

# Headers that are remembered as they were read: those of news and of what lets calls pass differ by their size alone.
MAX_KNOWN: Final = 256
MAX_KNOWN_SIZE: Final = 64  # bytes


def beside(control: str) -> str:
    """Return the path of the shims' socket: beside the control socket."""
    return control.removesuffix(".sock") + "-shim.sock"


class LinkError(Exception):
    """The other side does not speak this protocol."""


def frame(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """Return a question or an answer as bytes."""
    return json.dumps({**header, "size": len(payload)}, separators=(",", ":")).encode() + b"\n" + payload


def told(lines: bytes) -> bytes:
    """Return the frame that tells of calls that passed, as `frame` would write it: there is one with every call."""
    return b'{"ask":"called","size":%d}\n%b' % (len(lines), lines)


class Frames:
    """Cuts a stream of bytes into headers with their payloads, bounded."""

    __slots__ = ("_buffer", "_header", "_known", "_wanted")

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[dict[str, Any], int]] = {}  # headers that were read, and their sizes
        self._buffer = bytearray()
        self._header: dict[str, Any] | None = None
        self._wanted = 0

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield what is whole by now. Raises LinkError."""
        self._buffer += data
        while True:
            if self._header is None and not self._read_header():
                return
            if self._header is None or len(self._buffer) < self._wanted:
                return
            payload = bytes(self._buffer[: self._wanted])
            del self._buffer[: self._wanted]
            header, self._header = self._header, None
            yield header, payload

    def _read_header(self) -> bool:
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > MAX_HEADER:
                raise LinkError("a header without an end")
            return False
        text = bytes(self._buffer[:end])
        known = self._known.get(text)
        if known is None:
            known = _header(text)
            if end <= MAX_KNOWN_SIZE and len(self._known) < MAX_KNOWN:
                self._known[text] = known
        del self._buffer[: end + 1]
        self._header, self._wanted = known
        return True


def _header(text: bytes) -> tuple[dict[str, Any], int]:
    """Return a header and the size in it. Raises LinkError."""
    try:
        header = json.loads(text)
        size = header["size"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise LinkError(f"no header: {error}") from None
    if type(size) is not int or not 0 <= size <= MAX_PAYLOAD:
        raise LinkError("a header without a size, or with one out of bounds")
    return header, size
