"""How much a worker holds of bodies whose ends have not come: one client's bound times its connections is more than there is.

Who is refused for it, and how, is the readers' business.
"""

from __future__ import annotations

from typing import Final

# Bytes of all bodies together: a dozen of the largest, some thousand of an agent's.
MAX_LOAD: Final = 1 << 30


class Load:
    """What is held now."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    @property
    def too_much(self) -> bool:
        """Say whether it is more than a worker holds."""
        return self.size > MAX_LOAD
