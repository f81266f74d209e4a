"""What all connections of a worker share: the view in force, sessions, the upstream pool, counts, and one timer.

It parses nothing and answers nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from secrets import token_bytes
from typing import TYPE_CHECKING

from agentsh_net.core.audit.events import DEFAULT_SESSION
from agentsh_net.core.dialects.base import Fault, Judge, Step
from agentsh_net.core.dlp.tokens import Vaults
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy import connection_limit
from agentsh_proxy.callers import place
from agentsh_proxy.charging import Charges
from agentsh_proxy.counting import Counts
from agentsh_proxy.forked import Forked
from agentsh_proxy.llm.admission import Admitted, Answered, RefusalError, admit
from agentsh_proxy.llm.asked import Asked
from agentsh_proxy.llm.guarding import masked
from agentsh_proxy.llm.offering import Offering
from agentsh_proxy.llm.reporting import Reporter, Subject
from agentsh_proxy.llm.upstream_pool import Pool
from agentsh_proxy.llm.view import View
from agentsh_proxy.load import Load
from agentsh_proxy.recorder import Recorder
from agentsh_proxy.refused_requests import refused_request

if TYPE_CHECKING:
    from agentsh_proxy.llm.server import ClientConnection

TICK = 1.0  # seconds; timeouts are coarse so that the hot path never asks the clock


class Service:
    """One worker's shared state. `view` is the one reference that a reload swaps."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        view: View,
        *,
        reporter: Reporter,
        charges: Charges,
        counts: Counts,
        pool: Pool,
        token_key: bytes = b"",
        recorder: Recorder | None = None,
    ) -> None:
        self._loop = loop
        self.view = view
        self.sessions: Mapping[str, str] = {}
        self.reporter = reporter
        self.recorder = recorder
        self.counts = counts
        self.pool = pool
        self.writes = pool.writes
        self.vaults = Vaults(token_key or token_bytes(32))
        self.offering = Offering(reporter)
        self.draining = False
        self.load = Load()
        self.forked = Forked()
        self.clock = loop.time
        self.now = loop.time()
        self.charges = charges
        self._clients: set[ClientConnection] = set()
        self._quiet = asyncio.Event()  # set while no client is connected
        self._quiet.set()
        self._timer = loop.call_later(TICK, self._tick)

    def judge_for(self, session_id: str) -> Judge:
        """Return the judge of one answer. It asks the view in force per call, so that a revocation bites in mid-stream."""
        charges = self.charges
        charge = charges.of_one_answer()

        def judge(call: ToolCall) -> Verdict:
            charges.unanswered = False
            verdict = self.view.snapshot.judge(call, session_id=session_id, charge=charge)
            if charges.unanswered:
                verdict = replace(verdict, reason=f"{verdict.reason} (the rate limiter did not answer)")
            return verdict

        return judge

    def admit(self, head: RequestHead, here: str) -> Admitted | Answered:
        """Decide about a request of a client whose socket was made in the session `here`. Raises RefusalError."""
        admitted = admit(head, self.view, self.sessions, here)
        if isinstance(admitted, Admitted) and admitted.shown:
            self.charges.contradict(here, admitted.shown)
        return admitted

    def enforcing(self) -> bool:
        """Say whether the view in force enforces its verdicts."""
        return self.view.enforce

    def note(self, step: Step, subject: Subject) -> None:
        """Count and report what a step found."""
        for judged in step.judged:
            self.counts.calls_judged += 1
            self.counts.calls_blocked += judged.verdict.blocked
        guard = self.view.guard
        told = masked(guard, step) if guard is not None and step.judged else step
        self.reporter.step(told, subject, self.view.servers)

    def note_refused(self, refused: RefusalError, what: Asked | None, here: str = "") -> None:
        """Count a request that goes no further, and report it where nothing else did.

        `what` its head had led to, if it came so far; `here` is the session in which its client's socket was made.
        """
        self.counts.refused += 1
        if what is not None:
            refused.dialect = what.admitted.dialect
        if refused.unread is not None:
            self.note_unread(refused.unread)
        elif not refused.told:
            head = what.head if what is not None else None
            asked = refused.request or refused_request(head, self.sessions, here)
            self.reporter.refused(asked, refused.status, str(refused), refused.dialect)

    def note_bug(self, error: Exception, about: Subject | None = None) -> str:
        """Tell of an error of ours, in the log, and with `about` in the audit; return what the client is told."""
        self._loop.call_exception_handler({"message": "a bug of agentsh-net", "exception": error})
        if about is not None:
            self.reporter.fault(Fault("internal_error", type(error).__name__, cut=True, always=True), about)
        return "an internal error; the daemon's log has it"

    def note_unread(self, admitted: Admitted) -> None:
        """Report a request to an endpoint whose answers cannot be read: it passes, or fail_closed refuses it."""
        subject = Subject(admitted.session_id, "", admitted.provider.dialect.name)
        path = admitted.target.partition(b"?")[0].decode("ascii")
        fault = Fault("unknown_dialect", path, cut=self.view.closed, would=self.view.would_close)
        if admitted.beside:
            detail = f"{path} is the MCP server {admitted.beside!r}"
            fault = Fault("unknown_dialect", detail, cut=False, would=True, always=True)
        self.reporter.fault(fault, subject)

    def take(self, client: ClientConnection, transport: asyncio.BaseTransport) -> str:
        """Count a connection in, in the place of those that keep us waiting where there are too many; return the session it is of.

        That is the one in which its client's socket was made, empty for none. Raises ProtocolError where it cannot be served.
        """
        self.counts.connections += 1
        taken = connection_limit.admit(self._clients, client)
        self._quiet.clear()
        self.counts.open_connections = len(self._clients)
        if not taken:
            raise ProtocolError("too many connections", status=503)
        return place(transport, self.charges, enforce=self.view.enforce)

    def drop(self, client: ClientConnection) -> None:
        """Count a connection out."""
        self._clients.discard(client)
        if not self._clients:
            self._quiet.set()
        self.counts.open_connections = len(self._clients)

    async def drain(self, seconds: float) -> None:
        """End: let what is under way finish for so long, then fail what is left."""
        self.draining = True
        deadline = self._loop.time() + seconds
        self._tend()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self._quiet.wait()
        for client in list(self._clients):
            client.stop(ProtocolError("agentsh-net is stopping", status=503))
        await asyncio.sleep(0)
        for client in list(self._clients):
            client.close_now()
        self._timer.cancel()
        self.pool.close()
        self.reporter.finish()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK, self._tick)  # first: a bug below must not end all timeouts
        self._tend()

    def _tend(self) -> None:
        self.now = now = self._loop.time()
        self.pool.sweep(now)
        for client in list(self._clients):
            try:
                client.tick(now)
            except Exception as error:  # noqa: BLE001 - a bug of ours must not keep the others waiting
                self.note_bug(error, Subject(DEFAULT_SESSION, "", ""))
                client.abort()
