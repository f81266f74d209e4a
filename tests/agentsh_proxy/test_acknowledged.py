"""It is known of a connection whether the other side's kernel has all that was sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from agentsh_proxy.acknowledged import acknowledged


class Transport:
    """What is asked of asyncio's."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def get_extra_info(self, name: str) -> Any:
        return self.own if name == "socket" else None


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        own = socket.create_connection(listening.getsockname())
        other, _ = listening.accept()
        with own, other:
            yield own, other


def test_what_arrived_is_acknowledged_whether_it_is_read_or_not(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    own, other = pair
    own.sendall(b"one")
    own.sendall(b"two")
    other.recv(6, socket.MSG_WAITALL)
    assert acknowledged(Transport(own))  # type: ignore[arg-type]


@pytest.mark.parametrize("heard", [False, True])
def test_what_came_after_the_other_side_hung_up_is_not(
    pair: tuple[socket.socket, socket.socket], *, heard: bool
) -> None:
    own, other = pair
    own.sendall(b"one")
    other.recv(3, socket.MSG_WAITALL)
    other.close()
    own.sendall(b"two" * 50)
    if heard:
        with suppress(ConnectionError):
            own.recv(1)
    assert not acknowledged(Transport(own))  # type: ignore[arg-type]


def test_where_nobody_can_tell_it_counts_as_arrived() -> None:
    assert acknowledged(Transport(None))  # type: ignore[arg-type]
    one, other = socket.socketpair()
    with one, other:
        assert acknowledged(Transport(one))  # type: ignore[arg-type]
    assert acknowledged(Transport(one))  # type: ignore[arg-type]
