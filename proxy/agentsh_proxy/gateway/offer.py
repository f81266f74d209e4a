"""What one client was shown of a server: its tools, page by page, and what it says of itself. Calls are held against it.

Which messages those are is the review's business.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final

from agentsh_net.apart import LONG, apart
from agentsh_net.core.mcp import gateway_http
from agentsh_net.core.mcp import judging as mcp_judging
from agentsh_net.core.mcp.gate import Call
from agentsh_net.core.mcp.jsonrpc import Response
from agentsh_net.core.mcp.listing import Listing, refused
from agentsh_net.core.mcp.standing import Standing
from agentsh_net.core.model import Transport, Verdict
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust import definitions, identity
from agentsh_net.core.trust.identity import Aspect
from agentsh_net.core.values.recent import remember
from agentsh_net.core.verdicts.policy import Charge
from agentsh_proxy.gateway.dependencies import Dependencies
from agentsh_proxy.gateway.view import Place

# Seconds a listing waits for the supervisor to take up new tools, so that calls are judged by them.
SETTLING: Final = 2.0
# Clients without a session of one server; past it who was heard longest ago begins anew.
MAX_UNNAMED: Final = 1024


class Offer:
    """A server's offer to one client."""

    __slots__ = (
        "_itself", "_known_by", "_own", "_paging", "_place", "_standing", "_worker", "facts", "listing", "server_id",
    )  # fmt: skip

    def __init__(self, worker: Dependencies, server_id: str, place: Callable[[], Place]) -> None:
        self.server_id = server_id
        self.listing = Listing(server_id)
        self.facts: Mapping[str, Any] = mcp_judging.NO_FACTS  # of the handshake
        self._own = Standing(server_id)
        self._known_by: tuple[Snapshot | None, Mapping[str, Any], Mapping[str, str]]
        self._known_by = (None, self.facts, self.listing.hashes)
        self._itself: Verdict | None = None  # by what `_known_by` says
        # Likewise, by tool; None: each call is judged for itself.
        self._standing: dict[str, Verdict | None] = {}
        self._paging = asyncio.Lock()
        self._worker = worker
        self._place = place

    def anew(self) -> Offer:
        """Return the offer to a client that was shown nothing yet."""
        return Offer(self._worker, self.server_id, self._place)

    def shown(self, snapshot: Snapshot) -> mcp_judging.Shown:
        """Return what blocks a tool because this client was shown it, or its server, otherwise than it is trusted."""
        self._look(snapshot)
        itself = self._itself
        return lambda tool: itself or self.listing.verdict(snapshot, tool)

    def judge(self, snapshot: Snapshot, call: Call, session_id: str, charge: Charge) -> Verdict:
        """Return the verdict on a call of this client. Where it holds for every call of the tool it is remembered."""
        self._look(snapshot)
        known = self._standing.get(call.tool)
        if known is not None:
            return known
        verdict = self.left_out(call.tool) or mcp_judging.judge_call(
            snapshot, self.shown(snapshot), self.server_id, call, session_id, charge
        )
        # Of tools that were seen: names of a client's making have no end.
        if call.tool not in self._standing and snapshot.registry.tool(self.server_id, call.tool) is not None:
            stands = snapshot.stands(mcp_judging.meant(self.server_id, call.tool))
            self._standing[call.tool] = verdict if stands else None
        return verdict

    def _look(self, snapshot: Snapshot) -> None:
        """Forget what was worked out by another policy, or before the server showed something else."""
        by = self._known_by
        if by[0] is not snapshot or by[1] is not self.facts or by[2] is not self.listing.hashes:
            self._known_by = snapshot, self.facts, self.listing.hashes
            self._itself = self._stands(snapshot)
            self._standing = {}

    def _stands(self, snapshot: Snapshot) -> Verdict | None:
        """Return the block of the server itself, by what it said in its handshake."""
        said = identity.instructions(self.facts["instructions"])
        seen: dict[Aspect, identity.Value | None] = {Aspect.INSTRUCTIONS: said} if self.facts["era"] else {}
        server = snapshot.registry.server(self.server_id)
        if server is not None and server.pin_binary:
            seen[Aspect.BINARY] = None  # only a shim says which program it starts: here nobody does
        return self._own.verdict(snapshot, seen)

    def left_out(self, tool: str) -> Verdict | None:
        """Return the verdict on a tool that `allow_tools` leaves out."""
        if self._place().offers(tool):
            return None
        rule = f"gateway.servers.{self.server_id}.allow_tools"
        return refused(self._worker.mcp, "the gateway does not offer this tool", rule)

    async def page(self, message: Response, size: int, *, continues: bool) -> None:
        """Take a page of the server's tools before the client sees it: what it calls next is judged by them. Raises ProtocolError."""
        async with self._paging:  # each page is added to those before it
            add = partial(self.listing.add, message, size, continues=continues)
            definitions = await apart(size, add, LONG)
        await self._take(definitions)

    def listed(self, method: str, found: Mapping[str, Any]) -> None:
        """Let the supervisor know of a page of what the server lists besides tools."""
        if found:
            aspect = definitions.KINDS[method].aspect
            self._worker.report({"server_id": self.server_id, "listed": {aspect.value: found}})

    def hidden(self, definitions: list[Any]) -> tuple[int, ...]:
        """Return the positions of the tools that the client does not get to see."""
        hidden: set[int] = set()
        if self._place().settings.hide_denied:
            snapshot = self._worker.snapshot()
            denied = mcp_judging.denied(snapshot, self.shown(snapshot), self.server_id, definitions)
            hidden.update(denied)
        for position, definition in enumerate(definitions):
            verdict = self.left_out(definition["name"])
            if verdict is not None and verdict.blocked:
                hidden.add(position)
        return tuple(sorted(hidden))

    async def _take(self, definitions: list[dict[str, Any]]) -> None:
        """Let the registry know of tools that it does not know as they are, and wait until it does."""
        if self._known():
            return
        server = self._worker.snapshot().registry.server(self.server_id)
        if server is None:
            return  # a policy later it is not declared any more
        # Another credential may be offered less: only what a server lists to everybody alike can tell what is gone.
        partial = server.transport is not Transport.STDIO or self.listing.partial
        self._worker.report(
            {"server_id": self.server_id, "ok": True, "error": "", "tools": definitions, "partial": partial, **self.facts}
            | {"transport": server.transport.value, "tls_fingerprint": ""}
        )  # fmt: skip
        try:
            async with asyncio.timeout(SETTLING):
                while not self._known():
                    await self._worker.changed()
        except TimeoutError:
            return  # the registry refuses them, or the supervisor is busy: the listing itself still refuses what is not pinned

    def _known(self) -> bool:
        registry = self._worker.snapshot().registry
        return all(
            (tool := registry.tool(self.server_id, name)) is not None and tool.hash == shown
            for name, shown in self.listing.hashes.items()
        )


class Unnamed:
    """The offers to clients without a session, by all that is known of who asks: its agent's session, credentials and name."""

    def __init__(self) -> None:
        self._offers: OrderedDict[tuple[str, bytes], Offer] = OrderedDict()

    def known(self, session_id: str, fields: Mapping[str, str], new: Offer) -> Offer:
        """Return the offer to whom a request's fields name; `new`, from now on, if it has none yet."""
        key = _asker(session_id, fields)
        return self._kept(key, self._offers.get(key, new))

    def keep(self, session_id: str, fields: Mapping[str, str], offer: Offer) -> None:
        """Remember another offer to somebody, for the requests that follow."""
        self._kept(_asker(session_id, fields), offer)

    def _kept(self, key: tuple[str, bytes], offer: Offer) -> Offer:
        offer.listing.mixed = True
        remember(self._offers, key, offer, MAX_UNNAMED)
        return offer


def _asker(session_id: str, fields: Mapping[str, str]) -> tuple[str, bytes]:
    said = f"{fields.get('user-agent', '')}\n{gateway_http.credentials(fields)}"
    return session_id, sha256(said.encode("latin-1")).digest()
