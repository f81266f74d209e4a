"""Where the host has no thread left, slow calls are made in those there are, and none of them fails."""

from __future__ import annotations

import threading

import pytest

from agentsh_net.threads import Threads


def refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_where_the_host_has_no_thread_left_every_slow_call_is_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Threads() as executor:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        first = threading.Event()
        made = [executor.submit(first.wait, 60), *(executor.submit(str, n) for n in range(2))]
        first.set()
        assert [done.result(60) for done in made] == [True, "0", "1"]
        monkeypatch.undo()


def test_calls_that_wait_for_each_other_have_a_thread_each() -> None:
    with Threads() as executor:
        together = threading.Barrier(3)
        assert sorted(done.result(60) for done in [executor.submit(together.wait) for _ in range(3)]) == [
            0,
            1,
            2,
        ]


def test_without_any_thread_it_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Threads()
