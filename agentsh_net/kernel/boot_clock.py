"""The clock that nobody sets: time since boot, suspend included (CLOCK_BOOTTIME), as names age by it and programs stamp records.

Not its business: what people read (`agentsh_net.clock`).
"""

from __future__ import annotations

import time
from pathlib import Path

_OFFSETS = Path("/proc/self/timens_offsets")


def seconds() -> float:
    """Return the time since boot. CLOCK_MONOTONIC would stand still while the machine sleeps, and names do not stop ageing."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def nanoseconds() -> int:
    """Return the time since boot in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def namespace_offset(offsets: Path = _OFFSETS) -> int:
    """Return by how many nanoseconds this process' clock is ahead of the kernel's own (time_namespaces(7)); it never changes."""
    try:
        lines = offsets.read_text(encoding="ascii").splitlines()
    except OSError:  # a kernel without time namespaces
        return 0
    for name, *numbers in map(str.split, lines):
        if name == "boottime" and len(numbers) == 2:
            return int(numbers[0]) * 1_000_000_000 + int(numbers[1])
    return 0
