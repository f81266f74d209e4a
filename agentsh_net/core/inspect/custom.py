"""The operator's own patterns: compiled once, run over windows of a size that their cost allows (core.inspect.regex_cost)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentsh_net.core.configuration.settings import CustomPattern
from agentsh_net.core.inspect import regex_cost
from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text

# Characters of one value that any pattern searches. One that can match in few ways at a place (regex_cost) searches many more, at no
# greater cost; what stands behind them only the built-in detectors read, and that is told.
MAX_SEARCHED = 64 << 10


@dataclass(frozen=True, slots=True)
class Custom:
    """A pattern of the operator's, ready to run over `window` characters at a time, and `reach` in all."""

    name: str
    severity: Severity
    pattern: re.Pattern[str]
    window: int
    display: str = ""
    reach: int = MAX_SEARCHED


def compiled(patterns: Iterable[CustomPattern]) -> tuple[Custom, ...]:
    """Compile patterns that the configuration let through; case does not matter to them."""
    return tuple(map(_compiled, patterns))


def _compiled(pattern: CustomPattern) -> Custom:
    regex, window = pattern.regex, regex_cost.window(pattern.regex)
    reach = max(
        MAX_SEARCHED, regex_cost.SEARCHED * regex_cost.MAX_WAYS // regex_cost.ways(regex, window or 1)
    )
    return Custom(
        pattern.name, Severity(pattern.severity), regex_cost.compiles(regex), window, pattern.display, reach
    )


def find(customs: Sequence[Custom], texts: Sequence[Text]) -> Iterator[Finding]:
    """Find each pattern in each string, once; the text is searched as written and as it reads. What is not searched is told."""
    for custom in customs:
        left = custom.reach
        for text in texts:
            for form in dict.fromkeys((text.raw, text.plain)):
                match = _search(custom, form[:left]) if left > 0 else None
                left -= len(form)
                if match is not None:
                    shown = excerpt(form, *match, custom.display)
                    yield Finding(custom.name, Category.CUSTOM, custom.severity, text.path, shown)
                    break
        if left < 0:
            reason = f"{custom.name} searched the first {custom.reach} characters only: its pattern is too costly for more"
            yield Finding("not-searched", Category.OVERSIZE, Severity.LOW, "$", reason)


def _search(custom: Custom, text: str) -> tuple[int, int] | None:
    if not custom.window:  # refused by the configuration; a snapshot of another version may still carry it
        return None
    for start in range(0, max(1, len(text) - custom.window // 2), custom.window // 2):
        match = custom.pattern.search(text, start, start + custom.window)
        if match is not None:
            return match.span()
    return None
