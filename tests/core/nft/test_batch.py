"""A batch says what the kernel takes for one transaction, and what it answered is read: the first error, or that there was none."""

from __future__ import annotations

import errno
import struct

import pytest

from agentsh_net.core.abi import netlink
from agentsh_net.core.nft import batch as nft_batch
from agentsh_net.core.nft import dump as nft_dump

HEADER = struct.Struct("=IHHII")


def parts(batch: bytes) -> list[tuple[int, int, int, bytes]]:
    """Return (type, flags, sequence, body) of every message."""
    found, offset = [], 0
    while offset < len(batch):
        length, kind, flags, sequence, _ = HEADER.unpack_from(batch, offset)
        found.append((kind, flags, sequence, batch[offset + HEADER.size : offset + length]))
        offset += (length + 3) & ~3
    return found


def test_a_table_is_deleted_and_made_in_one_transaction_and_each_is_acknowledged() -> None:
    begin, gone, made, end = parts(nft_batch.anew(1, "mine", flags=nft_batch.OWNED, replaces=True))
    assert (begin[0], end[0]) == (16, 17)
    assert begin[3] == end[3] == struct.pack(">BBH", 0, 0, 10)  # the subsystem is nftables
    assert (gone[0], made[0]) == (0xA02, 0xA00)
    assert all(flags & netlink.ACK for _, flags, _, _ in (gone, made))
    assert not any(flags & netlink.ACK for _, flags, _, _ in (begin, end))
    assert [sequence for _, _, sequence, _ in (begin, gone, made, end)] == [0, 1, 2, 3]
    assert nft_dump.fields(made[3])[1] == b"mine\0"
    assert nft_dump.fields(made[3])[2] == b"\0\0\0\6"


def test_what_is_not_there_is_not_deleted() -> None:
    assert [kind for kind, *_ in parts(nft_batch.anew(5, "mine", flags=0, replaces=False))] == [16, 0xA00, 17]
    assert [kind for kind, *_ in parts(nft_batch.gone(5, "mine"))] == [16, 0xA02, 17]


def test_a_trial_ends_in_something_impossible() -> None:
    _, made, gone, _ = parts(nft_batch.trial(1, "mine"))
    assert nft_dump.fields(made[3])[2] == b"\0\0\0\6"
    assert gone[0] == 0xA02
    assert nft_dump.fields(gone[3])[1] != nft_dump.fields(made[3])[1]


def answer(number: int) -> bytes:
    return netlink.message(netlink.ERROR, 0, 1, struct.pack("=i", -number) + bytes(16))


@pytest.mark.parametrize(
    ("answers", "number"),
    [
        ([answer(0), answer(0)], 0),
        ([answer(0) + answer(errno.EPERM)], errno.EPERM),
        ([answer(errno.EOPNOTSUPP), answer(errno.ENOENT)], errno.EOPNOTSUPP),
        ([], errno.EPROTO),
    ],
)
def test_the_first_refusal_counts_and_silence_is_none_of_them(answers: list[bytes], number: int) -> None:
    assert nft_batch.refusal(answers) == number
