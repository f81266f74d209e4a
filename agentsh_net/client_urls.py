"""A client's file with its network servers going through the gateway, or directly again: what is added stands before a URL.

The server's own URL stays behind it, in the fragment, which no HTTP client sends (RFC 9110, section 7.1): taking away what was
added restores every byte. Which servers, and reading and writing files, is `client_install`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from agentsh_net import client_edit
from agentsh_net.client_edit import Keys, UneditableError

NAMES: Final = ("httpUrl", "url")  # the keys that clients give a server's URL
_MARK: Final = "#agentsh-net:"
_REDIRECTED: Final = re.compile(r"https?://[^/#?]+/mcp/([^/#?]+)" + _MARK)


@dataclass(frozen=True, slots=True)
class Redirected:
    """A URL that goes through the gateway: the server's id there, its own URL, and how much stands before it."""

    server_id: str
    url: str
    before: int


def redirected(url: Any) -> Redirected | None:
    """Return what is behind a URL, or None for one that does not go through the gateway."""
    match = _REDIRECTED.match(url) if isinstance(url, str) else None
    return Redirected(unquote(match[1]), url[match.end() :], match.end()) if match else None


def prefix(gateway: str, server_id: str) -> str:
    """Return what is put before a server's URL; `gateway` is where the gateway listens."""
    return f"{gateway.rstrip('/')}/mcp/{quote(server_id, safe='')}{_MARK}"


def install(text: str, kind: str, servers: Mapping[Keys, str], gateway: str) -> str:
    """Return `text` (of a `json` or `toml` file) with these entries (keys -> server id) behind the gateway; those that are, are.

    Raises UneditableError.
    """
    for keys, server_id in servers.items():
        name, url = _url(text, kind, keys)
        if redirected(url) is not None:
            continue
        start, _ = client_edit.value_span(text, kind, keys, name)
        edited = text[: start + 1] + prefix(gateway, server_id) + text[start + 1 :]
        found = redirected(_url(edited, kind, keys)[1])
        if found is None or found.url != url:
            raise UneditableError(f"{'.'.join(keys)} is written in a way that cannot be edited safely")
        text = edited
    return text


def uninstall(text: str, kind: str, places: Sequence[Keys]) -> str:
    """Return `text` with the entries at these keys as they were before `install`. Raises UneditableError."""
    for keys in places:
        name, url = _url(text, kind, keys)
        found = redirected(url)
        if found is None:
            continue
        start, _ = client_edit.value_span(text, kind, keys, name)
        edited = text[: start + 1] + text[start + 1 + found.before :]
        if _url(edited, kind, keys)[1] != found.url:
            raise UneditableError(f"{'.'.join(keys)} is written in a way that cannot be edited safely")
        text = edited
    return text


def urls(text: str, kind: str, places: Sequence[Keys]) -> dict[Keys, list[str]]:
    """Return each entry's URL as a text has it, as `client_edit.commands` returns commands. Raises UneditableError."""
    return {keys: [_url(text, kind, keys)[1]] for keys in places}


def _url(text: str, kind: str, keys: Keys) -> tuple[str, str]:
    entry = client_edit.entry(text, kind, keys)
    for name in NAMES:
        if isinstance(entry, Mapping) and isinstance(entry.get(name), str):
            return name, entry[name]
    raise UneditableError(f"{'.'.join(keys)} has no URL that is plain text")
