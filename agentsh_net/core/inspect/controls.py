"""Control characters and terminal escapes: what a terminal obeys and nobody sees (ECMA-48, xterm's control sequences)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text

ESCAPE = re.compile(r"[\x1b\x9b\x9d\x90\x98\x9e\x9f]")
# Colours, weight and the like, which programs print; 8 conceals, and 38/48 can make text the colour of its ground.
COLOUR = re.compile(r"\x1b\[(?!(?:[0-9;]*;)?8(?:;[0-9;]*)?m)[0-9;:]{0,40}m")
# Text in the colour of its ground, from either palette.
SAME_COLOUR = re.compile(
    r"\x1b\[(?:3([0-7]);4\1|4([0-7]);3\2|38;5;(\d{1,3});48;5;\3|48;5;(\d{1,3});38;5;\4|38;2;([\d;]{5,11});48;2;\5)m"
)
# Escapes that conceal or lead elsewhere, spelled out: whoever prints the text as a string of a program obeys them.
SPELLED = re.compile(r"(?:\\x1b|\\u001b|\\033|\\e|\u241b)(?:\[(?:[\d;]*;)?8m|\](?:8|52);)", re.IGNORECASE)
# A terminal shows what follows in place of what went before.
OVERWRITTEN = re.compile(r"[^\r\n]\r(?=[^\r\n])")
OTHER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c\x9e\x9f]")


def controls(texts: Iterable[Text], *, strict: bool) -> Iterator[Finding]:
    """Find control characters. `strict` is for definitions; what programs print has colours and form feeds in it."""
    for text in texts:
        raw = text.raw
        if raw.isprintable():
            if strict and ("\\" in raw or "\u241b" in raw) and (match := SPELLED.search(raw)):
                yield _finding("terminal-escape", Severity.MEDIUM, text, raw, match)
            continue
        rest = raw if strict or SAME_COLOUR.search(raw) else COLOUR.sub("", raw)
        if match := ESCAPE.search(rest):
            yield _finding("terminal-escape", Severity.HIGH, text, rest, match)
        elif match := OTHER.search(rest):
            severity = Severity.MEDIUM if strict else Severity.LOW
            yield _finding("control-character", severity, text, rest, match)
        elif strict and (match := OVERWRITTEN.search(raw) or SPELLED.search(raw)):
            yield _finding("terminal-escape", Severity.MEDIUM, text, raw, match)


def _finding(pattern: str, severity: Severity, text: Text, shown: str, match: re.Match[str]) -> Finding:
    return Finding(pattern, Category.CONTROL, severity, text.path, excerpt(shown, *match.span()))
