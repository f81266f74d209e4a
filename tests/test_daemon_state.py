"""The parts of a daemon before and while they run: where it listens, how it is told to stop, and how long servers are waited for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agentsh_net import daemon_state
from agentsh_net.daemon_state import DaemonState


def test_what_is_off_listens_nowhere_and_is_asked_nothing() -> None:
    async def play() -> None:
        state = DaemonState()
        assert (state.proxy_url, state.gateway_url) == ("", "")
        await state.hear_servers(anew=True)

    asyncio.run(play())


@pytest.mark.parametrize(("told", "removes"), [([False], False), ([True], True), ([True, False], True)])
def test_what_is_to_be_removed_at_the_end_stays_so(told: list[bool], removes: bool) -> None:
    async def play() -> None:
        state = DaemonState()
        for remove in told:
            state.stop(remove=remove)
        assert state.stopping.is_set() and state.removes is removes

    asyncio.run(play())


@pytest.mark.parametrize("anew", [False, True])
def test_a_stop_ends_the_waiting_for_servers(anew: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_state, "FIRST_WORDS", 600.0)
    asked: list[Any] = []

    async def introduced(*, anew: bool) -> None:
        asked.append(("introduced", anew))
        await asyncio.Event().wait()

    async def relist() -> None:
        asked.append("relist")
        state.stop()

    async def play() -> None:
        nonlocal state
        state = DaemonState()
        state.reports = SimpleNamespace(introduced=introduced)  # type: ignore[assignment]
        state.pool = SimpleNamespace(relist=relist)  # type: ignore[assignment]
        if not anew:
            state.stop()
        await asyncio.wait_for(state.hear_servers(anew=anew), 60)

    state: DaemonState
    asyncio.run(play())
    assert sorted(map(str, asked)) == sorted(map(str, [("introduced", anew), *["relist"] * anew]))
