"""Waits until nobody in the kernel judges by what was replaced: connects and packets are judged under RCU.

Between "what is new is there" and "what is old goes" lies this wait; without it a packet that is being judged could be
looked up for the new thing too early and for the old one too late.
"""

from __future__ import annotations

import ctypes
import platform
import time

_MEMBARRIER = {
    "x86_64": 324,
    "aarch64": 283,
    "riscv64": 283,
    "loongarch64": 283,
    "ppc64le": 365,
    "s390x": 356,
    "armv7l": 389,
}
_GLOBAL = 1  # MEMBARRIER_CMD_GLOBAL is synchronize_rcu() and nothing else
# Where the call cannot be had (CPUs without a tick): far longer than any packet or connect is judged.
_PATIENCE = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


def wait_for_readers() -> None:
    """Return when everything has ended that was being judged at the call: tens of milliseconds at most."""
    number = _MEMBARRIER.get(platform.machine())
    if (
        number is None
        or _libc.syscall(ctypes.c_long(number), ctypes.c_int(_GLOBAL), ctypes.c_uint(0), ctypes.c_int(0)) != 0
    ):
        time.sleep(_PATIENCE)
