"""A client's file with its network servers going through the gateway, or directly again: what is added stands before a URL.

The server's own URL stays behind it, in the fragment, which no HTTP client sends (RFC 9110, section 7.1), together with what else
was changed: the gateway speaks Streamable HTTP in front of HTTP+SSE servers too, so an entry has to say so to its client. Taking
away what was added restores every byte. Which servers, and reading and writing files, is `installation`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote, unquote

from agentsh_net.mcp_clients import editing
from agentsh_net.mcp_clients.editing import Keys, UneditableError

NAMES: Final = ("httpUrl", "url", "serverUrl")  # the keys that clients give a server's URL
_WORDS: Final = ("type", "transport")  # the keys that name its transport, the first one that is there
_SSE: Final = "sse"
# What clients call what the gateway speaks.
_STREAMABLE: Final = frozenset(("http", "streamableHttp", "streamable-http"))
_MARK: Final = "#agentsh-net"
_REDIRECTED: Final = re.compile(r"https?://[^/#?]+/mcp/([^/#?]+)" + _MARK + r"((?:\+[a-z]+)*):")


class Change(StrEnum):
    """What was changed in an entry besides its URL."""

    WORD = "type"  # `sse` became the client's word for Streamable HTTP
    ADDED = "added"  # that word was added, where its absence means HTTP+SSE
    KEY = "key"  # `url` became the client's key of such a URL


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a client says that a URL is one of Streamable HTTP."""

    word: str = "http"
    typed: bool = False  # without a word it takes a URL for HTTP+SSE
    key: str = "url"  # where no word says


@dataclass(frozen=True, slots=True)
class Behind:
    """A server that goes behind the gateway under this id."""

    server_id: str
    spelling: Spelling = field(default_factory=Spelling)


@dataclass(frozen=True, slots=True)
class Redirected:
    """A URL that goes through the gateway: the server's id there, its own URL, how much stands before it, what else is ours."""

    server_id: str
    url: str
    before: int
    changes: tuple[str, ...] = ()


def redirected(url: Any) -> Redirected | None:
    """Return what is behind a URL, or None for one that does not go through the gateway."""
    match = _REDIRECTED.match(url) if isinstance(url, str) else None
    if match is None:
        return None
    return Redirected(unquote(match[1]), url[match.end() :], match.end(), tuple(match[2].split("+")[1:]))


def direct(name: str, entry: Any) -> tuple[str, Any]:
    """Return the id and the entry of a server as they were before it went behind the gateway."""
    found = _found(entry)
    if found is None:
        return name, entry
    key, through = found
    own = {**entry, key: through.url}
    word = _our_word(entry)
    if word and Change.WORD in through.changes:
        own[word] = _SSE
    if word and Change.ADDED in through.changes:
        del own[word]
    if Change.KEY in through.changes:
        own = {("url" if k == key else k): v for k, v in own.items() if key == "url" or k != "url"}
    return through.server_id, own


def prefix(gateway: str, server_id: str, changes: Sequence[str] = ()) -> str:
    """Return what is put before a server's URL; `gateway` is where the gateway listens."""
    marks = "".join(f"+{change}" for change in changes)
    return f"{gateway.rstrip('/')}/mcp/{quote(server_id, safe='')}{_MARK}{marks}:"


def install(text: str, kind: str, servers: Mapping[Keys, Behind], gateway: str) -> str:
    """Return `text` (of a `json` or `toml` file) with these entries behind the gateway; those that are, are.

    Raises UneditableError.
    """
    for keys, behind in servers.items():
        before = editing.entry(text, kind, keys)
        name, url = _url(before, keys)
        if redirected(url) is not None:
            continue
        changes = _changes(before, name, behind.spelling)
        start, _ = editing.value_span(text, kind, keys, name)
        added = prefix(gateway, behind.server_id, changes)
        edited = text[: start + 1] + added + text[start + 1 :]
        if Change.WORD in changes:
            edited = _reworded(edited, kind, keys, (_SSE,), behind.spelling.word)
        if Change.ADDED in changes:
            _, end = editing.value_span(edited, kind, keys, name)
            edited = f'{edited[:end]},"{_WORDS[0]}":"{behind.spelling.word}"{edited[end:]}'
        if Change.KEY in changes:
            edited = _rekeyed(edited, keys, name, behind.spelling.key)
        if direct("", editing.entry(edited, kind, keys)) != (behind.server_id, before):
            raise UneditableError(f"{'.'.join(keys)} is written in a way that cannot be edited safely")
        text = edited
    return text


def uninstall(text: str, kind: str, places: Sequence[Keys]) -> str:
    """Return `text` with the entries at these keys as they were before `install`. Raises UneditableError."""
    for keys in places:
        before = editing.entry(text, kind, keys)
        found = _found(before)
        if found is None:
            continue
        name, through = found
        start, _ = editing.value_span(text, kind, keys, name)
        edited = text[: start + 1] + text[start + 1 + through.before :]
        word = _our_word(before)
        if word and Change.WORD in through.changes:
            edited = _reworded(edited, kind, keys, _STREAMABLE, _SSE)
        if word and Change.ADDED in through.changes:
            edited = editing.without_member(edited, keys, word)
        if Change.KEY in through.changes and name != "url":
            edited = _rekeyed(edited, keys, name, "url")
        if editing.entry(edited, kind, keys) != direct("", before)[1]:
            raise UneditableError(f"{'.'.join(keys)} is written in a way that cannot be edited safely")
        text = edited
    return text


def _changes(entry: Mapping[str, Any], name: str, spelling: Spelling) -> list[Change]:
    """Return what must be changed in an entry so that its client speaks Streamable HTTP to its URL."""
    word = _word(entry)
    if word is not None:
        return [Change.WORD] if entry[word] == _SSE else []
    if spelling.typed:
        return [Change.ADDED]
    return [Change.KEY] if name != spelling.key and name == "url" else []


def _reworded(text: str, kind: str, keys: Keys, words: Collection[str], word: str) -> str:
    """Return a text whose entry names another transport, in the quotes it had."""
    key = _word(editing.entry(text, kind, keys))
    assert key is not None  # noqa: S101 - who asks has seen it
    start, end = editing.value_span(text, kind, keys, key)
    if text[start + 1 : end - 1] not in words:
        raise UneditableError(f"{'.'.join(keys)} has a {key} that is not written plainly")
    return text[: start + 1] + word + text[end - 1 :]


def _rekeyed(text: str, keys: Keys, name: str, key: str) -> str:
    start, end = editing.key_span(text, keys, name)
    return f'{text[:start]}"{key}"{text[end:]}'


def _word(entry: Any) -> str | None:
    """Return the key that names an entry's transport."""
    return next((key for key in _WORDS if key in entry), None) if isinstance(entry, Mapping) else None


def _our_word(entry: Any) -> str:
    """Return the key that names an entry's transport as we wrote it; empty where the user changed it meanwhile."""
    key = _word(entry)
    return key if key is not None and isinstance(entry[key], str) and entry[key] in _STREAMABLE else ""


def _found(entry: Any) -> tuple[str, Redirected] | None:
    for name in NAMES if isinstance(entry, Mapping) else ():
        through = redirected(entry.get(name))
        if through is not None:
            return name, through
    return None


def _url(entry: Any, keys: Keys) -> tuple[str, str]:
    for name in NAMES:
        if isinstance(entry, Mapping) and isinstance(entry.get(name), str):
            return name, entry[name]
    raise UneditableError(f"{'.'.join(keys)} has no URL that is plain text")
