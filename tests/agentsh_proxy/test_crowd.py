"""Where there are too many connections, those that were silent longest make room, and nobody who is being answered."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from agentsh_proxy import crowd


@dataclass(eq=False)
class Guest:
    seen: float
    awaited: bool = True
    closed: bool = False

    def close_now(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(crowd, "MAKE_ROOM", 2)


def test_the_most_silent_make_room() -> None:
    guests = [Guest(3), Guest(1), Guest(2), Guest(0, awaited=False)]
    inside = set(guests)
    newcomer = Guest(9)
    assert crowd.take(inside, newcomer)
    assert [guest.closed for guest in guests] == [False, True, True, False]
    assert inside == {guests[0], guests[3], newcomer}


def test_who_is_being_answered_stays_and_a_newcomer_too_many_is_told() -> None:
    inside = {Guest(n, awaited=False) for n in range(4)}
    assert not crowd.take(inside, Guest(9))
    assert not any(guest.closed for guest in inside)


def test_below_the_bound_nobody_goes() -> None:
    silent = Guest(0)
    assert crowd.take({silent, Guest(1), Guest(2)}, Guest(9))
    assert not silent.closed
