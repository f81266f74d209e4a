"""The shim service over a snapshot of the test's: shims are let in, their questions answered, and what was told is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from situations import situation

from agentsh_net.control.peer import Peer
from agentsh_net.core.audit.drafts import Sheet
from agentsh_net.core.audit.events import DEFAULT_SESSION
from agentsh_net.core.audit.joining import Intents
from agentsh_net.core.links.shim_link import Frames
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.servers import inventory, recognition
from agentsh_net.shims.dependencies import Dependencies
from agentsh_net.shims.handler import ShimHandler
from agentsh_net.shims.service import ShimService


def message(method: str, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def call(tool: str, id_: Any = 1, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", id_, name=tool, arguments=arguments)


def result(id_: Any = 1, **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": fields}


def tools(*definitions: Any) -> list[dict[str, Any]]:
    return [{"name": d, "inputSchema": {"type": "object"}} if isinstance(d, str) else d for d in definitions]


class Answered:
    """An answer of the daemon, read as the shim reads it. `line` None: nothing goes on."""

    def __init__(self, data: bytes, line: bytes) -> None:
        frames = list(Frames().feed(data))
        self.revoked = any(header["do"] == "revoke" for header, _ in frames)
        self.header, payload = frames[-1] if frames else ({"do": ""}, b"")
        self.passed = self.header["do"] == "pass"
        edit = json.loads(payload) if payload else {"forward": None, "replies": []}
        self.line = line if self.passed else edit["forward"] and edit["forward"].encode()
        self.replies = [json.loads(reply) for reply in edit["replies"]]

    @property
    def stands(self) -> bool:
        return self.header.get("stands") is True

    @property
    def forwarded(self) -> Any:
        return json.loads(self.line) if self.line else None


class Front:
    def __init__(
        self, ids: Iterable[str] = ("fs",), offers: Mapping[str, Iterable[Any]] | None = None, **mcp: Any
    ) -> None:
        self.snapshot: Snapshot = situation(ids, offers, pins=mcp.pop("pins", Pins()), **mcp)
        self.events: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.reports: list[Mapping[str, Any]] = []
        self.charged: list[str] = []
        self.left = 1000  # calls within the rate
        self.now = 0.0
        self.room = True  # on record
        self.sheets = 0  # that were recorded
        self.tokens: dict[str, str] = {}
        self.intents = Intents()
        needs = Dependencies(
            snapshot=lambda: self.snapshot, take=self._take, recognise=self._recognise, within=self._within, warn=self.warnings.append,
            emit=lambda event: self.events.append(event.to_json()), record=lambda events, _: self.events.extend(events), record_sheet=self._record_sheet, takes_news=lambda: self.room, session=lambda token, _: self.tokens.get(token, DEFAULT_SESSION),
            awaits=self.intents.awaits, claim=lambda *asked: self.intents.claim(*asked, self.now),
        )  # fmt: skip
        self.shims = ShimService(needs)

    def _record_sheet(self, sheet: Sheet) -> None:
        self.sheets += 1
        events = sheet.events()
        assert [json.loads(row[-1]) for row in sheet.rows()] == events
        self.events += events

    def enter(self, server: str = "fs", *, hide: bool = False, uid: int = 1000, trusted: bool = False, session: str = "", unjudged: int = 0, **more: Any) -> ShimHandler:  # fmt: skip
        opening = {
            "ask": "open",
            "server": server,
            "session": session,
            "hide": hide,
            "unjudged": unjudged,
        } | more
        return self.shims.begin(Peer(4711, uid, uid), opening, trusted=trusted)

    def client(self, handler: ShimHandler, value: Any) -> Answered:
        return self._ask(handler, {"ask": "client"}, value)

    def called(self, handler: ShimHandler, value: Any) -> Answered:
        return self._ask(handler, {"ask": "called"}, value)

    def server(self, handler: ShimHandler, value: Any, *asked: list[Any], stray: bool = False) -> Answered:
        padded = [[*item, ""] if len(item) == 4 else item for item in asked]
        return self._ask(handler, {"ask": "server", "asked": padded, "stray": stray}, value)

    def listed(
        self, handler: ShimHandler, *definitions: Any, continues: bool = False, **more: Any
    ) -> Answered:
        """Answer a tools/list."""
        answer = result(7, tools=tools(*definitions), **more)
        return self.server(handler, answer, [0, 7, "tools/list", continues])

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def _ask(self, handler: ShimHandler, header: dict[str, Any], value: Any) -> Answered:
        line = value if isinstance(value, bytes) else json.dumps(value).encode()
        answer = handler.answer(header, line)
        if isinstance(answer, bytes):
            return Answered(answer, line)

        async def later() -> bytes:
            return await answer

        return Answered(asyncio.run(later()), line)

    async def _take(self, report: Mapping[str, Any]) -> None:
        self.reports.append(report)
        pinning = self.snapshot.config.sandbox.mcp.version_pinning
        if "listed" in report:
            return
        taken = inventory.take(
            report, self.snapshot.registry, self.snapshot.pins, pinning, "2026-01-01T00:00:00Z"
        )
        self.snapshot = self.snapshot.evolve(registry=taken.registry, pins=taken.pins)

    async def _recognise(self, report: Mapping[str, Any]) -> None:
        server = self.snapshot.registry.server(report["server_id"])
        assert server is not None
        pinning = self.snapshot.config.sandbox.mcp.version_pinning
        seen = recognition.offered(report, server)
        known = recognition.recognise(seen, server, self.snapshot.pins, pinning, "2026-01-01T00:00:00Z")
        self.snapshot = self.snapshot.evolve(pins=known.pins)
        self.events += [event.to_json() for event in known.events]

    def _within(self, server_id: str, *_: str) -> bool:
        self.charged.append(server_id)
        self.left -= 1
        return self.left >= 0
