"""Messages that cannot be read for certain: what is held against them, and what is told of them.

What goes on in their place is `review`'s business.
"""

from __future__ import annotations

from functools import partial

from agentsh_net.apart import apart
from agentsh_net.audit.call_events import HOSTILE, MALFORMED, Teller
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp import judging as mcp_judging
from agentsh_net.core.mcp.jsonrpc import Id
from agentsh_net.core.mcp.listing import refused
from agentsh_net.core.mcp.uncertain import NOTHING, Held, held
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.verdicts import steps
from agentsh_proxy.gateway.dependencies import Dependencies


class Doubts:
    """Those of one client's conversation with one server."""

    __slots__ = ("_server_id", "_tell", "_worker")

    def __init__(self, worker: Dependencies, server_id: str, tell: Teller) -> None:
        self._worker = worker
        self._server_id = server_id
        self._tell = tell

    def of_client(self, size: int, why: str, danger: str) -> Verdict:
        """Judge a message of the client's, and tell of it."""
        verdict = mcp_judging.doubted(self._worker.mcp, why, danger)
        self._tell.uninspected("client", HOSTILE if danger else MALFORMED, size, verdict)
        return verdict

    def of_server(self, size: int, why: str, danger: str, holds: Held = NOTHING) -> Verdict:
        """Judge a message of the server by what it holds for clients that read it, and tell of it."""
        danger = danger or holds.danger
        verdict = holds.decides(mcp_judging.doubted(self._worker.mcp, why, danger), why)
        for asking, asked in holds.asked:
            self._tell.asked(asking, asked)
        cause = HOSTILE if danger or holds.verdict is not None else MALFORMED
        self._tell.uninspected("server", cause, size, verdict, holds.found)
        return verdict

    async def held(self, flat: bytes) -> Held:
        """Return what a message holds for clients that are less strict than we are."""
        mcp, customs = self._worker.mcp, self._worker.customs()
        return await apart(len(flat), partial(held, mcp, self._server_id, flat, customs))

    def oversize(self, size: int) -> None:
        """Tell of a message of the server that is cut because it is too long."""
        verdict = refused(self._worker.mcp, "longer than gateway.max_response", "gateway.max_response")
        self._tell.uninspected("server", "too_long", size, verdict)

    def undeliverable(self, size: int, why: str) -> None:
        """Tell of a message of the server that cannot be handed on to anybody."""
        self._tell.uninspected("server", MALFORMED, size, Verdict(Action.BLOCK, why, steps.PROTOCOL))

    def opaque(self) -> Verdict:
        """Tell of an answer in which clients who go by its charset may read other letters than are judged here."""
        why = "the answer's charset writes ASCII as other bytes"
        verdict = refused(self._worker.mcp, why, steps.PROTOCOL)
        self._tell.uninspected("server", HOSTILE, 0, verdict)
        return verdict


def refusal(id_: Id | None, verdict: Verdict) -> bytes:
    """Return the error that answers a request in the place of what could not be read."""
    return jsonrpc.error(id_, mcp_gate.UNREADABLE, f"[agentsh] message refused: {verdict.reason}")
