"""What is found in the arguments of a call, in results, and in what servers ask of clients.

Files and pages hold what definitions must not: colours, slips of editors, links. So fewer families are strict here.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from agentsh_net.core.inspect.strings import strings

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
    read = strings(arguments, MAX_CHARS)
    found = [*paths_in_arguments(read.texts), *commands(read.texts), *_shared(arguments, customs)]
    return concluded(found)


def inspect_content(value: Any, customs: Sequence[Custom] = ()) -> tuple[Finding, ...]:
    """Return what a result, an error, or a request of a server to its client holds."""
    return concluded(_shared(value, customs))


def _shared(value: Any, customs: Sequence[Custom]) -> list[Finding]:
    read = strings(value, MAX_CHARS)
    texts = (*read.texts, *decoded(read.texts))
    found = [
        *invisible(texts, strict=False),
        *controls(texts, strict=False),
        *homoglyphs(texts),
        *key_shapes(texts, Severity.MEDIUM),
        *links(texts, strict=False),
        *custom.find(customs, texts),
    ]
    found += phrases.strong(phrases.find(PHRASES, texts), found)
    if read.left_out:
        reason = f"longer than {MAX_CHARS} characters or nested too deeply: the rest was not read"
        found.append(Finding("too-large", Category.OVERSIZE, Severity.LOW, "$", reason))
    return found
