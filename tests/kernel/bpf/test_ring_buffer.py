"""The ring is read whole and in order, in batches, over its end, and stops at what is still being written."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

import pytest

from agentsh_net.kernel.bpf.ring_buffer import RingBuffer

PAGE = mmap.PAGESIZE
SIZE = PAGE


class Writer:
    """A file laid out as the kernel lays out a ring buffer, but with its data mapped once: no record may cross the end."""

    def __init__(self, position: int = 0) -> None:
        self.fd = os.memfd_create("ring")
        os.ftruncate(self.fd, PAGE + PAGE + 2 * SIZE)
        self.position = position
        os.pwrite(self.fd, struct.pack("@L", position), 0)

    def write(self, payload: bytes, flags: int = 0) -> None:
        at = 2 * PAGE + self.position % SIZE
        os.pwrite(self.fd, struct.pack("=II", len(payload) | flags, 0) + payload, at)
        self.position += (8 + len(payload) + 7) & ~7
        os.pwrite(self.fd, struct.pack("@L", self.position), PAGE)

    def consumed(self) -> int:
        return struct.unpack("@L", os.pread(self.fd, 8, 0))[0]


@pytest.fixture
def writer() -> Iterator[Writer]:
    made = Writer()
    yield made
    os.close(made.fd)


def test_records_come_in_order_and_once(writer: Writer) -> None:
    ring = RingBuffer(writer.fd, SIZE)
    writer.write(b"one")
    writer.write(b"twotwotwo")
    assert ring.read(10) == [b"one", b"twotwotwo"]
    assert ring.read(10) == []
    assert writer.consumed() == writer.position
    ring.close()


def test_a_batch_leaves_the_rest_for_the_next(writer: Writer) -> None:
    ring = RingBuffer(writer.fd, SIZE)
    for n in range(5):
        writer.write(bytes([n]))
    assert [ring.read(2), ring.read(2), ring.read(2)] == [[b"\0", b"\1"], [b"\2", b"\3"], [b"\4"]]


def test_reading_goes_on_over_the_end_of_the_ring(writer: Writer) -> None:
    ring = RingBuffer(writer.fd, SIZE)
    for n in range(1000):
        writer.write(struct.pack("=Q", n))
        assert ring.read(10) == [struct.pack("=Q", n)]
    assert writer.position > 2 * SIZE


def test_a_discarded_record_is_stepped_over(writer: Writer) -> None:
    ring = RingBuffer(writer.fd, SIZE)
    writer.write(b"dropped", 1 << 30)
    writer.write(b"kept")
    assert ring.read(10) == [b"kept"]


def test_a_record_that_is_still_written_waits_and_holds_what_follows(writer: Writer) -> None:
    ring = RingBuffer(writer.fd, SIZE)
    writer.write(b"busy", 1 << 31)
    writer.write(b"next")
    assert ring.read(10) == []
    os.pwrite(writer.fd, struct.pack("=I", 4), 2 * PAGE)
    assert ring.read(10) == [b"busy", b"next"]


def test_positions_beyond_32_bits_are_positions() -> None:
    writer = Writer((1 << 32) - 16)
    ring = RingBuffer(writer.fd, SIZE)
    for n in range(4):
        writer.write(bytes([n]))
    assert ring.read(10) == [b"\0", b"\1", b"\2", b"\3"]
    assert writer.consumed() == writer.position > 1 << 32
