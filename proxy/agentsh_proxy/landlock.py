"""Landlock (Linux 5.13 and later): which files this process can still reach, whatever takes it over.

Only the three system calls and the rule set; which folders are named is the caller's business.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

# include/uapi/linux/landlock.h; the numbers are the same on every architecture since 5.13.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_QUERY = 1
_RULE_PATH_BENEATH = 1
_READ_FILE, _READ_DIR, _EXECUTE = 1 << 2, 1 << 3, 1 << 0
# File rights by the ABI that brought them: 13 at first, REFER in 2, TRUNCATE in 3, IOCTL_DEV in 5.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_BIND_TCP = 1 << 0  # ABI 4
_SCOPE_ABSTRACT_UNIX_AND_SIGNALS = 0b11  # ABI 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def abi() -> int:
    """Return the kernel's Landlock ABI, 0 where it has none or it is switched off."""
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_QUERY)))


@contextmanager
def opened(folders: Iterable[str]) -> Iterator[list[int]]:
    """Open what may be read later, as long as the process can still reach all of it; what is not there is left out."""
    with ExitStack() as stack:
        handles = []
        for folder in folders if abi() else ():
            with suppress(FileNotFoundError):
                handles.append(os.open(folder, os.O_PATH | os.O_CLOEXEC))
                stack.callback(os.close, handles[-1])
        yield handles


def restrict_to_reading(opened: Iterable[int]) -> int:
    """Allow reading beneath what was `opened` and nothing else of the file system, no new listening port, no signal to others.

    Needs no_new_privs. Returns the ABI used, 0 where the kernel has none. Raises OSError where the kernel refuses.
    """
    version = abi()
    if not version:
        return 0
    rights = _FILE_RIGHTS[min(version, 5)]
    ruleset = _Ruleset(
        rights, _BIND_TCP if version >= 4 else 0, _SCOPE_ABSTRACT_UNIX_AND_SIGNALS if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    handle = _checked(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for fd in opened:
            _allow_reading(handle, fd)
        _checked(_RESTRICT_SELF, ctypes.c_int(handle), ctypes.c_uint32(0))
    finally:
        os.close(handle)
    return version


def _allow_reading(handle: int, fd: int) -> None:
    rights = _READ_FILE | _EXECUTE | (_READ_DIR if stat.S_ISDIR(os.fstat(fd).st_mode) else 0)
    rule = _PathBeneath(rights, fd)
    _checked(
        _ADD_RULE,
        ctypes.c_int(handle),
        ctypes.c_int(_RULE_PATH_BENEATH),
        ctypes.byref(rule),
        ctypes.c_uint32(0),
    )


def _checked(number: int, *arguments: object) -> int:
    result = _syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"landlock: {os.strerror(error)}")
    return result


def _syscall(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return int(libc.syscall(ctypes.c_long(number), *arguments))
