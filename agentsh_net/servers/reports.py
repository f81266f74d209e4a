"""What discovery and shims report of servers, put in force, told and stored.

What a report means is `inventory`'s and `recognition`'s business; what is in force is `current`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import filterfalse
from typing import Any, Final

from agentsh_net.audit.flood import Flood
from agentsh_net.clock import now_rfc3339
from agentsh_net.core.audit.events import Event
from agentsh_net.core.errors import ProtocolError, StoreError
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.trust.pins import Pins
from agentsh_net.current import Current
from agentsh_net.servers import inventory, lists, recognition
from agentsh_net.servers.inventory import Taken
from agentsh_net.servers.recognition import Recognised
from agentsh_net.store import records
from agentsh_net.store.writer import Writer

Report = Mapping[str, Any]

# Events about the tools of one server: twice as many as it may list at once, and a second for good.
CHANGES: Final = 2 * inventory.MAX_TOOLS
CHANGE_RATE: Final = 1.0


class Reports:
    """Takes one report at a time, with what is in force locked."""

    def __init__(
        self, current: Current, writer: Writer, *, emit: Callable[[Event], None], log: logging.Logger
    ) -> None:
        self._current = current
        self._writer = writer
        self._emit = emit
        self._log = log
        self._floods: dict[str, Flood] = {}
        self.last: dict[str, Report] = {}  # server id -> what was reported of it last, without the tools
        self._strangers: set[str] = set()  # whom `introduced` waits for
        self._all_known = asyncio.Event()

    async def introduced(self, *, anew: bool = False) -> None:
        """Return when every server that is asked for its tools has been heard of, be it that it does not answer.

        What was heard earlier counts too, unless they are all asked `anew`.
        """
        self._strangers = set(self._asked() if anew else filterfalse(self._known, self._asked()))
        self._all_known.clear()
        if self._strangers:
            await self._all_known.wait()

    async def take(self, report: Report) -> None:
        """Take what is said of a server's tools, or of what else it lists."""
        if "listed" in report:
            await self.take_lists(report)
            return
        async with self._current.lock:
            server = self._server(report)
            if server is None:
                return
            try:
                await self._take(report, server)
            finally:
                self._heard(server)

    async def take_lists(self, report: Report) -> None:
        """Take what a server lists besides tools. In a thread, as tools are; no verdict rests on it, so nobody has to hear of it."""
        current, pinning = self._current, self._current.snapshot.config.sandbox.mcp.version_pinning
        async with current.lock:
            server = self._server(report)
            if server is None:
                return
            found = await asyncio.to_thread(
                lists.take, lists.offered(report), server, current.snapshot.pins, pinning, now_rfc3339(), current.inspector.customs,
            )  # fmt: skip
            if found.saved:
                current.note(found.pins)
            await self._told(server, found)

    async def recognise(self, report: Report) -> None:
        """Take what a report says of a server itself: who it is, not what it offers."""
        async with self._current.lock:
            server = self._server(report)
            if server is not None:
                await self._recognise(report, server)

    def _asked(self) -> Iterator[str]:
        """Yield the servers that discovery asks."""
        snapshot = self._current.snapshot
        for server in snapshot.registry.servers:
            if server.transport is not Transport.STDIO and not snapshot.judge_server(server.id).denied:
                yield server.id

    def _known(self, server_id: str) -> bool:
        return server_id in self.last or bool(self._current.snapshot.registry.tools_of(server_id))

    def _heard(self, server: Server) -> None:
        self._strangers.discard(server.id)
        if not self._strangers:
            self._all_known.set()

    async def _take(self, report: Report, server: Server) -> None:
        if report.get("partial"):
            report = self._completed(server.id, report)
        else:
            self._note(server.id, report)
        if not report.get("ok"):
            await self._recognise(report, server)  # it may have failed because the server is another
            return
        try:
            taken = await self._taken(report)
        except ProtocolError as error:  # what was known of the server stays in force
            self._note(server.id, {**report, "ok": False, "error": str(error)})
            return
        await self._put(report, server, taken)

    def _server(self, report: Report) -> Server | None:
        """Return whom a report is about; nobody where a policy later it is not declared any more."""
        return self._current.snapshot.registry.server(str(report.get("server_id")))

    def _note(self, server_id: str, report: Report) -> None:
        before = self.last.get(server_id, {})
        self.last[server_id] = {k: v for k, v in report.items() if k not in {"tools", "instructions"}}
        error = report.get("error")
        if not report.get("ok") and error != before.get("error"):  # what fails again and again is in `status`
            self._log.warning("%s: its tools cannot be listed: %s", server_id, error)
        unlisted = report.get("unlisted")
        if unlisted and unlisted != before.get("unlisted"):
            self._log.warning("%s: not all it offers can be listed: %s", server_id, unlisted)

    def _completed(self, server_id: str, report: Report) -> Report:
        """Return what one client was shown with the rest of what is known, which stays."""
        shown = [tool for tool in report.get("tools") or () if isinstance(tool, dict)]
        named = {tool.get("name") for tool in shown}
        known = self._current.snapshot.registry.tools_of(server_id)
        return {**report, "tools": [*shown, *(dict(t.definition) for t in known if t.name not in named)]}

    async def _taken(self, report: Report) -> Taken:
        """Return what a report leads to. In a thread: a hostile server's definitions may take seconds to inspect."""
        snapshot, inspector = self._current.snapshot, self._current.inspector
        pinning = snapshot.config.sandbox.mcp.version_pinning
        return await asyncio.to_thread(
            inventory.take, report, snapshot.registry, snapshot.pins, pinning, now_rfc3339(), inspector
        )

    async def _put(self, report: Report, server: Server, taken: Taken) -> None:
        known = self._recognised(report, server, taken.pins)
        identities = records.save_identities(known.saved, by="auto_trust_first")
        stored = self._writer.change([*inventory.rows(taken, now_rfc3339()), *identities])
        if taken.changes or taken.saved_pins or taken.judged_anew or known.saved:
            await self._current.know(registry=taken.registry, pins=known.pins)
        self._tell(server, (*known.events, *taken.events))
        try:
            await asyncio.wrap_future(stored)
        except StoreError as error:
            self._log.error("%s: its tools are in force but not stored: %s", server.id, error)

    async def _recognise(self, report: Report, server: Server) -> None:
        known = self._recognised(report, server, self._current.snapshot.pins)
        if known.saved:
            await self._current.know(pins=known.pins)
        await self._told(server, known)

    async def _told(self, server: Server, known: Recognised) -> None:
        """Tell of what is new about a server, and store it."""
        self._tell(server, known.events)
        try:
            rows = records.save_identities(known.saved, by="auto_trust_first")
            await asyncio.wrap_future(self._writer.change(rows))
        except StoreError as error:
            self._log.error("%s: who it is is in force but not stored: %s", server.id, error)

    def _recognised(self, report: Report, server: Server, board: Pins) -> Recognised:
        pinning = self._current.snapshot.config.sandbox.mcp.version_pinning
        seen = recognition.offered(report, server)
        return recognition.recognise(seen, server, board, pinning, now_rfc3339())

    def _tell(self, server: Server, told: Iterable[Event]) -> None:
        """Emit how servers and tools stand to their pins; in audit mode nothing is blocked."""
        flood = self._floods.get(server.id)
        if flood is None:
            flood = Flood(self._emit, server.id, layer="discovery", burst=CHANGES, rate=CHANGE_RATE)
            self._floods[server.id] = flood
        audits = not self._current.snapshot.config.sandbox.mcp.enforce_policy
        for event in told:
            would_block = audits and event.action == "block"
            flood.tell(replace(event, action="allow", would="block") if would_block else event)
