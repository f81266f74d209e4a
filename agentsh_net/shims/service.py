"""Where shims ask: who is there, in front of which server, and whose listing of its tools counts.

What is answered to one of them is `handler`'s business; how they get in is `control.shim_server`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from agentsh_net.control.peer import Peer
from agentsh_net.core.audit import events
from agentsh_net.core.configuration.scalars import MAX_ID
from agentsh_net.core.configuration.settings import CustomPattern, Inspection
from agentsh_net.core.inspect.custom import Custom, compiled
from agentsh_net.core.links.shim_link import LinkError
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.trust import definitions, identity
from agentsh_net.core.values import canonical
from agentsh_net.shims.dependencies import Dependencies
from agentsh_net.shims.handler import ShimHandler

MAX_PATH = 4096  # characters of a path (Linux: PATH_MAX)

# What calls came to of which there is no event, by the name that an opening tells their number under.
_MISSED: Final = {
    "unjudged": "passed unjudged while the daemon was away (fail_closed is false)",
    "refused": "were refused while the daemon was away (fail_closed)",
    "unrecorded": "were allowed and perhaps not recorded: the daemon ended",
}


class ShimService:
    """The shims that are connected, and what they have in common."""

    def __init__(self, daemon: Dependencies) -> None:
        self.daemon = daemon
        self._handlers: set[ShimHandler] = set()
        # Folded server id -> what was taken last, by which snapshot.
        self._taken: dict[str, tuple[str, int]] = {}
        self._customs: tuple[tuple[CustomPattern, ...], tuple[Custom, ...]] = (), ()
        self._owners: dict[str, int] = {}  # folded server id -> the user whose listings count

    def begin(self, peer: Peer, opening: Mapping[str, Any], *, trusted: bool) -> ShimHandler:
        """Let a shim in; `trusted`: its user may control the daemon. Raises LinkError for an opening that is none."""
        match opening:
            case {
                "server": str(server_id),
                "session": str(token),
                "hide": bool(hide),
                "unjudged": int(),
            }:
                pass
            case _:
                raise LinkError("an opening without server, session, hide and unjudged")
        binary = _binary(opening.get("binary"))
        if not 0 < len(server_id) <= MAX_ID:
            raise LinkError(f"a server id has 1 to {MAX_ID} characters")
        server_id = self.daemon.snapshot().registry.canonical_id(server_id)
        counts = opening.get("counts") is True
        handler = ShimHandler(
            self,
            peer,
            server_id,
            self.daemon.session(token, peer),
            hide=hide,
            trusted=trusted,
            binary=binary,
            counts=counts,
        )
        self._handlers.add(handler)
        for name, what in _MISSED.items():
            match opening.get(name):
                case int(count) if count > 0:
                    self._tell_lost(handler, count, what)
        return handler

    def takes_news(self) -> bool:
        """Say whether there is room on record for more calls."""
        return self.daemon.takes_news()

    def end(self, handler: ShimHandler) -> None:
        """Forget a shim that went away."""
        self._handlers.discard(handler)

    def describe(self) -> list[dict[str, Any]]:
        """Return who is there, for `status`."""
        return [
            {"server_id": v.server_id, "session_id": v.session_id, "pid": v.peer.pid, "uid": v.peer.uid}
            for v in sorted(self._handlers, key=lambda v: (v.server_id, v.peer.pid))
        ]

    def customs(self, inspection: Inspection) -> tuple[Custom, ...]:
        """Return the operator's own detectors, compiled once for all shims."""
        if self._customs[0] != inspection.custom_patterns:
            self._customs = inspection.custom_patterns, compiled(inspection.custom_patterns)
        return self._customs[1]

    def may_list(self, handler: ShimHandler) -> bool:
        """Say whether what a shim saw listed counts for everybody.

        Any local user can start a shim in front of anything and name it as they like: the first user whose server
        lists its tools is the one whose listings count, until the daemon ends or somebody who controls it steps in.
        """
        server = fold(handler.server_id)
        if self.daemon.snapshot().registry.server(server) is None:
            return False  # the registry keeps declared servers only
        if handler.trusted:
            self._owners[server] = handler.peer.uid
        owner = self._owners.setdefault(server, handler.peer.uid)
        if owner != handler.peer.uid:
            who = f"uid {handler.peer.uid} (pid {handler.peer.pid})"
            self.daemon.warn(
                f"{visible(handler.server_id)}: the tools that {who} lists are not taken for everybody's: uid {owner} was first"
            )
        return owner == handler.peer.uid

    def listed_elsewhere(self, handler: ShimHandler) -> set[str]:
        """Return what the same user's other shims before this server saw: a server may offer more to another client."""
        same = (v for v in self._handlers if v is not handler and v.peer.uid == handler.peer.uid)
        return {
            name for v in same if fold(v.server_id) == fold(handler.server_id) for name in v.listing.hashes
        }

    async def take(
        self, handler: ShimHandler, definitions: list[dict[str, Any]], facts: Mapping[str, Any]
    ) -> None:
        """Hand what a server lists on to the registry, unless it is there already."""
        if not self.may_list(handler):
            return
        registry = self.daemon.snapshot().registry
        named = {definition["name"] for definition in definitions}
        elsewhere = self.listed_elsewhere(handler)
        kept = (t for t in registry.tools_of(handler.server_id) if t.name not in named)
        definitions = definitions + [
            dict(t.definition) for t in kept if handler.listing.partial or t.name in elsewhere
        ]
        mark = await asyncio.to_thread(canonical.hash_of, [definitions, dict(facts)])
        if self._taken.get(fold(handler.server_id)) == (mark, self.daemon.snapshot().generation):
            return
        await self.daemon.take(
            {"server_id": handler.server_id, "ok": True, "error": "", "tools": definitions, **facts}
            | {"transport": "stdio", "tls_fingerprint": ""}
        )
        self._taken[fold(handler.server_id)] = (mark, self.daemon.snapshot().generation)

    async def list_others(self, handler: ShimHandler, method: str, result: Any) -> None:
        """Hand on what a server lists besides tools."""
        found = await asyncio.to_thread(definitions.read, method, result)
        if found and self.may_list(handler):
            aspect = definitions.KINDS[method].aspect
            await self.daemon.take({"server_id": handler.server_id, "listed": {aspect.value: found}})

    async def recognise(self, handler: ShimHandler) -> None:
        """Hand on which program a shim is about to start, so that it counts for everybody."""
        if handler.binary is not None and self.may_list(handler):
            await self.daemon.recognise({"server_id": handler.server_id, "binary": handler.binary})

    def _tell_lost(self, handler: ShimHandler, count: int, what: str) -> None:
        self.daemon.emit(
            events.EventsLost(
                layer="shim",
                lost=count,
                session_id=handler.session_id,
                reason=f"tools/call of {visible(handler.server_id)} that {what}",
            )
        )


def _binary(facts: Any) -> Mapping[str, Any] | None:
    """Return which program a shim says that it starts, checked and bounded; None where it does not say. Raises LinkError."""
    match facts:
        case None:
            return None
        case {"executable": str(executable), "sha256": str(digest), "scripts": list(listed)}:
            scripts = [_script(script) for script in listed[: identity.MAX_SCRIPTS]]
            return identity.binary(_path(executable), _path(digest), scripts)
    raise LinkError("a binary that is none")


def _script(value: Any) -> tuple[str, str]:
    match value:
        case {"path": str(path), "sha256": str(digest)}:
            return _path(path), _path(digest)
    raise LinkError("a script that is none")


def _path(text: str) -> str:
    if len(text) > MAX_PATH:
        raise LinkError(f"a path of more than {MAX_PATH} characters")
    return text.encode("utf-8", "backslashreplace").decode()
