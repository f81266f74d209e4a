"""What one user may ask for at the shims' socket. Who counts it is `shim_connection`'s business."""

from __future__ import annotations

from typing import Final

# Questions of one user: what a busy agent asks in a day at once, then a thousand times its pace. Slower, not refused:
# nothing goes unjudged, and the audit trail cannot be flushed by a loop.
BURST: Final = 100_000
PER_SECOND: Final = 2_000


class Allowance:
    """What one user may still ask for: a token bucket, and the bytes and connections in use."""

    __slots__ = ("at", "connections", "held", "tokens")

    def __init__(self, now: float) -> None:
        self.connections = 0
        self.held = 0
        self.tokens: float = BURST
        self.at = now

    def delay(self, now: float, count: int = 1) -> float:
        """Take tokens where there is one, for the rest on credit; return 0, or the seconds until there is one."""
        self.tokens = min(BURST, self.tokens + (now - self.at) * PER_SECOND)
        self.at = now
        if self.tokens < 1:
            return (1 - self.tokens) / PER_SECOND
        self.tokens -= count
        return 0.0
