"""A flag that the supervisor sets and every worker sees at once, without asking: a byte of shared memory, which only we can write."""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import BinaryIO, Final

# <linux/fcntl.h>; fcntl has no name for it.
_F_SEAL_FUTURE_WRITE: Final = 0x0010


class SharedFlag:
    """Not set at first, and never cleared."""

    def __init__(self, name: str) -> None:
        self._fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._fd, 1)
        self._memory = mmap.mmap(self._fd, 1)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, seals)

    def set(self) -> None:
        """Set it."""
        self._memory[0] = 1

    def shown(self) -> BinaryIO:
        """Return a file with the byte in it, for a worker to map."""
        return os.fdopen(os.dup(self._fd), "rb", buffering=0)

    def close(self) -> None:
        """Let go of it; who has it mapped keeps it."""
        self._memory.close()
        os.close(self._fd)
