"""Python's collector of reference cycles, told to wait while much is made and nothing is garbage yet.

When that is the case is its callers' business.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting() -> Iterator[None]:
    """Collect no cycles meanwhile: a policy of 10,000 servers is half a million objects, which it would walk through many times.

    Memory is given back all the same, but for cycles. Who is nested in another changes nothing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
