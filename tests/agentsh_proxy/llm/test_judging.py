"""Calls of an answer are judged as their session's, by one judge; what is found is told with the provider's id of the request."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from agentsh_proxy.llm.admission import admit
from agentsh_proxy.llm.asked import asked
from agentsh_proxy.llm.judging import Judging
from agentsh_proxy.llm.reporting import Subject
from agentsh_proxy.llm.view import unfold
from loopback.proxy import snapshot

from agentsh_net.core.dialects.base import Fault, Judged, Step
from agentsh_net.core.model import Action, Kept, ToolCall, Verdict
from agentsh_net.core.trust.offers import NOTHING
from agentsh_net.core.web.http_head import parse_request, parse_response

VIEW = unfold(snapshot(1))
HEAD = parse_response(b"HTTP/1.1 200 OK\r\nRequest-Id: req_1\r\n\r\n")
CALL = ToolCall("delete_files", kept=Kept(("resp_1",), {}, "ours", {}))
DENIED = Verdict(Action.BLOCK, "denied", "rule")


class Service:
    """What a judging asks of a worker's service."""

    def __init__(self) -> None:
        self.view = VIEW
        self.judges: list[str] = []
        self.calls: list[ToolCall] = []
        self.told: list[tuple[Step, Subject]] = []
        self.proposed: list[tuple[str, ToolCall]] = []
        self.counts = SimpleNamespace(uninspected=Counter())
        self.offering = SimpleNamespace(propose=lambda *found: self.proposed.append(found))
        self.noted: list[str] = []
        self.charges = SimpleNamespace(refuse=lambda place, _: self.noted.append(place))

    def judge_for(self, session_id: str):
        self.judges.append(session_id)

        def judge(call: ToolCall) -> Verdict:
            self.calls.append(call)
            return DENIED

        return judge

    def note(self, step: Step, subject: Subject) -> None:
        self.told.append((step, subject))


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def judging(service) -> Judging:
    return made(service, HEAD)


def made(service, answer) -> Judging:
    raw = b"POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
    head = parse_request(raw)
    return Judging(service, asked(head, admit(head, VIEW, {}), VIEW, {}), NOTHING, answer)


def test_the_calls_of_an_answer_have_one_judge_and_an_answer_without_calls_has_none(judging, service):
    assert service.judges == []
    assert [judging.judge(CALL), judging.judge(CALL)] == [DENIED, DENIED]
    assert (service.judges, service.calls) == (["default"], [CALL, CALL])


def test_what_a_step_found_is_told_with_the_providers_id(judging, service):
    step = Step(b"", (Judged(CALL, DENIED),))
    judging.note(step)
    assert service.told == [(step, Subject("default", "req_1", "anthropic"))]
    assert service.proposed == [("default", CALL)]
    assert service.noted == ["default\0resp_1", "default\0ours"]


def test_calls_of_an_answer_without_an_id_are_told_with_one_that_they_share(service):
    step = Step(b"", (Judged(CALL, DENIED),))
    nameless = parse_response(b"HTTP/1.1 200 OK\r\n\r\n")
    one, other = made(service, nameless), made(service, nameless)
    for judging in (one, one, other):
        judging.note(step)
    first, second, third = (subject.request_id for _, subject in service.told)
    assert first == second != third
    assert first and third


def test_a_step_without_findings_is_not_told_of(judging, service):
    judging.note(Step(b"data"))
    assert service.told == []


def test_an_answer_that_passes_unread_counts_once_and_one_that_was_cut_not_at_all(judging, service):
    judging.note(Step(b"", faults=(Fault("malformed_json", "x", cut=True),)))
    assert not service.counts.uninspected
    for _ in range(2):
        judging.note(Step(b"", faults=(Fault("frame_too_long", "x", cut=False),)))
    assert service.counts.uninspected == {"frame_too_long": 1}
    assert len(service.told) == 3
