"""Every string of a JSON value with its path, keys included, up to a bound; what was left out is told.

What a string says is the detectors' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.inspect import blobs
from agentsh_net.core.inspect.plain import plain
from agentsh_net.core.values.differences import dotted

Path = tuple[str | int, ...]

MAX_DEPTH = 200  # levels; definitions have about 20
HANDLING = 8  # characters' worth that each string costs: a million empty ones are not free
# Characters of a string that both sides of a cut have: longer than a sentence that orders something.
OVERLAP = 1 << 10

# A picture in a URL: its type is inspected, its bytes are not text. SVG is text.
IMAGE = re.compile(r"data:image/(?!svg)[\w.+-]{1,40};base64,[A-Za-z0-9+/=_-]*\Z")
SHOWN_OF_IMAGE = 64  # characters

# The vocabulary of MCP definitions and JSON Schema: these very words say nothing, and they are most of all strings.
VOCABULARY = frozenset(
    """
    $defs $id $ref $schema additionalProperties allOf annotations anyOf array boolean const content data default
    definitions description destructiveHint enum enumDescriptions exclusiveMaximum exclusiveMinimum execution format
    icons idempotentHint inputSchema integer isError items maxItems maxLength maximum mimeType minItems minLength
    minimum name not null number object oneOf openWorldHint outputSchema pattern patternProperties prefixItems
    properties propertyNames readOnlyHint required sizes src string structuredContent text title type uniqueItems uri
    url _meta http://json-schema.org/draft-07/schema# https://json-schema.org/draft/2020-12/schema
    """.split()  # noqa: SIM905 - words read better as words
)


@dataclass(frozen=True, slots=True)
class Text:
    """A string as it stands (`raw`) and as a reader takes it (`plain`). `key` says that it is a key."""

    steps: Path
    raw: str
    plain: str
    key: bool = False

    @property
    def path(self) -> str:
        """Return where it stands."""
        return dotted(self.steps)


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings of one value; `left_out` where it has more than the bounds."""

    texts: tuple[Text, ...]
    left_out: bool = False


def strings(value: Any, max_chars: int) -> Strings:
    """Return the strings of a value in the order of the document, up to `max_chars` characters in all."""
    found: list[Text] = []
    left = max_chars
    for steps, raw, key in _walk(value):
        if steps is None:
            return Strings(tuple(found), left_out=True)
        if raw in VOCABULARY:
            continue
        left -= len(raw) + HANDLING
        if left < 0:
            kept = raw[: max(0, len(raw) + left)]
            if kept:
                found.append(Text(steps, kept, plain(kept), key))
            return Strings(tuple(found), left_out=True)
        found.append(Text(steps, raw, plain(raw), key))
    return Strings(tuple(found))


def pieces(value: Any, size: int, most: int) -> Iterator[Strings]:
    """Yield the strings of a value in groups of up to `size` characters, `most` in all; of one that is cut, the ends overlap."""
    group: list[Text] = []
    left = size
    for steps, raw, key in _walk(value):
        if steps is None:
            yield Strings(tuple(group), left_out=True)
            return
        if raw in VOCABULARY:
            continue
        for start in range(0, max(1, len(raw) - OVERLAP), size - OVERLAP):
            twice = OVERLAP if start else 0
            part = raw[start : start + min(size, most + twice)]
            if len(part) > left and group:
                yield Strings(tuple(group))
                group, left = [], size
            group.append(Text(steps, part, plain(part), key))
            left -= len(part) + HANDLING
            most -= len(part) + HANDLING - twice
            if most < 0:
                yield Strings(tuple(group), left_out=True)
                return
    yield Strings(tuple(group))


def as_written(value: Any) -> list[str] | None:
    """Return the strings of a value, unbounded; None where it is nested too deeply."""
    found = list(_walk(value))
    return None if any(steps is None for steps, _, _ in found) else [raw for _, raw, _ in found]


def _walk(value: Any) -> Iterator[tuple[Path | None, str, bool]]:
    """Yield (path, string, is a key), depth first; a path of None where it is nested too deeply to go on."""
    stack: list[tuple[Path, Any, bool]] = [((), value, False)]
    while stack:
        steps, node, key = stack.pop()
        if isinstance(node, str):
            yield steps, node[:SHOWN_OF_IMAGE] if IMAGE.match(node) else node, key
        elif isinstance(node, Mapping):
            if len(steps) > MAX_DEPTH:
                yield None, "", False
                return
            binary = _binary(node)
            for name in reversed(list(node)):
                told = (
                    blobs.text_of(node[name], str(node.get("mimeType", ""))) if name == binary else node[name]
                )
                if told is not None:
                    stack.append(((*steps, name), told, False))
                stack.append(((*steps, name), name, True))
        elif isinstance(node, Sequence) and not isinstance(node, bytes | bytearray):
            if len(steps) > MAX_DEPTH:
                yield None, "", False
                return
            stack += [((*steps, index), item, False) for index, item in reversed(list(enumerate(node)))]


def _binary(node: Mapping[str, Any]) -> str | None:
    """Return the key whose value is an image, a sound or a blob in base64."""
    if node.get("type") in ("image", "audio") and "data" in node:
        return "data"
    return "blob" if "blob" in node and "uri" in node else None
