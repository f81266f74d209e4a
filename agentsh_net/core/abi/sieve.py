"""The sieve of bpf/agentsh.h, a Bloom filter of one hash: two bits for each of its values, so that most addresses need no look-up.

A bit that is set too many costs a look-up; a bit that is missing would let a denied address pass. So bits are set before
anything else is relied on, and cleared only by writing the sieve of a whole plan.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from ipaddress import IPv6Address

from agentsh_net.core.network.plane import Endpoint, Fate, Rule

BITS = 20
WORDS = 1 << (BITS - 5)
WORD = struct.Struct("=Q")
# AGENTSH_SIEVE_*: what packets are looked at for, and what only connects are.
SET = {Fate.DENY: 1, Fate.TAG: 2, Fate.SNI: 1, Fate.SNI_OPEN: 1, Fate.ALLOW: 2}
_EVERY_TAG = 0xAAAAAAAAAAAAAAAA
MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)

_A, _B, _C, _D = MULTIPLIERS
_ADDRESS = struct.Struct("=4I")  # as the four words lie in memory, whatever the machine's byte order
_MASK = (1 << 64) - 1


def place(address: IPv6Address) -> int:
    """Return the value of an address's hash, below 2^BITS."""
    a, b, c, d = _ADDRESS.unpack(address.packed)
    value: int = (a * _A + b * _B + c * _C + d * _D & _MASK) >> (64 - BITS)
    return value


def mark(words: array[int], rules: Mapping[Endpoint, Rule]) -> set[int]:
    """Set the bits of these rules in `words`, and return the numbers of the words that changed."""
    changed = set()
    for endpoint, rule in rules.items():
        value = place(endpoint.address)
        number, bit = value >> 5, SET[rule.fate] << (value & 31) * 2
        if not words[number] & bit:
            words[number] |= bit
            changed.add(number)
    return changed


def fill(words: array[int]) -> set[int]:
    """Have every connect looked at, as where whoever is in a session may reach only what is declared; return what changed."""
    changed = {number for number, word in enumerate(words) if word & _EVERY_TAG != _EVERY_TAG}
    for number in changed:
        words[number] |= _EVERY_TAG
    return changed


def build(rules: Mapping[Endpoint, Rule], *, every: bool = False) -> array[int]:
    """Return the words of exactly these rules; `every`: every connect is looked at."""
    words = from_bytes(bytes(WORDS * WORD.size))
    mark(words, rules)
    if every:
        fill(words)
    return words


def numbers(words: array[int]) -> list[int]:
    """Return the numbers of the words that have a bit."""
    return [number for number, word in enumerate(words) if word]


def from_bytes(data: bytes) -> array[int]:
    """Return the words that the kernel holds."""
    words = array("Q")
    words.frombytes(data)
    return words


def covers(held: bytes, wanted: bytes) -> bool:
    """Say whether every bit of `wanted` is in `held`."""
    needed = int.from_bytes(wanted, "little")
    return needed & ~int.from_bytes(held, "little") == 0
