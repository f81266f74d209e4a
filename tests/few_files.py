"""A process that can open nothing more, as where a limit is too low or something leaks, and whether something does."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_left(but: int = 0) -> Iterator[None]:
    """Lower this process's limit to what it has open, and so many more, until the block ends: every descriptor below is taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    highest = max(map(int, os.listdir("/proc/self/fd")))
    while taken[-1] < highest:
        taken.append(os.dup(taken[0]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + but, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Fail where a block leaves a descriptor open that it opened."""
    before = os.listdir("/proc/self/fd")
    try:
        yield
    finally:
        assert os.listdir("/proc/self/fd") == before
