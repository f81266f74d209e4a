"""Examples at the end of a command's help: lines that can be copied as they stand.

Not its business: what they mean (the commands'); a test parses each of them with the command line that it is an example of.
"""

from __future__ import annotations

from typing import Final

TITLE: Final = "Examples:"


def examples(*lines: str) -> str:
    """Return the end of a command's help: a title and a line each, which click leaves as they are."""
    return "\n".join(("\b", TITLE, *(f"  {line}" for line in lines)))
