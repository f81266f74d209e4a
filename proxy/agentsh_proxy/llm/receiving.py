"""A request before it leaves: what its head led to, what its body says, and the body as policy lets it go.

Approvals are judged, offered tools learned and hidden, DLP applied: to a long body apart from the worker. MCP servers that it names
are `connectors`', connections the exchange's business.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from agentsh_net.core.dialects import foreign_connectors
from agentsh_net.core.dialects.base import Fault, Judged, RequestFacts, Step
from agentsh_net.core.dlp.guard import Guard, Scrubbed
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.trust.offers import NOTHING, Lessons
from agentsh_net.core.values import strict_json
from agentsh_proxy.inflating import inflate_whole, partly_known
from agentsh_proxy.llm import pending
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.asked import Asked
from agentsh_proxy.llm.connectors import Connectors
from agentsh_proxy.llm.guarding import LONG, scrubbed, scrubbed_forked, without_description
from agentsh_proxy.llm.offering import reduced
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.sniffing import Kind, kind_of

NO_FACTS = RequestFacts()
_OURS: Final = 503  # the status of an error that is not the client's
_COUNTS: Final = re.compile(rb"(?:count_?tokens|/input_tokens)(?:\?|\Z)", re.IGNORECASE)  # and calls nothing
_TYPE: Final = re.compile(rb"\r\ncontent-type:([^\r;]*)", re.IGNORECASE)


class Reception:
    """One inspected request's body, read and judged; afterwards `asked`, `facts` and `lessons` say what it led to.

    `unsearched` is what DLP has yet to search of it, decoded, where `defers` leaves what is too long to `search`.
    """

    __slots__ = ("_defers", "_service", "asked", "facts", "lessons", "settle", "unsearched")

    def __init__(self, service: Service, what: Asked, *, defers: bool = False) -> None:
        self._service = service
        self._defers = defers
        self.asked = what
        self.facts = NO_FACTS
        self.lessons: Lessons = NOTHING
        self.settle = pending.nothing  # once the answer came
        self.unsearched = b""

    def take(self, body: bytes, facts: RequestFacts | None = None) -> bytes:
        """Return the body that leaves once nothing of it is `unsearched`; `facts` is what it says, if that was read. Raises RefusalError."""
        plain = self._read(body, facts)
        confined = self._confined(plain)
        self._judge_approvals()
        left = self._learned(confined)
        if left is not plain:
            body = left
            self.asked = replace(self.asked, opening=without_description(self.asked.opening))
        if self.asked.view.guard is not None and left:
            body = self._guarded(self.asked.view.guard, left, body)
        return body

    def pass_by(self, body: bytes) -> bytes:
        """Return the body of a request that no dialect reads, as DLP lets it leave (embeddings, count_tokens). Raises RefusalError.

        What calls it leads to nobody sees, so the MCP servers that it names are judged all the same.
        """
        plain = self._inflated(body)
        if not plain or (self._says_other() and kind_of(plain, last=True) is not Kind.WHOLE):
            return body
        if not _COUNTS.search(self.asked.admitted.target):
            self._judge_foreign(plain)
        guard = self.asked.view.guard
        return self._guarded(guard, plain, body) if guard is not None else body

    def _read(self, body: bytes, facts: RequestFacts | None) -> bytes:
        """Read what the body says and return it decoded; empty where it cannot be. Raises RefusalError by fail_closed."""
        dialect = self.asked.admitted.inspected
        assert dialect is not None  # noqa: S101 - the caller checked
        plain = self._inflated(body)
        if plain is None:
            return b""
        self.facts = dialect.request(plain) if facts is None else facts
        if self.facts.fault is not None:
            self._unread(self.facts.fault, 400)
        return plain

    def _says_other(self) -> bool:
        """Say whether the body says that it is something else than JSON."""
        types = _TYPE.findall(self.asked.head.fields)
        return types != [] and all(b"json" not in each.lower() for each in types)

    def _inflated(self, body: bytes) -> bytes | None:
        """Return the body decoded; None where it cannot be. Raises RefusalError by fail_closed."""
        try:
            plain = inflate_whole(body, self.asked.head.encoding, cap=self.asked.view.proxy.max_request)
        except ProtocolError as error:
            coding = self.asked.head.encoding
            self._unread(Fault("unknown_encoding", str(error), cut=False), error.status)
            # A server that does not know the coding may go on to read the body as it is.
            ignored = (
                error.status == 415 and not partly_known(coding) and kind_of(body, last=True) is Kind.WHOLE
            )
            return body if ignored else None
        if kind_of(plain, last=True) is Kind.PACKED:
            self._unread(
                Fault("unknown_encoding", "compressed, though the head does not say so", cut=True), 415
            )
            return None
        return plain

    async def search(self, body: bytes) -> bytes:
        """Return the body that leaves, of which something is `unsearched`. Raises RefusalError."""
        guard, plain = self.asked.view.guard, self.unsearched
        assert guard is not None  # noqa: S101 - nothing is unsearched where nobody searches
        service = self._service
        try:
            vault = service.vaults.of(self.asked.admitted.session_id)
            return self._scrubbed(guard, await scrubbed_forked(guard, plain, vault, service.forked), body)
        except ProtocolError as error:
            return self._unsearchable(error, body)

    def _guarded(self, guard: Guard, plain: bytes, body: bytes) -> bytes:
        """Return the body as DLP lets it leave. Raises RefusalError where it cannot be read and fail_closed says to stop it."""
        if self._defers and len(plain) > LONG:
            self.unsearched = plain
            return body
        try:
            done = scrubbed(guard, plain, self._service.vaults.of(self.asked.admitted.session_id))
        except ProtocolError as error:
            return self._unsearchable(error, body)
        return self._scrubbed(guard, done, body)

    def _scrubbed(self, guard: Guard, done: Scrubbed, body: bytes) -> bytes:
        if not done.counts:
            return body
        self.asked = replace(self.asked, opening=without_description(self.asked.opening))
        self._service.reporter.redacted(guard.mode, done.counts, self.asked.subject())
        return done.body

    def _unsearchable(self, error: ProtocolError, body: bytes) -> bytes:
        """Go by fail_closed where a body cannot be read; refuse it where it was not for what it says. Raises RefusalError."""
        ours = error.status == _OURS
        fault = Fault("dlp_unread", f"{error}, so DLP did not search it", cut=ours)
        self._unread(fault, error.status if ours else 400)
        return body

    def _learned(self, plain: bytes) -> bytes:
        """Learn what the offered tools are, and return the body without those that policy hides."""
        request, offering = self.facts.parsed, self._service.offering
        if request is None:
            self.lessons = offering.last(self.asked.admitted.session_id)
            return plain
        adds, view = self.facts.adds_tools, self.asked.view
        self.facts = replace(self.facts, parsed=None)  # not kept for as long as the answer takes
        self.lessons = offering.read(request, view, self.asked.subject(), adds_tools=adds)
        if view.hide_denied and self.lessons.hidden:
            plain = reduced(request, plain, self.lessons)
        plain, self.settle = pending.answered(
            self._service.charges, self.asked.admitted.session_id, request, plain
        )
        return plain

    def _unread(self, fault: Fault, status: int) -> None:
        view = self.asked.view
        grave = view.fail_closed or fault.cut
        cut = grave and view.enforce
        told = Fault(fault.cause, f"request: {fault.detail}", cut, would=grave and not cut, always=fault.cut)
        self._service.reporter.fault(told, self.asked.subject())
        if cut:
            why = f"the request could not be inspected: {fault.detail}"
            raise RefusalError(status, why, dialect=self.asked.admitted.dialect, told=True)

    def _judge_foreign(self, plain: bytes) -> None:
        """Judge the MCP servers of a request that is not understood. Raises RefusalError."""
        self.facts = foreign_connectors.read(plain)
        fault = self.facts.fault
        if fault is not None and (fault.cut or self.asked.admitted.unread):
            self._unread(fault, 400)
        connectors = self._connectors()
        connectors.refuse_confined(connectors.judged(self.facts.connectors))

    def _confined(self, plain: bytes) -> bytes:
        """Return the body whose connectors reach only what policy allows. Raises RefusalError where that cannot be written."""
        if not self.facts.connectors:
            return plain
        connectors = self._connectors()
        left = connectors.confined(plain, self.facts.parsed, connectors.judged(self.facts.connectors))
        if left is not plain:
            self.facts = replace(self.facts, parsed=strict_json.read(left).value)
        return left

    def _connectors(self) -> Connectors:
        return Connectors(self._service, self.asked.view, self.asked.subject(), self.asked.admitted.dialect)

    def _judge_approvals(self) -> None:
        """Judge every call that the request lets the provider run; no rate is charged before it runs. Raises RefusalError."""
        for call in self.facts.approvals:
            if not call.name:
                known = self._service.offering.proposed(self.asked.admitted.session_id, call.call_id)
                if known is None and not self.asked.view.fail_closed:
                    unknown = "it approves an MCP call that was proposed in no answer seen here"
                    self._unread(Fault("unknown_approval", unknown, cut=False), 400)
                    continue
                call = known or call  # noqa: PLW2901 - proposed in an answer that this request does not repeat
            verdict = self._service.view.snapshot.explain(call).verdict
            self._service.note(Step(b"", (Judged(call, verdict),)), self.asked.subject())
            if verdict.blocked:
                raise RefusalError(
                    403,
                    f"the approval of tool {call.name!r} is blocked by policy: {verdict.reason}",
                    dialect=self.asked.admitted.dialect,
                    told=True,
                )
