"""Arguments of a call that come as text: what they say, where every parser reads the same in them.

Where they stand, and what else may be wrong with them, is the dialects' business.
"""

from __future__ import annotations

from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json

# Why nobody can tell what such arguments are.
KEY_TWICE: Final = "a key stands twice in them"


def parsed(text: str) -> tuple[Any, bool]:
    """Return the value that a text spells, and whether a key stands in it twice; the text itself where that leaves it open, or it is no JSON."""
    try:
        reading = strict_json.read(text.encode("utf-8", "surrogatepass"))
    except ProtocolError:
        return text, False
    return (text, True) if reading.duplicates else (reading.value, False)
