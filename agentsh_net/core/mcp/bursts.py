"""Lines of MCP over stdio of the plainest shapes, whole bursts of them read in one search: calls, and results that are text.

A burst in which one line is anything else is read line by line (`skim`, `glance`). What is read here is exactly what a
strict reader would read: no key stands twice, no name is escaped, nothing else is on the line. Light on purpose (see
`shim_link`).
"""

from __future__ import annotations

import re
from functools import cache

TYPE_CHECKING = False  # see shim_link
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

# Bytes of a burst that is read so: what a pipe holds.
MAX_BURST: Final = 1 << 16

# JSON (RFC 8259) as far as nobody reads it otherwise: no whitespace between tokens, numbers that every reader holds exactly.
_PLAIN: Final = r'[^"\\\x00-\x1f]'
_TEXT: Final = rf'"{_PLAIN}*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN}*)*"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?"
_SCALAR: Final = rf"(?:{_TEXT}|{_NUMBER}|true|false|null)"
_KEY: Final = r'"[^"\\:\x00-\x1f]*":'
# After an element: a comma and another one, or the end. So each element is written once: patterns are made in a start's time.
_NEXT: Final = r"(?:,(?![\]}])|(?=[\]}]))"
_VALUE: Final = rf"(?:{_SCALAR}|\[(?:{_SCALAR}{_NEXT})*\])"
_FLAT: Final = rf"\{{(?:{_KEY}{_VALUE}{_NEXT})*\}}"
# An object of objects or lists of them, none of which has further ones.
_OBJECT: Final = rf"\{{(?:{_KEY}(?:{_VALUE}|{_FLAT}|\[(?:{_FLAT}{_NEXT})*\]){_NEXT})*\}}"
_ID: Final = rf'(0|[1-9][0-9]{{0,14}}|"{_PLAIN}{{0,64}}")'
_CALL: Final = rf'"method":"tools/call","params":\{{"name":"({_PLAIN}+)","arguments":({_OBJECT})(?:,"_meta":({_FLAT}))?\}}'
_ITEM: Final = rf'\{{"type":"text","text":{_TEXT}\}}'
_RESULT: Final = (
    rf'"result":\{{"content":\[(?:{_ITEM}(?:,{_ITEM})*)?\](?:,"structuredContent":({_OBJECT}))?'
    r'(?:,"isError":(?:false|true))?\}'
)

# JSON-RPC's own members lead or follow: clients and servers write it in two ways.
_CALLS: Final = (rf'\{{{_CALL},"jsonrpc":"2\.0","id":{_ID}\}}', rf'\{{"jsonrpc":"2\.0","id":{_ID},{_CALL}\}}')
_RESULTS: Final = (
    rf'\{{{_RESULT},"jsonrpc":"2\.0","id":{_ID}\}}',
    rf'\{{"jsonrpc":"2\.0","id":{_ID},{_RESULT}\}}',
)

# Finds every key of an object and of those in it: what else it may find ends in the quote that opens a text, and no key begins with a colon.
_KEYS: Final = re.compile(_KEY)


def calls(text: str) -> list[tuple[str, ...]]:
    """Return the id, the tool, the arguments and `_meta` of the call on each line (with its newline), all but the tool as JSON.

    Nothing where there is a line that is no lone tools/call of the plainest shape.
    """
    if '"method":"tools/call","params":{"name":"' not in text:
        return []
    leading = text.startswith('{"jsonrpc"')
    found = _lines(text, _pattern(_CALLS[leading]))
    if not leading:  # the ids come last
        found = [(id_, tool, arguments, meta) for tool, arguments, meta, id_ in found]
    for _, _, arguments, meta in found:
        if (arguments.count('":') > 1 and not _distinct(arguments)) or (meta and not _distinct(meta)):
            return []
    return found


def results(text: str) -> list[int | str]:
    """Return the ids of the requests that the lines (with their newlines) answer with plain text; none where one does not."""
    if '"result":{"content":[' not in text:
        return []
    leading = text.startswith('{"jsonrpc"')
    found = _lines(text, _pattern(_RESULTS[leading]))
    if not leading:
        found = [(id_, structured) for structured, id_ in found]
    for _, structured in found:
        if structured and not _distinct(structured):
            return []
    return ids_of(found)


def ids_of(found: Iterable[tuple[str, ...]]) -> list[int | str]:
    """Return the ids that stand first in what was found."""
    ids = [groups[0] for groups in found]
    return [int(id_) if id_[0] != '"' else id_[1:-1] for id_ in ids]


def _lines(text: str, pattern: re.Pattern[str]) -> list[tuple[str, ...]]:
    """Return what is found on each line; nothing where one is of another shape, or has no end."""
    found = pattern.findall(text)
    return found if len(found) == text.count("\n") and text.endswith("\n") else []


def _distinct(text: str) -> bool:
    """Say whether no key stands twice in an object and those in it together."""
    keys = _KEYS.findall(text)
    return len(set(keys)) == len(keys)


@cache
def _pattern(line: str) -> re.Pattern[str]:
    """Return what matches a whole line. Made when first needed: a start must not wait for it."""
    return re.compile(rf"^{line}\n", re.MULTILINE)
