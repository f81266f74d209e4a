"""What is found by itself in a tool's definition, or in what a server says of itself: every string of it, keys included.

What other servers offer, and so what is found beside them, is `inspector`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentsh_net.core.inspect import (
    addressed,
    custom,
    duties,
    exfiltration,
    instructions,
    intentions,
    languages,
    paraphrases,
    personas,
    phrases,
    preference,
    secrecy,
    steering,
    takeovers,
)
from agentsh_net.core.inspect.controls import controls
from agentsh_net.core.inspect.credentials import key_shapes, paths_in_definition, secret_parameters
from agentsh_net.core.inspect.custom import Custom
from agentsh_net.core.inspect.encoded import encoded, unmasked
from agentsh_net.core.inspect.findings import Category, Finding, Severity, at_least, bounded
from agentsh_net.core.inspect.homoglyphs import homoglyphs
from agentsh_net.core.inspect.invisible import invisible
from agentsh_net.core.inspect.links import links
from agentsh_net.core.inspect.named_tools import about_other_calls
from agentsh_net.core.inspect.names import unusual
from agentsh_net.core.inspect.order_rules import IN_DEFINITIONS, IN_PARAMETERS
from agentsh_net.core.inspect.orders import orders
from agentsh_net.core.inspect.strings import Strings, strings

# Characters of one definition. The longest of popular servers has some 20,000; one that is longer is not read to its end, and
# what was not read is not let through: hence critical.
MAX_CHARS = 64 << 10

PHRASES = (
    *instructions.PHRASES,
    *secrecy.PHRASES,
    exfiltration.MENTION,
    *exfiltration.PHRASES,
    *preference.PHRASES,
    *languages.PHRASES,
    *paraphrases.PHRASES,
    *intentions.PHRASES,
    *takeovers.PHRASES,
    *personas.PHRASES,
    *steering.PHRASES,
    *duties.PHRASES,
    addressed.WHOEVER_READS,
)
INDEX = phrases.Index(PHRASES)

# Families that poison together: an order to the model with secrecy, a path of secrets, a place to send them to.
GRAVE = frozenset(
    {
        Category.INSTRUCTION,
        Category.SECRECY,
        Category.EXFILTRATION,
        Category.EXECUTION,
        Category.CREDENTIALS,
        Category.SHADOWING,
        Category.INVISIBLE,
        Category.CONTROL,
        Category.LOOKALIKE,
        Category.PREFERENCE,
    }
)


def inspect_definition(
    definition: Mapping[str, Any], customs: Sequence[Custom] = (), read: Strings | None = None
) -> tuple[Finding, ...]:
    """Return what a tool's definition holds; `read` are its strings where they are known already."""
    read = read or strings_of(definition)
    found = _found(read, customs)
    found += secret_parameters(definition)
    name = definition.get("name")
    if isinstance(name, str):
        found += unusual(name, "$.name")
        found += about_other_calls(read.texts, name)
    return concluded(found)


def inspect_handshake(
    instructions: str, info: Mapping[str, Any], customs: Sequence[Custom] = ()
) -> tuple[Finding, ...]:
    """Return what a server says of itself: its instructions, and who it is (`serverInfo`)."""
    said = {"instructions": instructions, "serverInfo": info}
    told = {key: value for key, value in said.items() if value}
    return concluded(_found(strings(told, MAX_CHARS), customs)) if told else ()


def strings_of(definition: Mapping[str, Any]) -> Strings:
    """Return the strings of a definition that are inspected."""
    return strings(definition, MAX_CHARS)


def concluded(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings, the worst first, with a critical one on top where two grave families poison together."""
    grave = {f.category for f in found if at_least(f.severity, Severity.MEDIUM)} & GRAVE
    sure = {f.category for f in found if at_least(f.severity, Severity.HIGH)} & GRAVE
    if sure and len(grave) > 1:
        families = " and ".join(sorted(grave))
        whole = Finding("poisoned", Category.POISONING, Severity.CRITICAL, "$", f"{families} together")
        return bounded([whole, *found])
    return bounded(found)


def _found(read: Strings, customs: Sequence[Custom]) -> list[Finding]:
    plainly = read.texts
    texts = (*plainly, *unmasked(plainly))
    found = [
        *encoded(plainly),
        *invisible(texts, strict=True),
        *controls(texts, strict=True),
        *homoglyphs(texts, strict=True),
        *paths_in_definition(texts),
        *key_shapes(texts, Severity.HIGH),
        *links(texts, strict=True),
        *orders(IN_DEFINITIONS, texts, IN_PARAMETERS),
        *custom.find(customs, texts),
    ]
    found += phrases.find(PHRASES, texts, INDEX)
    if read.left_out:
        reason = f"longer than {MAX_CHARS} characters or nested too deeply: the rest was not read"
        found.append(Finding("too-large", Category.OVERSIZE, Severity.CRITICAL, "$", reason))
    return found
