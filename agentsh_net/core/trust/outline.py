"""What a model reads of a tool's definition, as hashes: compared with what a request shows it, whatever a client reshaped.

Clients drop keywords, rename `inputSchema` and cut long descriptions, but they write no new text. Text that the server's
definition does not have is a change. Which version is trusted is core.trust.pins' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from agentsh_net.core.naming.folding import NOT_ALNUM

# Half a SHA-1's worth of bits: a text that collides with a given one takes 2**64 tries.
_DIGITS: Final = 16
# Where clients cut descriptions (OpenAI takes 1,024 characters, Claude Code shows 2,048), less what they put at the cut.
_HEADS: Final = (1000, 2000)
_TAIL: Final = 64  # characters behind a known beginning that a cut may leave unverified: the cut's own words
_CUT_AT: Final = (1024, 2048)
_MARK: Final = re.compile(r"(?:\.\.\.|…)(?:\s*[\[(][^\])]{0,24}[\])])?$")
MAX_TEXTS: Final = 5000  # of one schema; a larger one counts as having texts that nobody knows
_SPACE: Final = re.compile(r"\s+")

# Keywords whose text says how a value is built, not what to do; clients drop, add and translate them.
_STRUCTURE: Final = frozenset({"type", "$schema", "$id", "$ref", "format", "required", "contentencoding", "propertyordering", "additionalproperties"})  # fmt: skip
_NAMING: Final = frozenset({"properties", "patternproperties", "$defs", "definitions", "dependentschemas"})


class Outline(NamedTuple):
    """`description` is empty where there is none; `heads` are the hashes of a long one's beginnings; `texts` are sorted."""

    description: str = ""
    heads: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def telling(self) -> bool:
        """Say whether there is enough in it to know a tool by."""
        return bool(self.description)


NOTHING: Final = Outline()


def of_definition(definition: Mapping[str, Any]) -> Outline:
    """Return the outline of what a server's tools/list says of a tool."""
    return of(definition.get("description"), definition.get("inputSchema"), definition.get("name"))


def of(description: Any, schema: Any, name: Any = "") -> Outline:
    """Return the outline of a description and a schema."""
    plain = _plain(description)
    heads = tuple(_hash(plain[:length]) for length in _HEADS if len(plain) > length)
    return Outline(
        _hash(plain) if plain else "", heads, tuple(sorted({_hash(t) for t in _texts(schema, name)}))
    )


def differences(known: Outline, shown: Outline, description: Any) -> tuple[str, ...]:
    """Say what `shown` (whose description is given) has that `known` has not: `description`, `schema`; empty where nothing."""
    found = []
    if shown.description not in ("", known.description) and not _is_cut(known, _plain(description)):
        found.append("description")
    if not set(shown.texts) <= set(known.texts):
        found.append("schema")
    return tuple(found)


def _is_cut(known: Outline, plain: str) -> bool:
    """Say whether a description is a known one, cut short."""
    if not (_MARK.search(plain) or len(plain) in _CUT_AT):
        return False
    return any(
        length <= len(plain) <= length + _TAIL and _hash(plain[:length]) in known.heads for length in _HEADS
    )


def _plain(text: Any) -> str:
    return _SPACE.sub(" ", text).strip() if isinstance(text, str) else ""


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _texts(schema: Any, name: Any) -> Iterator[str]:
    """Yield the names of all properties and every text that a model may read; a loop, because depth is the sender's choice."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    names: set[str] = {_letters(name)}
    titles: list[str] = []
    count = 0
    while waiting:
        key, value = waiting.pop()
        count += 1
        if count > MAX_TEXTS:
            yield f"more than {MAX_TEXTS} texts"
            return
        if isinstance(value, Mapping):
            for inner, item in value.items():
                if key in _NAMING:
                    names.add(_letters(inner))
                    yield inner
                    waiting.append(("", item))
                elif inner.lower() not in _STRUCTURE or isinstance(item, Mapping):
                    waiting.append((inner.lower(), item))
        elif isinstance(value, list):
            waiting += ((key if key not in _NAMING else "", item) for item in value)
        elif isinstance(value, str):
            if key == "title":
                titles.append(value)
            elif plain := _plain(value):
                yield plain
    # Frameworks make titles of names ("File Path"); such a title says nothing.
    yield from (_plain(title) for title in titles if _letters(title) not in names and _plain(title))


def _letters(text: Any) -> str:
    return NOT_ALNUM.sub("", text.lower()) if isinstance(text, str) else ""
