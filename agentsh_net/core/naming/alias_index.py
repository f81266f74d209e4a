"""A set of (server, tool) pairs, found again by any spelling that a client may give them.

Pairs are kept under their letters and digits alone, which every client leaves in place; what is found there is
compared by the spellings of core.naming.aliases, so that building costs little and finding is exact.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from agentsh_net.core.model import Candidate
from agentsh_net.core.naming import aliases
from agentsh_net.core.naming.folding import NOT_ALNUM, fold

# What a client appends to a name that is too long or taken: Cline and openai-agents 8 digits of SHA-1, Codex 12 or 40.
HASHED = re.compile(r"(.+?)_?(?:[0-9a-f]{40}|[0-9a-f]{12}|[0-9a-f]{8})")

_HEX = frozenset("0123456789abcdef")

# A cut name keeps at least this much: Codex cuts to 24 characters before 40 digits of hash. Shorter stems mean nothing.
SHORTEST_STEM = 24

# Names on the wire end at 128 characters; what is longer was not made by cutting, and searching it would take long.
LONGEST_CUT = 128


def stem(name: str) -> str:
    """Return what stands before the hash that a client appended to a folded name, or nothing."""
    if not _HEX.issuperset(name[-8:]):  # the shortest hash; most names are done here
        return ""
    hashed = HASHED.fullmatch(name) if len(name) <= LONGEST_CUT else None
    return hashed[1] if hashed else ""


def bare(name: str) -> str:
    """Return the letters and digits of a folded name."""
    letters = name.replace("_", "").replace("-", "")
    return letters if letters.isalnum() and letters.isascii() else NOT_ALNUM.sub("", letters)


class _Heads(NamedTuple):
    """What may stand before the tools of one server: in each style, and in any of them."""

    by_style: tuple[frozenset[str], ...]
    in_any: frozenset[str]


class AliasIndex:
    """Frozen once built; it remembers what it computed about servers, of which there are few."""

    def __init__(self, pairs: Iterable[Candidate]) -> None:
        self._by_letters: dict[str, list[Candidate]] = {}
        self._cut: dict[str, list[Candidate]] = {}
        self._uncut: list[tuple[str, Candidate]] | None = None
        self._heads: dict[str, _Heads] = {}
        self._pairs = tuple(pairs)
        letters_of: dict[str, frozenset[str]] = {}
        for pair in self._pairs:
            servers = letters_of.get(pair.server_id)
            if servers is None:
                cut = aliases.label(pair.server_id)
                servers = letters_of[pair.server_id] = _letters(pair.server_id) | _letters(cut) | {""}
            for tool in _letters(pair.tool):
                for server in servers:
                    self._by_letters.setdefault(server + tool, []).append(pair)
            for form in aliases.cut_forms(pair.server_id, pair.tool):
                self._cut.setdefault(form, []).append(pair)

    @property
    def empty(self) -> bool:
        """Say whether nothing can be found."""
        return not self._pairs

    def find(self, name: str) -> tuple[Candidate, ...]:
        """Return the pairs that some client spells like this folded name."""
        if not self._pairs:
            return ()
        letters = bare(name)
        keys = (letters, letters[3:]) if letters.startswith("mcp") else (letters,)
        found = [p for key in keys for p in self._by_letters.get(key, ()) if self._spelled(name, p)]
        found += self._cut.get(name, ())
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)

    def find_alike(self, name: str) -> tuple[Candidate, ...]:
        """Return the pairs whose server and tool this folded name has, letters and digits alone: joined or recoded as by no client we know."""
        if len(name) > LONGEST_CUT:
            return ()
        letters = bare(name)
        if letters not in self._by_letters and letters.removeprefix("mcp") not in self._by_letters:
            return ()
        ends = set(accumulate(map(len, NOT_ALNUM.split(name))))
        found = []
        for key in dict.fromkeys((letters, letters.removeprefix("mcp"))):
            for pair in self._by_letters.get(key, ()):
                # The server ends where a word does: `WebSearch` is no tool of a server called web.
                tails = [tool for tool in _letters(pair.tool) if tool and key != tool and key.endswith(tool)]
                if any(len(letters) - len(tool) in ends for tool in tails):
                    found.append(pair)
        return tuple(dict.fromkeys(found))

    def find_cut(self, name: str) -> tuple[Candidate, ...]:
        """Return the pairs with a spelling too long for the wire that begins like this folded name."""
        if not aliases.UNCUT <= len(name) <= LONGEST_CUT:
            return ()
        begins = stem(name) or name
        if len(begins) < SHORTEST_STEM:
            return ()
        whole = self._whole_spellings()
        cut = []
        for form, pair in whole[bisect_left(whole, begins, key=lambda w: w[0]) :]:
            if not form.startswith(begins):
                break
            cut.append(pair)
        return tuple(dict.fromkeys(cut))

    def _spelled(self, name: str, pair: Candidate) -> bool:
        heads = self._heads.get(pair.server_id)
        if heads is None:
            by_style = tuple(aliases.heads(pair.server_id, style) for style in aliases.STYLES)
            heads = self._heads[pair.server_id] = _Heads(by_style, frozenset().union(*by_style))
        # Most are clean; to spell them in every style would cost a first verdict a fifth more.
        if aliases.CLEAN.fullmatch(pair.tool):
            tail = pair.tool.lower()
            if not name.endswith(tail):
                return False
            head = name[: -len(tail)]
            return not head or head in heads.in_any
        for style, of_style in zip(aliases.STYLES, heads.by_style, strict=True):
            for tail in aliases.tails(pair.tool, style):
                if name.endswith(tail):
                    head = name[: -len(tail)]
                    if not head or head in of_style:
                        return True
        return False

    def _whole_spellings(self) -> list[tuple[str, Candidate]]:
        """Return every spelling that is long enough to be cut, sorted; made when a cut name is first seen."""
        if self._uncut is None:
            self._uncut = sorted(
                {
                    (head + tail, pair)
                    for pair in self._pairs
                    if len(pair.server_id) + len(pair.tool) > aliases.UNCUT - 8
                    for style in aliases.STYLES
                    for head in aliases.heads(pair.server_id, style) | {""}
                    for tail in aliases.tails(pair.tool, style)
                },
                key=lambda w: w[0],
            )
        return self._uncut


def _letters(text: str) -> frozenset[str]:
    """Return the ASCII letters and digits of a name as clients that replace the rest keep them, and as folding finds them."""
    folded = NOT_ALNUM.sub("", fold(text))
    if text.isascii():
        return frozenset((folded,))
    return frozenset((folded, NOT_ALNUM.sub("", "".join(c for c in text if c.isascii()).lower())))
