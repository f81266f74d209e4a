"""A gateway's review over a snapshot of the test's: what it lets pass, tells and reports is kept; nothing is carried."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from agentsh_proxy.gateway.dependencies import Dependencies
from agentsh_proxy.gateway.review import Review
from agentsh_proxy.gateway.view import unfold
from gateway_front import FakeCharges, snapshot

PEER = {"id": "peer", "type": "http", "url": "http://127.0.0.1:1/mcp"}
LIMIT = 1 << 20


class Front:
    """A review over a snapshot of the test's."""

    def __init__(self, peer: dict[str, Any] = PEER, **mcp: Any) -> None:
        self.view = unfold(snapshot([peer], **mcp))
        self.events: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []
        self.soon: list[Callable[[], object]] = []
        charges = FakeCharges()
        around = Dependencies(
            snapshot=lambda: self.view.snapshot, charge=charges.of_the_wire, claim=charges.claim, unanswered=lambda: charges.unanswered,
            emit=lambda event: self.events.append(event.to_json()), report=self._report, changed=self._changed,
            customs=lambda: self.view.customs, counted=lambda _: None, soon=self.soon.append,
        )  # fmt: skip
        self.charges = charges
        self.review = Review(around, "peer", "s1", lambda: self.view.places["peer"])

    def client(self, message: Any) -> Any:
        taken = self.review.client(encoded(message), LIMIT)
        self.turn()
        return taken

    def server(self, message: Any, *ids: Any) -> Any:
        passed = asyncio.run(self.review.server(encoded(message), LIMIT, ids))
        self.turn()
        return passed

    def turn(self) -> None:
        """Run what could wait for the loop's next turn."""
        while self.soon:
            self.soon.pop(0)()

    def _report(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        if "listed" in report:
            return
        self.view = unfold(snapshot([PEER], offers={"peer": [t["name"] for t in report["tools"]]}))

    async def _changed(self) -> None:
        raise AssertionError("the registry knows already")


def encoded(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()
