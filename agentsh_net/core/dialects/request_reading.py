"""What cannot be read of a request, and whether it may hide an MCP server that the provider is to call.

What hides one must not pass while verdicts are enforced: policy would have judged it. Which keys name servers is the dialects' business.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentsh_net.core.dialects.base import Fault
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import DivergentError, Reading

# Every way to name a server has one of these in its keys or types; UTF-16 (NUL) can hide them, and what is `disguised`.
_SIGNS: Final = (b"mcp", b"connector_id", b"tunnel_id", b"server_url", b"\0")

_LONG_S: Final = "\u017f".encode()
_ESCAPED: Final = re.compile(rb"\\u0(?:0[0-7]|17f)")  # ASCII, or the long s

# What these say is found out from the answer, whatever the request said.
_HARMLESS: Final = frozenset({"stream"})


def disguised(lowered: bytes) -> bool:
    """Say whether a letter of a key may be written otherwise: as an escape, or as the long s, which Go's clients read as an `s`."""
    if lowered.find(_LONG_S) >= 0:
        return True
    # Found at a tenth of the search's cost.
    return lowered.find(b"\\u0") >= 0 and _ESCAPED.search(lowered) is not None


def may_name_server(body: bytes) -> bool:
    """Say whether a request could ask the provider to call an MCP server."""
    lowered = body.lower()
    return any(lowered.find(sign) >= 0 for sign in _SIGNS) or disguised(lowered)


def read_object(body: bytes) -> Reading | Fault:
    """Return what a body says, or the fault of one that is no JSON object for us."""
    try:
        reading = strict_json.read(body)
    except ProtocolError as error:
        return unreadable(body, error)
    if not isinstance(reading.value, dict):
        return Fault("malformed_json", "the request is no JSON object", cut=False)
    return reading


def truth(value: Any) -> bool:
    """Return what lenient servers make of a flag."""
    return value.strip().casefold() in {"true", "1", "yes", "on"} if isinstance(value, str) else bool(value)


def too_many(connectors: int, most: int) -> Fault | None:
    """Return the fault of a body that names more MCP servers than a request can."""
    if connectors <= most:
        return None
    return Fault("too_many_connectors", f"more than {most} MCP servers", cut=True)


def unreadable(body: bytes, error: ProtocolError) -> Fault:
    """Return the fault of a body that is no JSON for us."""
    if isinstance(error, DivergentError):
        return Fault("unreadable_json", str(error), cut=may_name_server(body))
    return Fault("malformed_json", str(error), cut=False)


def ambiguous(body: bytes, keys: frozenset[str] | set[str]) -> Fault | None:
    """Return the fault of a body in which these keys stand twice; None where there are none."""
    if not keys:
        return None
    detail = f"{min(keys)!r} stands twice in the request"
    return Fault("duplicate_keys", detail, cut=not keys <= _HARMLESS and may_name_server(body))
