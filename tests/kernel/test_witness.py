"""Both ears are read together without waiting: not for a sweep, not for programs that are being closed; a deaf one says why."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from netns.scene import at

from agentsh_net.core.abi import wire
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate
from agentsh_net.kernel import witness
from agentsh_net.kernel.process import Processes
from agentsh_net.kernel.sightings import Sighted
from agentsh_net.kernel.witness import Witness

PEER = at("203.0.113.1").address
SEEN = wire.Record(0, 0, 11, 12, 42, 2, 1000, 7, PEER, 443, 6, 10, Fate.TAG, "connect6", observed=False, comm="curl")  # fmt: skip


class Ear:
    """Programs, or a log, that tell once."""

    lost = 3

    def __init__(self, *told: Any, fd: int = 7) -> None:
        self.told, self.fd, self.closed = list(told), fd, False

    def fileno(self) -> int:
        return self.fd

    def records(self) -> list[Any]:
        told, self.told = self.told, []
        return told

    def listen(self) -> None:
        """Be had."""

    def close(self) -> None:
        self.closed = True


class Taken(Ear):
    """A log that somebody else reads for a while."""

    taken = True

    def listen(self) -> None:
        if self.taken:
            raise KernelError("somebody else reads group 5", remedy="choose another")


@pytest.fixture
def hearing() -> Witness:
    return Witness(Sighted(Processes(None, Path("/nonexistent"))))


def test_what_both_tell_is_read_once(hearing: Witness, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Ear(fd=8)
    monkeypatch.setattr(witness, "Nflog", lambda _group: log)
    hearing.hear_programs(Ear(SEEN))  # type: ignore[arg-type]
    hearing.hear_packets(5)
    assert (hearing.filenos(), hearing.lost, hearing.silent) == ([7, 8], 3, "")
    assert [(r.layer, r.comm) for r in hearing.records()] == [("ebpf", "curl")]
    assert hearing.records() == []
    hearing.close()
    assert (log.closed, hearing.filenos(), hearing.lost) == (True, [], 0)


def test_a_log_that_cannot_be_had_says_why_until_it_can(
    hearing: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Taken()
    monkeypatch.setattr(witness, "Nflog", lambda _group: log)
    hearing.hear_packets(5)
    for _ in range(2):
        assert hearing.silent == "no events from this layer: somebody else reads group 5 (choose another)"
        hearing.hear_again()
    log.taken = False
    hearing.hear_again()
    assert (hearing.silent, hearing.filenos()) == ("", [7])


def test_while_a_sweep_tells_nobody_waits_and_nothing_is_lost(hearing: Witness) -> None:
    telling, done = threading.Event(), threading.Event()

    def swept(*_: object, **__: object) -> list[Any]:
        telling.set()
        assert done.wait(60)
        return []

    hearing.hear_programs(Ear(SEEN))  # type: ignore[arg-type]
    hearing._sighted.swept = swept  # type: ignore[method-assign]
    sweep = threading.Thread(target=hearing.swept, args=([], 1), kwargs={"named": False})
    sweep.start()
    assert telling.wait(60)
    assert hearing.records() == []
    done.set()
    sweep.join()
    assert len(hearing.records()) == 1


def test_programs_that_are_about_to_be_closed_are_read_no_more(hearing: Witness) -> None:
    hearing.hear_programs(Ear(SEEN))  # type: ignore[arg-type]
    hearing.hear_programs(None)
    assert (hearing.records(), hearing.filenos()) == ([], [])
