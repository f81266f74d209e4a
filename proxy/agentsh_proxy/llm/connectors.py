"""The MCP servers that a request asks its provider to call: judged before it leaves, and held to the tools that policy allows.

How they are found in a request, and how it is written without what they may not do, is core.dialects' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from agentsh_net.core.dialects import request_connectors
from agentsh_net.core.dialects.base import Connector, Dialect
from agentsh_net.core.dialects.request_connectors import ConfinementError, Edits
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.values import json_splice
from agentsh_net.core.verdicts.connectors import Reach
from agentsh_net.core.verdicts.rules import ROOT
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.reporting import Subject
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.view import View

_TOOLS: Final = f"{ROOT}.denied_tools"
_UNCONFINED: Final = "policy denies some of its tools, which cannot be kept back here"

Passed = list[tuple[Connector, Verdict]]  # connectors that may be called, if only for some of their tools


class Connectors:
    """Those of one request."""

    __slots__ = ("_dialect", "_service", "_subject", "_view")

    def __init__(self, service: Service, view: View, subject: Subject, dialect: Dialect) -> None:
        self._service = service
        self._view = view
        self._subject = subject
        self._dialect = dialect  # of errors

    def judged(self, connectors: Iterable[Connector]) -> Passed:
        """Judge each, and return them. One that may not be called is told of, and raises RefusalError."""
        passed = []
        for connector in connectors:
            verdict = self._service.view.snapshot.judge_connector(connector.server_id, connector.url)
            if verdict.blocked:
                self._tell_of(connector, verdict)
                name = connector.server_id or connector.url.partition("?")[0]
                raise self._refusal(f"MCP server {name!r} blocked by policy: {verdict.reason}")
            passed.append((connector, verdict))  # told of once it is settled which of its tools may be
        return passed

    def refuse_confined(self, passed: Passed) -> None:
        """Tell of the connectors of a request that nobody can rewrite. Raises RefusalError for one that policy confines."""
        for connector, verdict in passed:
            confined = self._reach(connector.server_id, connector.url).confined
            self._tell_of(connector, self._withheld(verdict, _UNCONFINED) if confined else verdict)
            if confined and self._view.enforce:
                raise self._refusal(f"MCP server {connector.server_id!r}: {_UNCONFINED}")

    def confined(self, plain: bytes, request: Mapping[str, Any] | None, passed: Passed) -> bytes:
        """Return the body whose connectors reach only what policy allows. Raises RefusalError where that cannot be written."""
        edits, refusal = self._edits(request, passed)
        for connector, verdict in passed:
            why = refusal.why if refusal is not None and connector.server_id == refusal.label else ""
            self._tell_of(connector, self._withheld(verdict, why) if why else verdict)
        if not self._view.enforce:
            return plain
        if refusal is not None:
            raise self._refusal(str(refusal)) from refusal
        return json_splice.splice(plain, edits) if edits else plain

    def _edits(
        self, request: Mapping[str, Any] | None, passed: Passed
    ) -> tuple[Edits, ConfinementError | None]:
        """Return what confines the connectors in a request, or why that cannot be done."""
        asked: set[str] = set()

        def reach(label: str, address: str) -> Reach:
            asked.add(label)
            return self._reach(label, address)

        try:
            edits = {} if request is None else request_connectors.confined(request, reach)
        except ConfinementError as error:
            return {}, error
        for connector, _ in passed:  # of some APIs a server cannot be told which of its tools it may offer
            if connector.server_id not in asked and self._reach(connector.server_id, connector.url).confined:
                return {}, ConfinementError(connector.server_id, _UNCONFINED)
        return edits, None

    def _reach(self, label: str, address: str) -> Reach:
        return self._view.snapshot.connector_reach(label, address)

    def _withheld(self, verdict: Verdict, why: str) -> Verdict:
        """Return the verdict on a connector whose denied tools cannot be kept back."""
        if self._view.enforce:
            return replace(verdict, action=Action.BLOCK, reason=why, rule=_TOOLS)
        return replace(verdict, would=Action.BLOCK, reason=why, rule=_TOOLS)

    def _tell_of(self, connector: Connector, verdict: Verdict) -> None:
        # Whom the verdict is about: a request may call a declared server by any name.
        server_id = verdict.candidates[0].server_id if verdict.candidates else connector.server_id
        self._service.reporter.connector(server_id, connector.url, verdict, self._subject)

    def _refusal(self, message: str) -> RefusalError:
        return RefusalError(403, message, dialect=self._dialect, told=True)
