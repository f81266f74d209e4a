"""Verdicts on the calls of one answer, and what is told of them: to the audit, to the counts, to who proposed what.

How calls are found is the dialects' business, what becomes of the answer is `answers`'.
"""

from __future__ import annotations

from agentsh_net.clock import new_id
from agentsh_net.core.dialects.base import Judge, Step
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.trust.offers import Lessons
from agentsh_net.core.web.http_head import ResponseHead
from agentsh_proxy.llm import pending
from agentsh_proxy.llm.asked import Asked
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.steering import steered


class Judging:
    """One answer's. It knows nothing of its exchange: a cycle of the two would be left to the garbage collector."""

    __slots__ = ("_asked", "_head", "_judge", "_lessons", "_request_id", "_service", "_told_unread")

    def __init__(self, service: Service, asked: Asked, lessons: Lessons, head: ResponseHead) -> None:
        self._service = service
        self._asked = asked
        self._lessons = lessons
        self._head = head
        self._judge: Judge | None = None  # made for the first call: most answers hold none
        self._request_id = ""
        self._told_unread = False

    def judge(self, call: ToolCall) -> Verdict:
        """Return the verdict on a call, by the policy in force now."""
        if self._judge is None:
            self._judge = self._service.judge_for(self._asked.admitted.session_id)
        verdict = self._judge(self._lessons.applied(call))
        return steered(verdict, call, self._service.view.snapshot, self._asked)

    def note(self, step: Step) -> None:
        """Tell what a step found."""
        if not (step.judged or step.faults):
            return
        if not self._request_id:
            # Where the provider gave none, one of ours still tells which calls came together.
            self._request_id = self._head.request_id or new_id()
        self._service.note(step, self._asked.subject(self._request_id))
        for judged in step.judged:
            self._service.offering.propose(self._asked.admitted.session_id, judged.call)
            pending.note(self._service.charges, self._asked.admitted.session_id, judged)
        for fault in step.faults:
            if not fault.cut:
                self._passed(fault.cause)

    def _passed(self, reason: str) -> None:
        """Count an answer that passes unread, whatever of it was: once."""
        if not self._told_unread:
            self._told_unread = True
            self._service.counts.uninspected[reason] += 1
