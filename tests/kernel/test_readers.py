"""The wait ends, soon, and where the system call cannot be had it is a pause that is long enough."""

from __future__ import annotations

import time

import pytest

from agentsh_net.kernel import readers


def test_the_wait_ends_within_what_a_reload_may_take() -> None:
    start = time.monotonic()
    readers.wait_for_readers()
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("machine", ["unknown", "x86_64"])
def test_without_the_call_it_pauses(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    paused: list[float] = []
    monkeypatch.setattr(readers.platform, "machine", lambda: machine)
    monkeypatch.setattr(readers, "_MEMBARRIER", {"x86_64": 0x7FFFFFFF})  # a call that no kernel has
    monkeypatch.setattr(readers.time, "sleep", paused.append)
    readers.wait_for_readers()
    assert paused == [readers._PATIENCE]
