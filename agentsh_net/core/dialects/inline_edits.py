"""Texts in which calls stand whole, after the verdicts: the same text edited, or one written anew where parsers read the old one differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.json_splice import splice
from agentsh_net.core.values.strict_json import Path, Reading, dump


def rewritten(
    data: bytes, reading: Reading, edits: Mapping[Path, Any], *, ambiguous: bool, hidden: bool
) -> bytes | None:
    """Return a text after its edits; None where it stays.

    `hidden`: what cannot be seen in it may not pass. `ambiguous`: it is written anew, so that there is one thing to read.
    """
    if not edits and not hidden:
        return None
    if ambiguous:
        data = dump(reading.value).encode()
    return splice(data, edits) if edits else data


def in_place(frame: Frame, data: bytes) -> bytes:
    """Return the bytes of a frame with other data; what stands before and behind it stays."""
    before, _, behind = frame.raw.partition(frame.data or b"")
    return before + data + behind
