"""What is found in the arguments of a call, in results, and in what servers ask of clients.

Files and pages hold what definitions must not: colours, slips of editors, links. So fewer families are strict here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from agentsh_net.core.inspect import (
    custom,
    exfiltration,
    instructions,
    intentions,
    languages,
    paraphrases,
    phrases,
    secrecy,
)
from agentsh_net.core.inspect.commands import commands
from agentsh_net.core.inspect.controls import controls
from agentsh_net.core.inspect.credentials import key_shapes, paths_in_arguments
from agentsh_net.core.inspect.custom import Custom
from agentsh_net.core.inspect.definitions import concluded
from agentsh_net.core.inspect.encoded import decoded
from agentsh_net.core.inspect.findings import Category, Finding, Severity
from agentsh_net.core.inspect.homoglyphs import homoglyphs
from agentsh_net.core.inspect.invisible import invisible
from agentsh_net.core.inspect.links import links
from agentsh_net.core.inspect.strings import Strings, Text, strings

# Characters of one call or result: a long file. A text that is made to be slow takes a second, and holds up the calls behind it.
MAX_CHARS = 256 << 10

PHRASES = (
    *instructions.PHRASES,
    *secrecy.PHRASES,
    *exfiltration.PHRASES,
    *languages.PHRASES,
    *(
        phrase
        for phrase in (*paraphrases.PHRASES, *intentions.PHRASES)
        if phrase.category is not Category.PREFERENCE
    ),
)


def inspect_arguments(arguments: Any, customs: Sequence[Custom] = ()) -> tuple[Finding, ...]:
    """Return what the arguments of a call hold; text that does not parse is inspected as it is."""
    return concluded(_in_arguments(strings(arguments, MAX_CHARS), customs))


def inspect_calls(calls: Sequence[Any], customs: Sequence[Custom] = ()) -> list[tuple[Finding, ...]]:
    """Return what the arguments of each of many calls hold, at a third of the price where, as nearly always, that is nothing."""
    reads = [strings(arguments, MAX_CHARS) for arguments in calls]
    texts = [text for read in reads for text in read.texts]
    # Each call's own runs are decoded, as there is a bound of them, and the operator's patterns have a bound as well.
    further = [text for read in reads for text in decoded(read.texts)]
    bounded = customs or any(read.left_out for read in reads)
    if bounded or _anything(texts, [*texts, *further]):
        return [concluded(_in_arguments(read, customs)) for read in reads]
    return [()] * len(reads)


def inspect_content(value: Any, customs: Sequence[Custom] = ()) -> tuple[Finding, ...]:
    """Return what a result, an error, or a request of a server to its client holds."""
    return concluded(_shared(strings(value, MAX_CHARS), customs))


def _in_arguments(read: Strings, customs: Sequence[Custom]) -> list[Finding]:
    return [*paths_in_arguments(read.texts), *commands(read.texts), *_shared(read, customs)]


def _shared(read: Strings, customs: Sequence[Custom]) -> list[Finding]:
    texts = (*read.texts, *decoded(read.texts))
    found = [*_of_each(texts), *custom.find(customs, texts)]
    found += phrases.strong(phrases.find(PHRASES, texts), found)
    if read.left_out:
        reason = f"longer than {MAX_CHARS} characters or nested too deeply: the rest was not read"
        found.append(Finding("too-large", Category.OVERSIZE, Severity.LOW, "$", reason))
    return found


def _anything(plainly: Sequence[Text], texts: Sequence[Text]) -> bool:
    """Say whether any string may hold something: what is found in one is found among many, weak phrases included."""
    each = chain(
        paths_in_arguments(plainly), commands(plainly), _of_each(texts), phrases.find(PHRASES, texts)
    )
    return next(each, None) is not None


def _of_each(texts: Sequence[Text]) -> Iterator[Finding]:
    """Find what stands in one string, whatever stands in others."""
    yield from invisible(texts, strict=False)
    yield from controls(texts, strict=False)
    yield from homoglyphs(texts)
    yield from key_shapes(texts, Severity.MEDIUM)
    yield from links(texts, strict=False)
