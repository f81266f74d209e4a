"""What is found in the arguments of a call, in results, and in what servers ask of clients.

Files and pages hold what definitions must not: colours, slips of editors, links. So fewer families are strict here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from agentsh_net.core.inspect import (
    addressed,
    custom,
    errands,
    exfiltration,
    instructions,
    intentions,
    languages,
    paraphrases,
    personas,
    phrases,
    secrecy,
    takeovers,
)
from agentsh_net.core.inspect.commands import commands
from agentsh_net.core.inspect.controls import controls
from agentsh_net.core.inspect.credentials import key_shapes, paths_in_arguments
from agentsh_net.core.inspect.custom import Custom
from agentsh_net.core.inspect.definitions import concluded
from agentsh_net.core.inspect.encoded import SHORTEST, decoded, unmasked
from agentsh_net.core.inspect.findings import Category, Finding, Severity
from agentsh_net.core.inspect.homoglyphs import homoglyphs
from agentsh_net.core.inspect.invisible import invisible
from agentsh_net.core.inspect.links import links, opened
from agentsh_net.core.inspect.order_rules import IN_CONTENTS
from agentsh_net.core.inspect.orders import orders
from agentsh_net.core.inspect.plain import plain
from agentsh_net.core.inspect.quiet import Quiet
from agentsh_net.core.inspect.sentences import seams, sentences
from agentsh_net.core.inspect.strings import VOCABULARY, Strings, Text, as_written, pieces, strings

# Characters of one call, or of a piece of a result: a long file. A text that is made to be slow takes a second, and holds up the calls
# behind it.
MAX_CHARS = 256 << 10
# Characters of a result: half a million tokens, more than clients hand to a model. Nobody may hide behind a shorter padding.
MAX_RESULT = 2 << 20

# Arguments of so many members, none of which has members, are read without a walk.
MAX_FLAT = 32
_FLAT = frozenset({str, int, float, bool, type(None)})

PHRASES = (
    *instructions.PHRASES,
    *secrecy.PHRASES,
    *exfiltration.PHRASES,
    *languages.PHRASES,
    *takeovers.PHRASES,
    *personas.PHRASES,
    *(
        phrase
        for phrase in (*paraphrases.PHRASES, *intentions.PHRASES)
        if phrase.category is not Category.PREFERENCE
    ),
)

INDEX = phrases.Index(PHRASES)
RESULTS_INDEX = phrases.Index((*PHRASES, *addressed.PHRASES, *errands.PHRASES))
# Tells that arguments hold nothing, at a tenth of the price of looking.
QUIET = Quiet(INDEX)


def inspect_arguments(arguments: Any, customs: Sequence[Custom] = ()) -> tuple[Finding, ...]:
    """Return what the arguments of a call hold; text that does not parse is inspected as it is."""
    return concluded(_in_arguments(strings(arguments, MAX_CHARS), customs))


def inspect_calls(calls: Sequence[Any], customs: Sequence[Custom] = ()) -> list[tuple[Finding, ...]]:
    """Return what the arguments of each of many calls hold, at a fifth of the price where, as nearly always, that is nothing."""
    # The operator's patterns have a bound for each call.
    if not customs and _quiet(calls):
        return [()] * len(calls)
    if not customs and (texts := _distinct(calls)) is not None:
        # One by one, as there is a bound for each call.
        further = [one for text in texts if len(text.raw) >= SHORTEST for one in decoded((text,))]
        if not _anything(texts, [*texts, *further]):
            return [()] * len(calls)
    return [inspect_arguments(arguments, customs) for arguments in calls]


def _distinct(calls: Sequence[Any]) -> list[Text] | None:
    """Return each string of the arguments of calls, once where it stands at one place in several; None where a bound is met."""
    named: set[tuple[Any, Any]] = set()
    texts: list[Text] = []
    for arguments in calls:
        if _flat(arguments):
            named.update(arguments.items())
        else:
            read = strings(arguments, MAX_CHARS)
            if read.left_out:
                return None
            texts += read.texts
    if sum(len(value) for _, value in named if type(value) is str) > MAX_CHARS:
        return None
    keys = dict.fromkeys(name for name, _ in named)
    texts += [Text((key,), key, plain(key), key=True) for key in keys if key not in VOCABULARY]
    texts += [Text((key,), value, plain(value)) for key, value in named if type(value) is str]
    return texts


def _quiet(calls: Sequence[Any]) -> bool:
    """Say whether all calls together have no sign of anything."""
    named: set[tuple[Any, Any]] = set()
    said: set[str] = set()
    for arguments in calls:
        if _flat(arguments):
            named.update(arguments.items())
            continue
        written = as_written(arguments)
        if written is None:
            return False
        said.update(written)
    said.update(text for member in named for text in member if type(text) is str)
    return QUIET.strings(said)


def _flat(arguments: Any) -> bool:
    """Say whether arguments are a few members without members of their own."""
    if type(arguments) is not dict or len(arguments) > MAX_FLAT:
        return False
    return all(map(_FLAT.__contains__, map(type, arguments.values())))


def inspect_content(
    value: Any, customs: Sequence[Custom] = (), *, opens: bool = False
) -> tuple[Finding, ...]:
    """Return what a result, an error, or a request of a server to its client holds; `opens`: one to open URLs, perhaps."""
    found: list[Finding] = []
    for read in pieces(value, MAX_CHARS, MAX_RESULT):
        texts = (*read.texts, *unmasked(read.texts), *sentences(read.texts), *seams(read.texts))
        if opens:
            found += opened(read.texts)
        found += [*orders(IN_CONTENTS, texts), *_shared(texts, customs, RESULTS_INDEX)]
        if read.left_out:  # whoever wrote it may have wished for that
            found.append(_too_large(Severity.MEDIUM, MAX_RESULT))
        # Those that search no whole piece have told so.
        customs = [each for each in customs if each.reach >= 2 * MAX_CHARS]
    return concluded(found)


def _in_arguments(read: Strings, customs: Sequence[Custom]) -> list[Finding]:
    texts = (*read.texts, *decoded(read.texts))
    found = [*paths_in_arguments(read.texts), *commands(read.texts), *_shared(texts, customs, INDEX)]
    return [*found, _too_large(Severity.LOW, MAX_CHARS)] if read.left_out else found


def _too_large(severity: Severity, read: int) -> Finding:
    reason = f"longer than {read} characters or nested too deeply: the rest was not read"
    return Finding("too-large", Category.OVERSIZE, severity, "$", reason)


def _shared(texts: Sequence[Text], customs: Sequence[Custom], index: phrases.Index) -> list[Finding]:
    found = [*_of_each(texts), *custom.find(customs, texts)]
    found += phrases.find(index.phrases, texts, index)
    return found


def _anything(plainly: Sequence[Text], texts: Sequence[Text]) -> bool:
    """Say whether any string may hold something: what is found in one is found among many."""
    each = chain(
        paths_in_arguments(plainly), commands(plainly), _of_each(texts), phrases.find(PHRASES, texts, INDEX)
    )
    return next(each, None) is not None


def _of_each(texts: Sequence[Text]) -> Iterator[Finding]:
    """Find what stands in one string, whatever stands in others."""
    yield from invisible(texts, strict=False)
    yield from controls(texts, strict=False)
    yield from homoglyphs(texts, strict=False)
    yield from key_shapes(texts, Severity.MEDIUM)
    yield from links(texts, strict=False)
