"""Work that the others of a process must not wait for: it is done in a thread where it is much.

What it is is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

# Bytes of a message that are inspected at once; longer ones in a thread, as one may take a second.
INLINE: Final = 4096
# Likewise read, and what they list hashed: some ten milliseconds.
LONG: Final = 128 << 10


async def apart(size: int, work: Callable[[], T], most: int = INLINE) -> T:
    """Return what is worked out of a message of so many bytes."""
    return work() if size <= most else await asyncio.to_thread(work)
