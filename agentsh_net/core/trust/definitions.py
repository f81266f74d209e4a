"""What a server lists besides tools (prompts, resources, templates of them), pinned so that a change is told. It blocks nothing.

They come and go, a resource for each file perhaps: each is held against its own pin, and that there is another is no change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from agentsh_net.core.model import PinState
from agentsh_net.core.trust.identity import Aspect, Identity, Value
from agentsh_net.core.values import canonical

# Of one kind and server, the first that were seen; whoever lists more can push none of them out.
MAX_DEFINITIONS: Final = 2_000
# Characters of one definition that is kept: several times the longest of popular servers. Of a longer one there is a digest.
MAX_DEFINITION: Final = 8_192
# Characters of one page, names among them, after which nothing of it is kept: a worker's report has an end (core.links.link).
MAX_PAGE: Final = 2 << 20
# Likewise of a name: a URI of 2,000 is a long one.
MAX_NAME: Final = 4_096
# What changes with a resource's contents (2025-06-18, "resources"): no word of it is the server's.
_OF_CONTENTS: Final = frozenset(("size",))
_OF_ANNOTATIONS: Final = frozenset(("lastModified",))
# What stands for a long definition, or for several under one name; and the characters that this is.
_LENGTH, _SHA256, _DIGEST = "length", "sha256", 100


class Kind(NamedTuple):
    """Where an answer lists definitions, and what each is known by."""

    aspect: Aspect
    key: str
    name: str


# By the method that lists them.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "prompts/list": Kind(Aspect.PROMPTS, "prompts", "name"),
        "resources/list": Kind(Aspect.RESOURCES, "resources", "uri"),
        "resources/templates/list": Kind(Aspect.TEMPLATES, "resourceTemplates", "uriTemplate"),
    }
)


def read(method: str, result: Any) -> dict[str, Any]:
    """Return what a page of a list defines, by name, as it is pinned; what has no name, or too long a one, is left out."""
    kind = KINDS[method]
    listed = result.get(kind.key) if isinstance(result, Mapping) else None
    found: dict[str, Any] = {}
    left = MAX_PAGE
    for item in listed if isinstance(listed, list) else ():
        name = item.get(kind.name) if isinstance(item, Mapping) else None
        if not isinstance(name, str) or len(name) > MAX_NAME:
            continue
        if name not in found and (len(found) >= MAX_DEFINITIONS or left <= 0):
            continue
        pinned, length = _pinned(item)
        left -= len(name) + length
        if found.get(name, pinned) != pinned:  # nobody knows which of two a client takes
            pinned = {_SHA256: canonical.hash_of([found[name], pinned])}
        found[name] = pinned
    return found


def _pinned(item: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a definition as it is pinned, and the characters that this is."""
    kept = {k: v for k, v in item.items() if k not in _OF_CONTENTS}
    if isinstance(kept.get("annotations"), Mapping):
        kept["annotations"] = {k: v for k, v in kept["annotations"].items() if k not in _OF_ANNOTATIONS}
    text = canonical.text(kept)
    if len(text) <= MAX_DEFINITION:
        return kept, len(text)
    return {_LENGTH: len(text), _SHA256: canonical.hash_of(kept)}, _DIGEST


def unread(listed: Value) -> list[str]:
    """Return the names of definitions of which a digest is known alone."""
    return [name for name, definition in listed.items() if definition.keys() <= {_LENGTH, _SHA256}]


def seen(known: Identity | None, server_id: str, aspect: Aspect, listed: Value, *, trust_first: bool, now: str) -> Identity:  # fmt: skip
    """Return how a server's definitions stand now that these were seen; what was not listed this time stays known."""
    before = known or Identity(server_id, aspect, PinState.NEW)
    room = MAX_DEFINITIONS - len(before.offered)
    new = dict([(name, listed[name]) for name in listed if name not in before.offered][: max(0, room)])
    offered = {**before.offered, **{n: v for n, v in listed.items() if n in before.offered}, **new}
    pinned = {**before.pinned, **new} if trust_first else before.pinned
    stands = replace(before, pinned=pinned, offered=offered)
    at = now if pinned != before.pinned else before.trusted_at
    state = PinState.TRUSTED if offered.keys() <= pinned.keys() else PinState.NEW
    return replace(stands, state=PinState.CHANGED if changed(stands) else state, trusted_at=at)


def changed(stands: Identity | None) -> tuple[str, ...]:
    """Return the names whose definitions are not those that were trusted."""
    pinned, offered = (stands.pinned, stands.offered) if stands is not None else ({}, {})
    return tuple(n for n in pinned if n in offered and _differ(pinned[n], offered[n]))


def fresh(known: Identity | None, listed: Value) -> dict[str, Any]:
    """Return the definitions that are not what was seen last."""
    offered = known.offered if known is not None else {}
    return {n: v for n, v in listed.items() if n not in offered or _differ(offered[n], v)}


def _differ(one: Any, other: Any) -> bool:
    """Compare as text: to Python, 1, 1.0 and true are equal."""
    return one is not other and canonical.text(one) != canonical.text(other)
