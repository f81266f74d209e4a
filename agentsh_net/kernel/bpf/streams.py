"""What the probes know of connections to shared endpoints, in and out of the map `streams`: read, and taken over at a restart.

The verdicts are the probes' (bpf/stream.h), and what a policy makes of them is sweep.py's business.
"""

from __future__ import annotations

import os
import struct

from agentsh_net.core.abi import wire
from agentsh_net.kernel.bpf import syscall

_COOKIE = struct.Struct("=Q")
_MAP = "streams"


def read(map_fd: int) -> dict[int, wire.Stream]:
    """Return cookie -> stream. Raises OSError."""
    pairs = syscall.elements(map_fd, _COOKIE.size, wire.STREAM_SIZE)
    return {_COOKIE.unpack(key)[0]: wire.decode_stream(value) for key, value in pairs}


def inherit(program_id: int, into: int) -> None:
    """Copy the streams of a predecessor's program that `into` does not know yet. Raises OSError.

    One of another layout has none that could be understood: its connections are cut, and begin anew.
    """
    theirs = syscall.maps_of(program_id).get(_MAP)
    if theirs is None or theirs[1:] != (_COOKIE.size, wire.STREAM_SIZE):
        return
    source = syscall.map_fd(theirs[0])
    try:
        known = {key for key, _ in syscall.elements(into, _COOKIE.size, wire.STREAM_SIZE)}
        found = syscall.elements(source, _COOKIE.size, wire.STREAM_SIZE)
        fresh = {key: value for key, value in found if key not in known}
    finally:
        os.close(source)
    syscall.update_all(into, list(fresh), list(fresh.values()))
