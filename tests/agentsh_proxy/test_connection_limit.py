"""Where there are too many connections, those that were silent longest make room, and nobody who is being answered."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from agentsh_proxy import connection_limit


@dataclass(eq=False)
class Client:
    seen: float
    awaited: bool = True
    closed: bool = False

    def close_now(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(connection_limit, "MAKE_ROOM", 2)


def test_the_most_silent_make_room() -> None:
    clients = [Client(3), Client(1), Client(2), Client(0, awaited=False)]
    inside = set(clients)
    newcomer = Client(9)
    assert connection_limit.admit(inside, newcomer)
    assert [client.closed for client in clients] == [False, True, True, False]
    assert inside == {clients[0], clients[3], newcomer}


def test_who_is_being_answered_stays_and_a_newcomer_too_many_is_told() -> None:
    inside = {Client(n, awaited=False) for n in range(4)}
    assert not connection_limit.admit(inside, Client(9))
    assert not any(client.closed for client in inside)


def test_below_the_bound_nobody_goes() -> None:
    silent = Client(0)
    assert connection_limit.admit({silent, Client(1), Client(2)}, Client(9))
    assert not silent.closed
