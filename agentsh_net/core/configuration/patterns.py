"""The leaves of the configuration that select things: globs, regular expressions, hashes, an agent's own tools.

Whether a pattern can be one is decided here; what it matches is the policy's business.
"""

from __future__ import annotations

import re
from typing import Any

from agentsh_net.core.configuration.scalars import text, word
from agentsh_net.core.configuration.schema import At, quoted
from agentsh_net.core.naming import globs, native_tools
from agentsh_net.core.naming.folding import visible

MAX_REGEX = 512  # characters; a longer one is a list that should be several patterns
CONTENT_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


def glob(at: At, value: Any) -> str:
    """Read a pattern over names. What cannot be a pattern is a problem, never a literal."""
    fault = globs.check(word(at, value))
    if fault or not value.isprintable():
        at.reject(f"{quoted(value)} ({fault or 'characters that are not printable'})", globs.EXPECTED)
    return str(value)


def regex(at: At, value: Any) -> str:
    """Read a regular expression that compiles."""
    if len(word(at, value)) > MAX_REGEX:
        at.refuse(value, f"a regular expression of at most {MAX_REGEX} characters")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        at.reject(
            f"{quoted(value)} ({visible(str(error))})", "a regular expression (Python's re) that compiles"
        )
    return str(value)


def content_hash(at: At, value: Any) -> str:
    """Read the hash of a tool's definition as pins print it; returns `sha256:` and 64 lower-case hex digits."""
    match = CONTENT_HASH.fullmatch(text(at, value))
    if not match:
        at.refuse(
            value,
            "the hash of a tool definition as `agentsh-net mcp pins` prints it: sha256: and 64 hex digits",
        )
    return "sha256:" + match[1].lower()


def native_tool(at: At, value: Any) -> str:
    """Read a pattern over the agent's own tools, or `preset:<agent>` of a known agent."""
    fault = native_tools.check(word(at, value))
    if fault or not value.isprintable():
        found = f"{quoted(value)} ({fault or 'characters that are not printable'})"
        at.reject(found, f"{globs.EXPECTED}, or `{native_tools.PRESET}<agent>`")
    return str(value)
