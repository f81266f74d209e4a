"""The places in an MCP client's file that the client puts values for, and what is known of a URL that has some.

They are never filled in here: the words are the user's, and the environment may be root's.
"""

from __future__ import annotations

import re

# ${VAR}, ${env:VAR}, ${input:x}, $VAR (Gemini), {env:VAR}, {file:x} (OpenCode)
PLACEHOLDER = re.compile(r"\$\{|\$[A-Za-z_]|\{(?:env|file|input):")

# Claude Code's ${VAR:-default}: what stands there where nobody says otherwise.
_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def known_url(url: str) -> str:
    """Return what the file alone tells of a URL, up to the first value that only the client has; empty if the host is one."""
    with_defaults = _DEFAULT.sub(r"\1", url)
    place = PLACEHOLDER.search(with_defaults)
    if place is None:
        return with_defaults
    known = with_defaults[: place.start()]
    if not re.match("[^:]*://[^/?]+[/?]", known):
        return ""
    return known.partition("?")[0] if "?" in known else known[: known.rindex("/") + 1]
