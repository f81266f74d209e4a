"""What the supervisor keeps of root's capabilities (capabilities(7)), from its first moment on; what it starts keeps none.

CAP_SYS_ADMIN is among them: looking a program up by id and entering other network namespaces for the sweep both ask for it.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

WORKERS: Final = "agentsh-net"  # whom the proxy's workers run as, where the administrator made this user

KEPT: Final = {
    "CAP_CHOWN": 0,  # the socket and the store belong to the group agentsh-net
    "CAP_DAC_OVERRIDE": 1,  # the operator may keep the store where root is not the owner
    "CAP_DAC_READ_SEARCH": 2,  # client configs of the person behind sudo
    "CAP_KILL": 5,  # workers run as another user
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,  # a worker empties its bounding set
    "CAP_NET_BIND_SERVICE": 10,  # proxy.port below 1024
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,  # the packet socket that sees DNS answers
    "CAP_SYS_PTRACE": 19,  # the executable behind a pid
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_RESOURCE": 24,  # locked memory for maps on kernels before 5.11
    "CAP_LEASE": 28,  # whether somebody is still writing the policy file, be it another one's
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}

_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_V3 = 0x20080522
_CAPABILITIES = 64  # as many as the sets have bits; asked for one that the kernel has not, it says so


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def reduce() -> None:
    """Give up every capability that is not KEPT, for this thread and all that it starts. Raises OSError.

    To be called before there is a second thread: the sets belong to threads. What the process never had it does not get.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _bound(libc, set(KEPT.values()))
    mask = sum(1 << number for number in KEPT.values())
    _keep(libc, mask, mask, mask)


def renounce(*, change_user: bool) -> None:
    """Let whatever this thread starts from now on never have or gain a privilege. Raises OSError.

    Only this thread's sets change. With `change_user` it stays able to become another user, which ends what is left.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl")
    effective, _, _ = _held(libc)
    if effective >> KEPT["CAP_SETPCAP"] & 1:  # without it no_new_privs has to do: what is bounding is not had
        _bound(libc, set())
    mask = effective if change_user else 0
    _keep(libc, mask, mask, 0)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def _bound(libc: ctypes.CDLL, kept: set[int]) -> None:
    """Take what is not kept out of the bounding set."""
    for number in range(_CAPABILITIES):
        if number not in kept and libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1:
            _checked(libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0), "prctl")


def _held(libc: ctypes.CDLL) -> tuple[int, int, int]:
    """Return the effective, permitted and inheritable set of this thread."""
    header = _Header(_CAPABILITY_V3, 0)
    sets = (ctypes.c_uint32 * 6)()  # the three sets of capabilities 0-31, then of 32-63
    _checked(libc.capget(ctypes.byref(header), ctypes.byref(sets)), "capget")
    low, high = sets[:3], sets[3:]
    return low[0] | high[0] << 32, low[1] | high[1] << 32, low[2] | high[2] << 32


def _keep(libc: ctypes.CDLL, *masks: int) -> None:
    """Reduce the effective, permitted and inheritable set of this thread to what is in these masks."""
    found = [held & mask for held, mask in zip(_held(libc), masks, strict=True)]
    sets = (ctypes.c_uint32 * 6)(*(each & 0xFFFFFFFF for each in found), *(each >> 32 for each in found))
    header = _Header(_CAPABILITY_V3, 0)
    _checked(libc.capset(ctypes.byref(header), ctypes.byref(sets)), "capset")


def _checked(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
