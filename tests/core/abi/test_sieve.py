"""The sieve never lacks the bit of a rule, hashes as the C code does, and is tight enough to be worth its memory."""

from __future__ import annotations

import re
import struct
from ipaddress import IPv6Address
from pathlib import Path

from netns.scene import at

from agentsh_net.core.abi import sieve
from agentsh_net.core.network.plane import Endpoint, Fate, Rule

HEADER = Path(__file__).parents[3] / "bpf" / "agentsh.h"
DENY, TAG = Rule(Fate.DENY, ("bad",)), Rule(Fate.TAG, ("good",))


def bits(words: object, endpoint: Endpoint) -> int:
    value = sieve.place(endpoint.address)
    return words[value >> 5] >> (value & 31) * 2 & 3


def test_every_rule_has_its_bit_whatever_its_port() -> None:
    rules = {at(f"10.{n >> 8}.{n & 255}.1", n % 3): DENY if n % 2 else TAG for n in range(5000)}
    words = sieve.build(rules)
    assert all(bits(words, e) & sieve.SET[rule.fate] for e, rule in rules.items())


def test_marking_says_which_words_changed_and_a_second_time_none() -> None:
    words = sieve.build({})
    changed = sieve.mark(words, {at("10.0.0.1"): DENY})
    assert [n for n, word in enumerate(words) if word] == sorted(changed)
    assert sieve.mark(words, {at("10.0.0.1", 443): DENY}) == set()


def test_the_words_that_have_a_bit_are_told_and_no_others() -> None:
    words = sieve.build({at(f"10.0.{n}.1"): DENY for n in range(100)})
    told = sieve.numbers(words)
    assert [words[n] for n in told] == [word for word in words if word]
    assert sieve.numbers(sieve.build({})) == []


def test_with_a_hundred_thousand_neighbours_few_others_are_looked_up_in_vain() -> None:
    words = sieve.build({at(f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}"): DENY for n in range(100_000)})
    others = [
        Endpoint(
            IPv6Address(0x20010DB8 << 96 | n * 7919) if n % 2 else at(f"93.{n >> 8}.{n & 255}.7").address
        )
        for n in range(20_000)
    ]
    in_vain = sum(bool(bits(words, e)) for e in others) / len(others)
    assert in_vain < 0.12


def test_the_multipliers_are_those_of_the_header() -> None:
    found = re.findall(r"#define AGENTSH_SIEVE_[A-D] (0x[0-9a-f]{16})ULL", HEADER.read_text())
    assert tuple(int(n, 16) for n in found) == sieve.MULTIPLIERS


def test_the_hash_is_the_upper_bits_of_the_sum_of_products_of_the_words_in_memory() -> None:
    address = IPv6Address("fd00:99::2")
    words = struct.unpack("=4I", address.packed)
    total = sum(w * m for w, m in zip(words, sieve.MULTIPLIERS, strict=True)) % 2**64
    assert sieve.place(address) == total >> 44


def test_a_sieve_that_lacks_one_bit_does_not_cover() -> None:
    wanted = sieve.build({at("10.0.0.1"): DENY, at("10.0.0.2"): TAG})
    more = sieve.from_bytes(wanted.tobytes())
    sieve.mark(more, {at("10.0.0.3"): DENY})
    assert sieve.covers(more.tobytes(), wanted.tobytes())
    assert not sieve.covers(wanted.tobytes(), more.tobytes())
