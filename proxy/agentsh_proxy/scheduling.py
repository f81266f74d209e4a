"""Asks the scheduler for short time slices: a worker that wakes for a request then runs soon, also where others want every CPU.

Takes nothing from anybody's share and needs no privilege (sched_setattr(2)); before Linux 6.12 it changes nothing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

SLICE_NS = 100_000  # the shortest that the kernel grants; most exchanges need less on the CPU
_SCHED_SETATTR = {
    "x86_64": 314,
    "aarch64": 274,
    "riscv64": 274,
    "loongarch64": 274,
    "ppc64le": 355,
    "s390x": 345,
    "armv7l": 380,
}
# struct sched_attr, its first version: size, policy, flags, nice, priority, runtime, deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def ask_for_short_slices() -> bool:
    """Ask for this thread and those it starts; say whether the kernel agreed. Who runs by another policy stays as it is."""
    number = _SCHED_SETATTR.get(platform.machine())
    policy = os.sched_getscheduler(0)
    if number is None or policy != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, 0, nice, 0, SLICE_NS, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(ctypes.c_long(number), ctypes.c_int(0), wanted, ctypes.c_uint(0))) == 0
