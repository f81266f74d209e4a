"""The shim interrupts nobody where several requests are on their way, and waits for nobody where one is; the server is left alone."""

from __future__ import annotations

import os
import sys

import pytest
from agentsh_proxy.shim.pace import COMPANY, Pace
from shim_process import line, started

# Says for each request how it and the shim are scheduled; answers all of them with the last one.
SERVER = f"""
import json, os, sys
for line in sys.stdin:
    id_ = json.loads(line)["id"]
    print(id_, os.sched_getscheduler(0), os.sched_getscheduler(os.getppid()))
    if id_ == {COMPANY}:
        for number in range(1, id_ + 1):
            print(json.dumps({{"jsonrpc": "2.0", "id": number, "result": {{}}}}))
    sys.stdout.flush()
"""


@pytest.mark.parametrize(
    ("given", "alone", "in_company"),
    [(os.SCHED_OTHER, os.SCHED_OTHER, os.SCHED_BATCH), (os.SCHED_IDLE, os.SCHED_IDLE, os.SCHED_IDLE)],
)
def test_it_interrupts_nobody_while_several_requests_wait(given: int, alone: int, in_company: int) -> None:
    def like_the_client() -> None:
        os.sched_setscheduler(0, given, os.sched_param(0))

    with started(sys.executable, "-c", SERVER, preexec_fn=like_the_client) as process:
        assert process.stdin is not None
        for number in range(1, COMPANY + 2):
            process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
            ours = in_company if number == COMPANY else alone
            assert [*map(int, line(process).split())] == [number, given, ours]
            for _ in range(COMPANY if number == COMPANY else 0):
                assert b'"result"' in line(process)


def test_what_a_sandbox_does_not_allow_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def refuse(*asked: object) -> None:
        tries.append(asked)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    pace = Pace()
    for waiting in (COMPANY, 1, COMPANY):
        pace.keep(waiting)
    assert len(tries) == 1


def test_nothing_is_tried_where_it_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_getscheduler", refuse)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: pytest.fail("tried"))
    Pace().keep(COMPANY)
