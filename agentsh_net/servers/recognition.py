"""What was seen of servers themselves: from reports of discovery and shims to the board of pins, and events.

It decides by core.trust.identity and keeps nothing itself. What a server's tools become is `inventory`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.audit import events
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.settings import VersionPinning
from agentsh_net.core.model import PinState, Server
from agentsh_net.core.trust import identity, pins
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins
from agentsh_net.core.values.differences import between
from agentsh_net.core.verdicts.rules import ROOT
from agentsh_net.core.verdicts.steps import ASPECTS


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a report led to: the board, and what is new on it."""

    pins: Pins
    saved: tuple[Identity, ...] = ()
    events: tuple[Event, ...] = ()


def offered(report: Mapping[str, Any], server: Server) -> dict[Aspect, identity.Value]:
    """Return what a report says of the server itself; what it does not speak of was not seen."""
    seen: dict[Aspect, identity.Value] = {}
    if report.get("tls_fingerprint"):
        seen[Aspect.TLS] = identity.tls(str(report["tls_fingerprint"]), str(report.get("tls_public_key", "")))
    if report.get("era") and isinstance(report.get("instructions"), str):  # a handshake was seen
        seen[Aspect.INSTRUCTIONS] = identity.instructions(report["instructions"])
    if isinstance(report.get("binary"), Mapping):
        seen[Aspect.BINARY] = report["binary"]
    return {aspect: value for aspect, value in seen.items() if identity.wanted(server, aspect)}


def recognise(
    seen: Mapping[Aspect, identity.Value], server: Server, board: Pins, pinning: VersionPinning, now: str
) -> Recognised:
    """Hold what was seen of a server against what is trusted; nothing comes of what is as it was."""
    trust_first = pinning.enabled and pinning.auto_trust_first
    saved, told = [], []
    for aspect, value in seen.items():
        known = board.identity(server.id, aspect)
        stands = identity.seen(known, server, aspect, value, trust_first=trust_first, now=now)
        if stands == known:
            continue
        saved.append(stands)
        event = _event(known, stands, pinning)
        if event is not None:
            told.append(event)
    return Recognised(board.with_identities(saved) if saved else board, tuple(saved), tuple(told))


def _event(known: Identity | None, stands: Identity, pinning: VersionPinning) -> Event | None:
    """Return what is told of a change: nothing of a server that says nothing, nor of a renewal that changes nothing."""
    what = f"the {ASPECTS[stands.aspect]} of server {stands.server_id}"
    told: dict[str, Any] = {
        "server_id": stands.server_id,
        "aspect": stands.aspect.value,
        "digest": identity.mark(stands.aspect, stands.offered),
        "previous_digest": identity.mark(stands.aspect, stands.pinned),
        "rule": f"{ROOT}.servers" if stands.declared else f"{ROOT}.version_pinning",
    }
    blocks = stands.declared or pins.effect(stands.state, pinning) is pins.PinEffect.BLOCK
    calls = f"calls {'are blocked' if blocks else 'pass'}"
    if stands.state is PinState.CHANGED:
        told["changes"] = [d.to_json() for d in between(stands.pinned, stands.offered)]
        told["action"] = "block" if blocks else "allow"
        return events.ServerChanged(**told, reason=f"{what} changed since it was trusted: {calls}")
    if known is not None and known.state is PinState.CHANGED:
        return events.ServerSeen(**told, reason=f"{what} is again what was trusted")
    if known is None and stands.offered not in ({"text": ""}, {}):
        trusted = stands.state is PinState.TRUSTED and not stands.declared
        note = "trusted as it is (auto_trust_first)" if trusted else f"{stands.state}, {calls}"
        return events.ServerSeen(
            **told, reason=f"{what} was seen: {note if not stands.declared else 'as declared'}"
        )
    return None
