"""Netlink sockets in other network namespaces of this host, so that what runs in containers can be looked at too.

Enters a namespace in a thread of its own, which ends: the caller's namespace never changes.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from agentsh_net.core.errors import KernelError

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
# Namespaces looked into per sweep; a host with more is swept in part, and the count tells.
MAX_NAMESPACES = 1024

_libc = ctypes.CDLL(None, use_errno=True)


def others(proc: Path = Path("/proc")) -> Iterator[Path]:
    """Yield one path for every network namespace that some process lives in, but our own."""
    seen = {_identity(proc / "self/ns/net")}
    for entry in proc.iterdir():
        path = entry / "ns/net"
        if entry.name.isdigit() and (identity := _identity(path)) and identity not in seen:
            seen.add(identity)
            yield path
            if len(seen) > MAX_NAMESPACES:
                return


def of(*numbers: int, proc: Path = Path("/proc")) -> Path | None:
    """Return a path for the network namespace of the first of these tasks that lives; None where that is our own, or none does."""
    paths = (proc / str(number) / "ns/net" for number in numbers if number)
    found = next(((path, identity) for path in paths if (identity := _identity(path))), None)
    return found[0] if found and found[1] != _identity(proc / "self/ns/net") else None


def within(path: Path, function: Callable[[], T]) -> T:
    """Run `function` in the network namespace at `path`. Raises OSError where it may not be entered."""

    def inside() -> T:
        _enter(path)
        return function()

    return _apart(inside)


def in_each(paths: Iterable[Path], function: Callable[[], list[T]]) -> list[T]:
    """Run `function` in each of these namespaces that may be entered, and return all that it found."""

    def inside() -> list[T]:
        found: list[T] = []
        for path in paths:
            try:
                _enter(path)
            except OSError:
                continue  # gone meanwhile, or CAP_SYS_ADMIN was dropped
            found += function()
        return found

    return _apart(inside)


def _apart(function: Callable[[], T]) -> T:
    """Run `function` in a thread of its own. Raises KernelError where the host has none left."""
    results: list[T] = []
    failures: list[Exception] = []

    def inside() -> None:
        try:
            results.append(function())
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=inside, name="netns")
    try:
        thread.start()
    except RuntimeError as error:
        raise KernelError(f"{error}", remedy="raise the limit of processes (TasksMax=, pids.max)") from error
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _enter(path: Path) -> None:
    with path.open("rb") as namespace:
        if _libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")


def _identity(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
