"""Which version of a tool is trusted: the hash of a whole definition, the board of pins, and what a new or changed one means.

Pure: the pin store writes what is decided here, and the clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from agentsh_net.core.configuration.settings import VersionPinning
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import params as mcp_params
from agentsh_net.core.model import PinState, Tool
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.trust import outline
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.values import canonical
from agentsh_net.core.values.differences import Difference, between

# `execution` exists in one protocol revision only: hashing it would call every tool changed when a server moves on.
UNPINNED = frozenset({"execution"})


_ASPECTS: Final = tuple(Aspect)


class PinEffect(StrEnum):
    """What pinning makes of a call."""

    PASS = "pass"  # noqa: S105 - no password
    ALERT = "alert"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Pin:
    """The version of a tool that was recorded. `state` is NEW until somebody trusts it; `trusted_at` is RFC 3339, UTC."""

    server_id: str
    tool: str
    hash: str
    definition: Mapping[str, Any] = field(default_factory=dict, repr=False)
    state: PinState = PinState.TRUSTED
    trusted_at: str = ""


@dataclass(frozen=True, slots=True)
class Pins:
    """All pins, frozen. Keys are (folded server id, tool name as the server writes it), for servers (folded id, aspect)."""

    entries: Mapping[tuple[str, str], Pin] = field(default_factory=dict)
    identities: Mapping[tuple[str, Aspect], Identity] = field(default_factory=dict)

    @classmethod
    def of(cls, pins: Iterable[Pin], identities: Iterable[Identity] = ()) -> Pins:
        """Return the board of these pins; of two for one tool the later counts."""
        return cls(
            MappingProxyType({_key(p.server_id, p.tool): p for p in pins}),
            MappingProxyType({(fold(i.server_id), i.aspect): i for i in identities}),
        )

    def get(self, server_id: str, tool: str) -> Pin | None:
        """Return the pin of a tool, or None."""
        return self.entries.get(_key(server_id, tool))

    def of_server(self, server_id: str) -> tuple[Pin, ...]:
        """Return the pins of a server's tools."""
        server = fold(server_id)
        return tuple(pin for (of, _), pin in self.entries.items() if of == server)

    def lookup(self, server_id: str, tool: str, tool_hash: str) -> PinState:
        """Say how a definition with this hash stands to the pin of its tool."""
        pin = self.get(server_id, tool)
        if pin is None or pin.state is PinState.NEW:
            return PinState.NEW
        return PinState.TRUSTED if pin.hash == tool_hash else PinState.CHANGED

    def with_pins(self, pins: Iterable[Pin]) -> Pins:
        """Return the board with these pins set."""
        return replace(self, entries=MappingProxyType({**self.entries, **Pins.of(pins).entries}))

    def without(self, server_id: str, tool: str) -> Pins:
        """Return the board without the pin of a tool (`mcp pins reset`)."""
        key = _key(server_id, tool)
        return replace(self, entries=MappingProxyType({k: p for k, p in self.entries.items() if k != key}))

    def identity(self, server_id: str, aspect: Aspect) -> Identity | None:
        """Return how an aspect of a server stands, or None where nothing was seen of it."""
        return self.identities.get((fold(server_id), aspect))

    def identities_of(self, server_id: str) -> tuple[Identity, ...]:
        """Return what is known of a server itself."""
        server = fold(server_id)
        own = [self.identities.get((server, aspect)) for aspect in _ASPECTS]
        return tuple(known for known in own if known is not None)

    def with_identities(self, identities: Iterable[Identity]) -> Pins:
        """Return the board with these identities set."""
        return replace(
            self, identities=MappingProxyType({**self.identities, **Pins.of((), identities).identities})
        )


def _key(server_id: str, tool: str) -> tuple[str, str]:
    return fold(server_id), tool


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return `sha256:<hex>` over every field of a definition, unknown ones too, but those of UNPINNED."""
    return canonical.hash_of({k: v for k, v in definition.items() if k not in UNPINNED})


def listed_tool(server_id: str, definition: Mapping[str, Any]) -> Tool:
    """Return the tool a server's definition describes, as far as pins go. Raises ProtocolError where it has no usable name."""
    name = definition.get("name")
    if not isinstance(name, str) or not fold(name):
        raise ProtocolError("a tool definition without a name")
    return Tool(server_id, name, definition_hash(definition), definition)


def tool_of(server_id: str, definition: Mapping[str, Any]) -> Tool:
    """Return it with what requests of agents are held against, too: half of the time that it costs."""
    return replace(
        listed_tool(server_id, definition),
        outline=outline.of_definition(definition),
        mirrored=mcp_params.annotated(definition.get("inputSchema")),
    )


def trust(tool: Tool, now: str) -> Pin:
    """Return the pin that trusts a tool as it is."""
    return Pin(tool.server_id, tool.name, tool.hash, tool.definition, PinState.TRUSTED, now)


def trust_first(pins: Pins, tools: Iterable[Tool], now: str) -> tuple[Pins, tuple[Pin, ...]]:
    """Trust what has no pin yet (`auto_trust_first`); return the new board and the pins to be stored and told of.

    A tool that is recorded but untrusted stays so: somebody has to look at it.
    """
    added = tuple(trust(tool, now) for tool in tools if pins.get(tool.server_id, tool.name) is None)
    return (pins.with_pins(added) if added else pins), added


def effect(state: PinState, pinning: VersionPinning) -> PinEffect:
    """Say what pinning makes of a call to a tool in this state."""
    if not pinning.enabled or state is PinState.TRUSTED:
        return PinEffect.PASS
    if state is PinState.NEW:
        return PinEffect.ALERT if pinning.auto_trust_first else PinEffect.BLOCK
    match pinning.on_change:
        case "allow":
            return PinEffect.PASS
        case "alert":
            return PinEffect.ALERT
        case _:
            return PinEffect.BLOCK


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the pinned fields in which two definitions differ."""
    return between(*({k: v for k, v in d.items() if k not in UNPINNED} for d in (old, new)))
