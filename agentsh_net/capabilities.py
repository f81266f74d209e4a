"""The capability sets of this thread, and what it can never gain again (capabilities(7), prctl(2)). Raises OSError.

What is to be kept, and of whom, is the callers' business.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection
from typing import Final

NUMBERS: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_RESOURCE": 24,
    "CAP_LEASE": 28,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}
_COUNT: Final = 64  # as many as the sets have bits; asked for one that the kernel has not, it says so
_VERSION_3: Final = 0x20080522
_CAPBSET_READ, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 23, 24, 38
_AMBIENT, _AMBIENT_CLEAR_ALL = 47, 4
_libc = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def mask(names: Collection[str]) -> int:
    """Return a set of these capabilities, as its bits."""
    return sum(1 << NUMBERS[name] for name in names)


def has(held: int, name: str) -> bool:
    """Say whether a set has a capability."""
    return bool(held >> NUMBERS[name] & 1)


def effective() -> int:
    """Return the effective set."""
    return _sets()[0]


def keep(effective: int, permitted: int, inheritable: int) -> None:
    """Reduce the three sets to what is in these, and the ambient one with them."""
    found = [held & mask for held, mask in zip(_sets(), (effective, permitted, inheritable), strict=True)]
    sets = (ctypes.c_uint32 * 6)(*(each & 0xFFFFFFFF for each in found), *(each >> 32 for each in found))
    header = _Header(_VERSION_3, 0)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(sets)), "capset")


def bound(kept: int = 0) -> None:
    """Take all but these out of the bounding set (needs CAP_SETPCAP)."""
    for number in range(_COUNT):
        if not kept >> number & 1 and _libc.prctl(_CAPBSET_READ, number, 0, 0, 0) == 1:
            prctl(_CAPBSET_DROP, number)


def clear_ambient() -> None:
    """Empty the ambient set."""
    prctl(_AMBIENT, _AMBIENT_CLEAR_ALL)


def gain_nothing() -> None:
    """Let no program that is run have what the thread has not, be it root's or set-user-id (no_new_privs)."""
    prctl(_SET_NO_NEW_PRIVS, 1)


def prctl(option: int, argument: int) -> None:
    """Change an attribute of this process or thread (prctl(2))."""
    zero = ctypes.c_ulong(0)
    _checked(
        _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), zero, zero, zero), f"prctl({option})"
    )


def _sets() -> tuple[int, int, int]:
    """Return the effective, permitted and inheritable set."""
    header = _Header(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # the three sets of capabilities 0-31, then of 32-63
    _checked(_libc.capget(ctypes.byref(header), ctypes.byref(sets)), "capget")
    low, high = sets[:3], sets[3:]
    return low[0] | high[0] << 32, low[1] | high[1] << 32, low[2] | high[2] << 32


def _checked(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
