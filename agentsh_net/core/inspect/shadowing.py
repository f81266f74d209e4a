"""Definitions that speak of another server's tool: an order about it is an attempt to steer it from outside.

Names that are words of the language (search, fetch, add) are no name in a sentence; they count only where an order
is given about `the search tool` or the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text
from agentsh_net.core.naming.folding import fold

# What stands out in a sentence as a name: separators, humps (of the text as written), or `the X tool`.
SEPARATED = re.compile(r"[a-z0-9]+(?:[_.-][a-z0-9]+)+|(?<=\bthe )[a-z0-9]+(?= (?:tool|function)\b)")
HUMPED = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b")
# Client prefixes before another server's tool in a text: mcp_tool_send_email, mcp__mail__send_email
PREFIX = re.compile(r"(?:mcp_+(?:tool_+)?(?:[a-z0-9-]+__)?|functions\.)")

ORDER_BEFORE = re.compile(
    r"\b(?:before|after|when(?:ever)?|every time|each time|instead of|rather than|do not|don't|never|stop|avoid|always|must|replaces?|supersedes?|overrides?|deprecates?|side effect on"
    r"|intercepts?|on behalf of|prior to|also call|then call|first call|invoke|change|modify)\b[^.!?]{0,50}$"
)
ORDER_BEHIND = re.compile(
    r"^[^.!?]{0,40}\b(?:must|should|is (?:deprecated|insecure|broken|unsafe|obsolete|compromised|replaced|disabled|invoked|called|used)|will fail|needs? to|has to|requires)\b"
)


Owners = Mapping[str, frozenset[str]]  # folded tool name -> the servers that offer it


def owners_of(names: Iterable[tuple[str, str]]) -> Owners:
    """Return who offers what, of (server id, tool name) pairs."""
    owners: dict[str, set[str]] = {}
    for server, name in names:
        owners.setdefault(fold(name), set()).add(server)
    return {name: frozenset(theirs) for name, theirs in owners.items()}


def shadowing(texts: Sequence[Text], server_id: str, owners: Owners) -> Iterator[Finding]:
    """Find orders about tools that other servers offer and this one does not."""
    for text in texts:
        if text.key:
            continue
        for start, end, name in mentions(text):
            theirs = owners.get(name)
            if theirs is None or server_id in theirs:
                continue
            before, behind = text.plain[max(0, start - 70) : start], text.plain[end : end + 90]
            if ORDER_BEFORE.search(before) or ORDER_BEHIND.match(behind):
                shown = excerpt(text.plain, start, end, f"{name} is a tool of server {min(theirs)}")
                yield Finding("steers-other-tool", Category.SHADOWING, Severity.HIGH, text.path, shown)
                break


def mentioned(texts: Iterable[Text]) -> frozenset[str]:
    """Return everything in texts that may be the name of a tool."""
    return frozenset(name for text in texts if not text.key for _, _, name in mentions(text))


def mentions(text: Text) -> Iterator[tuple[int, int, str]]:
    """Yield what in a text may be the name of a tool: (start, end, name), places being those of the plain text."""
    for match in SEPARATED.finditer(text.plain):
        name = match[0]
        yield *match.span(), name
        if name.startswith(("mcp_", "functions.")):
            yield *match.span(), PREFIX.sub("", name, count=1)
    for match in HUMPED.finditer(text.raw):
        name = fold(match[0])
        at = text.plain.find(name)
        if at >= 0:
            yield at, at + len(name), name
