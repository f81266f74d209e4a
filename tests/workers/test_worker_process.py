"""A worker that is not heard is told of, then killed; why it ended is said by who killed it, else by its status."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from agentsh_net.core.links import link
from agentsh_net.workers.worker_process import GONE, SILENT, WorkerProcess


class Ending:
    """What a process and its link are to who ends them."""

    def __init__(self, pid: int = 0) -> None:
        self.pid = pid  # by default nobody's: it cannot be seen whether that is at work
        self.ended: list[str] = []
        self.words: list[bool] = []

    def heard(self) -> bool:
        return self.words.pop(0) if self.words else False

    def close(self) -> None:
        self.ended.append("link")

    def kill(self) -> None:
        self.ended.append("process")


def made(end: Any) -> WorkerProcess:
    return WorkerProcess(end, end, SimpleNamespace())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "why"),
    [(0, "exit status 0"), (3, "exit status 3"), (-9, "signal SIGKILL"), (-99, "signal 99")],
)
def test_a_process_that_ended_by_itself_is_told_by_its_status(status: int, why: str) -> None:
    assert made(Ending()).why_ended(status) == why


def test_the_first_reason_for_which_we_killed_it_counts() -> None:
    worker = made(end := Ending())
    worker.kill("did not end in time")
    worker.kill("was not heard")
    assert worker.why_ended(-9) == "did not end in time"
    assert end.ended == ["link", "process"] * 2


@pytest.mark.parametrize("gone", [ProcessLookupError, PermissionError])
def test_one_that_is_gone_or_anothers_is_left_to_the_end_of_its_link(gone: type[OSError]) -> None:
    end = Ending()
    worker = made(end)
    worker.process = SimpleNamespace(kill=lambda: (_ for _ in ()).throw(gone()))  # type: ignore[assignment]
    worker.kill("why")
    assert end.ended == ["link"]


def test_silence_is_told_of_at_once_and_a_word_in_time_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "COUNTERS_EVERY", 0)
    end = Ending()
    end.words = [False] * (GONE - 1) + [True] + [False] * GONE
    worker = made(end)
    seen: list[tuple[int, bool]] = []

    async def play() -> None:
        listening = asyncio.ensure_future(worker.listen())
        while not end.ended:
            seen.append((worker.missed, worker.silent))
            await asyncio.sleep(0)
        listening.cancel()

    asyncio.run(play())
    assert not end.words  # not before the last of them
    assert worker.missed == GONE and worker.why.startswith("was not heard for")
    assert min(missed for missed, silent in seen if silent) == SILENT


@pytest.mark.parametrize(("does", "ends_after"), [("sleep", SILENT), ("spin", GONE)])
def test_a_silent_worker_is_replaced_at_once_where_it_sleeps_and_late_where_it_works(
    monkeypatch: pytest.MonkeyPatch, does: str, ends_after: int
) -> None:
    monkeypatch.setattr(link, "COUNTERS_EVERY", 0.02)
    code = {
        "sleep": "import signal; print(flush=True); signal.pause()",
        "spin": "print(flush=True)\nwhile True: pass",
    }
    with subprocess.Popen([sys.executable, "-c", code[does]], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        worker = made(end := Ending(process.pid))

        async def play() -> None:
            listening = asyncio.ensure_future(worker.listen())
            while not end.ended:
                await asyncio.sleep(0.001)
            listening.cancel()

        asyncio.run(play())
        process.kill()
    # The first look has nothing to compare with.
    assert worker.missed in {ends_after, ends_after + 1}
    assert ("is stopped or hangs" in worker.why) == (does == "sleep")


def test_a_worker_is_gone_when_all_that_it_said_is_read() -> None:
    async def play() -> None:
        ended, linked, written = (asyncio.get_running_loop().create_future() for _ in range(3))
        process = SimpleNamespace(wait=lambda: ended)
        worker = WorkerProcess(process, SimpleNamespace(closed=linked), SimpleNamespace(closed=written))  # type: ignore[arg-type]
        gone = asyncio.ensure_future(worker.gone())
        for step in (ended, linked, written):
            assert not (await asyncio.wait((gone,), timeout=0.05))[0]
            step.set_result(-9)
        assert await gone == -9

    asyncio.run(play())
