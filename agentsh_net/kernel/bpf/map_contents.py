"""What the maps of the probes hold, and whether it is what a plan wants there: asked of the kernel, never remembered.

Changes nothing. Everything is read at every look; what is remembered is only which bytes were found right before.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from agentsh_net.core.abi import sieve, wire
from agentsh_net.core.network.plane import Plan
from agentsh_net.kernel.bpf import syscall

# So many words of the sieve are read one by one in less time than the whole of it, which takes 5 ms.
_FEW_WORDS = 512

_Bytes = tuple[bytes, bytes]  # the keys of a map and its values, one behind the other


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the maps hold when `plan` is in force. `words`: those of the sieve that have a bit, by number; `sieve`: all of them."""

    plan: Plan
    rules: dict[bytes, bytes]
    names: dict[bytes, bytes]
    words: dict[int, int]
    sieve: bytes


class MapContents:
    """The maps of loaded probes, by name. Every method raises OSError where the kernel does not answer."""

    def __init__(self, maps: Mapping[str, int]) -> None:
        self._maps = maps
        self._expected: _Expected | None = None
        # What the maps held when every element of them was as expected. While nobody writes, the kernel says the same bytes
        # in the same order: then nothing need be looked up one by one, which for 50,000 rules took 30 ms a second.
        self._verified: tuple[_Bytes, _Bytes] | None = None

    def look(self, plan: Plan) -> tuple[int, str]:
        """Return how many rules there are, and what is not as `plan` wants it."""
        held, named = self._held("rules", wire.KEY.size), self._held("names", wire.NAME.size)
        expected = self._expected
        if expected is None or expected.plan is not plan:
            expected, self._verified = _expected(plan), None
            self._expected = expected
        reason = ""
        if (held, named) != self._verified:
            reason = _difference(expected, held, named)
            self._verified = None if reason else (held, named)
        if not reason and set(self.prefixes()) != prefixes(plan):
            reason = "other prefixes in the kernel than in the plan"
        if not reason and not self._sieved(expected):
            reason = "the sieve in the kernel lets pass what the plan denies"
        return len(held[0]) // wire.KEY.size, reason

    def rules(self) -> dict[bytes, bytes]:
        """Return the rules."""
        return _pairs(self._held("rules", wire.KEY.size), wire.KEY.size)

    def names(self) -> dict[bytes, bytes]:
        """Return the server names."""
        return _pairs(self._held("names", wire.NAME.size), wire.NAME.size)

    def prefixes(self) -> dict[bytes, bytes]:
        """Return the prefixes that are declared for sessions."""
        return _pairs(self._held("prefixes", wire.PREFIX.size), wire.PREFIX.size)

    def sieve(self) -> bytes:
        """Return the sieve."""
        return syscall.array_values(self._maps["sieve"], sieve.WORDS, sieve.WORD.size)

    def _held(self, name: str, key_size: int) -> _Bytes:
        return syscall.contents(self._maps[name], key_size, wire.RULE.size)

    def _sieved(self, expected: _Expected) -> bool:
        """Say whether the sieve has every bit that it should have; more of them cost look-ups and nothing else."""
        if len(expected.words) > _FEW_WORDS:
            return sieve.covers(self.sieve(), expected.sieve)
        for number, wanted in expected.words.items():
            word = syscall.lookup(self._maps["sieve"], struct.pack("=I", number), sieve.WORD.size)
            if wanted & ~sieve.WORD.unpack(word)[0]:
                return False
        return True


def prefixes(plan: Plan) -> set[bytes]:
    """Return the keys of the prefixes map when `plan` is in force."""
    return set(map(wire.encode_prefix, plan.egress.prefixes)) if plan.egress is not None else set()


def _expected(plan: Plan) -> _Expected:
    rules = {wire.encode_key(e): wire.encode_rule(rule) for e, rule in plan.rules.items()}
    names = {wire.encode_name(n): wire.encode_fate(fate) for n, fate in plan.names.items()}
    words = sieve.build(plan.rules, every=plan.egress is not None)
    return _Expected(plan, rules, names, {n: words[n] for n in sieve.numbers(words)}, words.tobytes())


def _difference(expected: _Expected, rules: _Bytes, names: _Bytes) -> str:
    """Say what the maps hold that they should not, or the reverse: element by element."""
    held = _pairs(rules, wire.KEY.size)
    if len(held) != len(expected.rules):
        return f"{len(held)} rules in the kernel, {len(expected.rules)} in the plan"
    if held != expected.rules:
        return "other rules in the kernel than in the plan"
    if _pairs(names, wire.NAME.size) != expected.names:
        return "other server names in the kernel than in the plan"
    return ""


def _pairs(held: _Bytes, key_size: int) -> dict[bytes, bytes]:
    keys, values, size = *held, wire.RULE.size
    return {
        keys[i * key_size : (i + 1) * key_size]: values[i * size : (i + 1) * size]
        for i in range(len(keys) // key_size)
    }
