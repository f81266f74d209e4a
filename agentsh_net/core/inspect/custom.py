"""The operator's own patterns: compiled once, run over windows of a size that their cost allows (core.inspect.regex_cost)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentsh_net.core.configuration.settings import CustomPattern
from agentsh_net.core.inspect import regex_cost
from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text

# Characters of one value, for each pattern; what stands behind them only the built-in detectors search.
MAX_SEARCHED = 64 << 10


@dataclass(frozen=True, slots=True)
class Custom:
    """A pattern of the operator's, ready to run over `window` characters at a time."""

    name: str
    severity: Severity
    pattern: re.Pattern[str]
    window: int
    display: str = ""


def compiled(patterns: Iterable[CustomPattern]) -> tuple[Custom, ...]:
    """Compile patterns that the configuration let through; case does not matter to them."""
    return tuple(
        Custom(
            p.name, Severity(p.severity), regex_cost.compiles(p.regex), regex_cost.window(p.regex), p.display
        )
        for p in patterns
    )


def find(customs: Sequence[Custom], texts: Sequence[Text]) -> Iterator[Finding]:
    """Find each pattern in each string, once; the text is searched as written and as it reads."""
    for custom in customs:
        left = MAX_SEARCHED
        for text in texts:
            for form in dict.fromkeys((text.raw, text.plain)):
                left -= len(form)
                match = _search(custom, form[: regex_cost.SEARCHED]) if left > 0 else None
                if match is not None:
                    shown = excerpt(form, *match, custom.display)
                    yield Finding(custom.name, Category.CUSTOM, custom.severity, text.path, shown)
                    break


def _search(custom: Custom, text: str) -> tuple[int, int] | None:
    if not custom.window:  # refused by the configuration; a snapshot of another version may still carry it
        return None
    for start in range(0, max(1, len(text) - custom.window // 2), custom.window // 2):
        match = custom.pattern.search(text, start, start + custom.window)
        if match is not None:
            return match.span()
    return None
