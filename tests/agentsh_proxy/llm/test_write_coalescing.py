"""What is written in a turn goes out at its end: once a connection, in order, with one wake-up of the loop; and never late."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from agentsh_proxy.llm.write_coalescing import MAX_WAITING, WriteCoalescer


class Wire:
    """A transport of which the writes are kept."""

    def __init__(self, journal: list[tuple[Wire, bytes]]) -> None:
        self._journal = journal

    def write(self, data: bytes) -> None:
        self._journal.append((self, data))


@pytest.fixture
def journal():
    return []


@pytest.fixture
def soon() -> list[Callable[[], None]]:
    return []


@pytest.fixture
def turn(soon):
    return WriteCoalescer(soon.append)


def test_one_turn_is_one_callback_and_one_write_a_connection(turn, soon, journal):
    first, second = Wire(journal), Wire(journal)
    for wire, data in ((first, b"a"), (second, b"b"), (first, b"c")):
        turn.write(wire, data)
    assert (len(soon), journal) == (1, [])
    soon.pop()()
    assert journal == [(first, b"ac"), (second, b"b")]


def test_what_is_written_while_a_turn_ends_belongs_to_the_next(turn, soon, journal):
    class Echoing(Wire):
        def write(self, data: bytes) -> None:
            super().write(data)
            turn.write(other, data)

    other = Wire(journal)
    turn.write(Echoing(journal), b"a")
    soon.pop()()
    assert [data for _, data in journal] == [b"a"]
    soon.pop()()
    assert journal[1:] == [(other, b"a")]


def test_much_goes_out_at_once_and_in_order(turn, soon, journal):
    wire = Wire(journal)
    turn.write(wire, b"a")
    turn.write(wire, b"b" * MAX_WAITING)
    assert journal == [(wire, b"a" + b"b" * MAX_WAITING)]
    turn.write(wire, b"c")
    for end in soon:
        end()
    assert journal[1:] == [(wire, b"c")]


def test_what_waits_can_be_sent_now_or_not_at_all(turn, soon, journal):
    sent, dropped = Wire(journal), Wire(journal)
    turn.write(sent, b"a")
    turn.write(dropped, b"b")
    turn.flush(sent)
    assert journal == [(sent, b"a")]
    turn.drop(dropped)
    turn.flush(dropped)
    soon.pop()()
    assert journal == [(sent, b"a")]
