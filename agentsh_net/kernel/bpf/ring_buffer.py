"""Reads a BPF ring buffer through its own mmap (kernel doc: bpf/ringbuf.rst), so that the daemon needs no libbpf and no BCC.

The kernel writes, one reader reads: `consumer` is ours alone. What the records mean is core.abi.wire's business.
"""

from __future__ import annotations

import ctypes
import mmap
import struct

_HEADER = struct.Struct("=II")
_POSITION = struct.Struct("@L")  # the kernel's unsigned long; positions only ever grow
_BUSY, _DISCARD = 1 << 31, 1 << 30


class RingBuffer:
    """The reader of one ring buffer map. `size` is the map's max_entries: a power of two, in bytes."""

    def __init__(self, map_fd: int, size: int) -> None:
        """Map the two position pages and the data, which the kernel maps twice in a row. Raises OSError."""
        page = mmap.PAGESIZE
        self._size = size
        self._consumer_page = mmap.mmap(
            map_fd, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0
        )
        self._producer_page = mmap.mmap(map_fd, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
        # One aligned store, so that the kernel never sees half a position.
        self._consumer = ctypes.c_ulong.from_buffer(self._consumer_page)

    def read(self, limit: int) -> list[bytes]:
        """Return up to `limit` records without waiting."""
        found: list[bytes] = []
        position, end = self._consumer.value, self._produced()
        while position < end and len(found) < limit:
            at = mmap.PAGESIZE + (position & (self._size - 1))
            length, _ = _HEADER.unpack_from(self._producer_page, at)
            if length & _BUSY:
                break  # reserved by a program that still writes it
            size = length & ~_DISCARD
            if not length & _DISCARD:
                found.append(self._producer_page[at + _HEADER.size : at + _HEADER.size + size])
            position += (size + _HEADER.size + 7) & ~7
            self._consumer.value = position
        return found

    def close(self) -> None:
        """Unmap; the buffer itself lives as long as a program uses it."""
        del self._consumer
        self._consumer_page.close()
        self._producer_page.close()

    def _produced(self) -> int:
        return int(_POSITION.unpack_from(self._producer_page)[0])
