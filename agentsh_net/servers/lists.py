"""What servers list besides tools (prompts, resources, templates): from reports to the board of pins, and events.

It decides by core.trust.definitions and keeps nothing itself. No verdict rests on it: a change is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agentsh_net.core.audit import events
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.settings import VersionPinning
from agentsh_net.core.inspect.contents import inspect_content
from agentsh_net.core.inspect.custom import Custom
from agentsh_net.core.inspect.findings import Category, Finding, Severity, worst
from agentsh_net.core.model import PinState, Server
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.trust import definitions, identity
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins
from agentsh_net.core.values.differences import between, dotted
from agentsh_net.core.verdicts.rules import ROOT
from agentsh_net.servers.recognition import Recognised

MAX_NAMED: Final = 5  # in a reason; `changes` has more
MAX_NAME: Final = 100  # characters of each


def offered(report: Mapping[str, Any]) -> dict[Aspect, identity.Value]:
    """Return what a report says that a server lists besides tools."""
    listed = report.get("listed")
    found = listed.items() if isinstance(listed, Mapping) else ()
    return {
        Aspect(kind): {name: each for name, each in value.items() if isinstance(each, Mapping)}
        for kind, value in found
        if kind in identity.LISTED and isinstance(value, Mapping)
    }


def take(
    seen: Mapping[Aspect, identity.Value],
    server: Server,
    board: Pins,
    pinning: VersionPinning,
    now: str,
    customs: Sequence[Custom] = (),
) -> Recognised:
    """Hold what a server lists against what is trusted, and inspect what of it is new; nothing comes of what is as it was."""
    trust_first = pinning.enabled and pinning.auto_trust_first
    saved, told = [], []
    for aspect, value in seen.items():
        known = board.identity(server.id, aspect)
        fresh = definitions.fresh(known, value)
        if not fresh:
            continue
        stands = definitions.seen(known, server.id, aspect, fresh, trust_first=trust_first, now=now)
        if stands != known:
            saved.append(stands)
        event = _event(known, stands, fresh, (*inspect_content(fresh, customs), *_unread(fresh)))
        if event is not None:
            told.append(event)
    return Recognised(board.with_identities(saved) if saved else board, tuple(saved), tuple(told))


def _unread(fresh: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what stands for definitions that are not kept, and so not inspected: whoever wrote them may have wished for that."""
    for name in definitions.unread(fresh):
        why = f"longer than {definitions.MAX_DEFINITION} characters, or listed in two ways: it was not read"
        yield Finding("too-large", Category.OVERSIZE, Severity.MEDIUM, dotted((name,)), why)


def _event(
    known: Identity | None, stands: Identity, fresh: Iterable[str], found: Sequence[Finding]
) -> Event | None:
    """Return what is told: of a first list, of changes, of what is again as it was, and wherever something was found."""
    what = f"{stands.aspect.value.replace('_', ' ')} of server {stands.server_id}"
    changed = definitions.changed(stands)
    told: dict[str, Any] = {
        "server_id": stands.server_id,
        "aspect": stands.aspect.value,
        "digest": identity.mark(stands.aspect, stands.offered),
        "previous_digest": identity.mark(stands.aspect, stands.pinned),
        "rule": f"{ROOT}.version_pinning",
        "detections": [finding.to_json() for finding in found],
        "max_severity": worst(found),
    }
    if news := [name for name in changed if name in fresh]:
        pinned, now = ({name: of[name] for name in news} for of in (stands.pinned, stands.offered))
        told["changes"] = [difference.to_json() for difference in between(pinned, now)]
        named = ", ".join(visible(name, MAX_NAME) for name in news[:MAX_NAMED])
        more = f" and {len(news) - MAX_NAMED} more" if len(news) > MAX_NAMED else ""
        return events.ServerChanged(**told, reason=f"{what} changed since they were trusted: {named}{more}")
    if not changed and definitions.changed(known):
        return events.ServerSeen(**told, reason=f"{what} are again what was trusted")
    if known is None or found:
        has = f", with findings up to {worst(found)}" if found else ""
        trusted = stands.state is PinState.TRUSTED
        note = "trusted as they are (auto_trust_first)" if trusted else str(stands.state)
        return events.ServerSeen(**told, reason=f"{what} were seen{has}: {note}")
    return None
