"""A listener's connections where there are more than it takes: a newcomer gets the place of those that keep it waiting longest.

Who is refused for it, and how, is the listeners' business.
"""

from __future__ import annotations

from heapq import nsmallest
from operator import attrgetter
from typing import Final, Protocol, TypeVar

# Clients at once on one worker; each costs two descriptors and tens of KiB, so this stays below common hard limits.
MAX_CONNECTIONS: Final = 4096
# Are closed at once where there are too many, so that a flood of newcomers costs a look at all of them once in so many.
MAKE_ROOM: Final = 64


class Client(Protocol):
    """A client's connection."""

    @property
    def awaited(self) -> bool:
        """Say whether it is the client's turn: to send a request, or the rest of one."""

    @property
    def seen(self) -> float:
        """When it was heard last."""

    def close_now(self) -> None:
        """Close without waiting for the client."""


C = TypeVar("C", bound=Client)


def admit(clients: set[C], newcomer: C) -> bool:
    """Count a connection in, in the place of those that keep us waiting where there are too many; say whether there was one."""
    if len(clients) >= MAX_CONNECTIONS:
        waiting = (each for each in clients if each.awaited)
        for each in nsmallest(MAKE_ROOM, waiting, key=attrgetter("seen")):
            clients.discard(each)
            each.close_now()
    clients.add(newcomer)
    return len(clients) <= MAX_CONNECTIONS
