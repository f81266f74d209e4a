"""Arguments count for a block only where clients that go by index, by position and by merging all agree on which it is."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.anthropic.roster import MAX_BLOCKS, Block, Roster
from agentsh_net.core.dialects.machine import State


def roster(*blocks: tuple[int | None, State]) -> Roster:
    made = Roster()
    for index, state in blocks:
        made.add(Block(index, state))
    return made


@pytest.mark.parametrize(
    ("state", "live"),
    [
        (State.PLAIN, False),
        (State.REPLACED, False),
        (State.HELD, True),
        (State.PASSING, True),
        (State.STOPLESS, True),
        (State.DONE, True),
    ],
)
def test_a_block_is_live_while_the_client_has_or_may_get_its_call(state: State, *, live: bool) -> None:
    assert Block(0, state).live is live


def test_arguments_for_a_block_at_its_own_index_and_position_are_in_place() -> None:
    made = roster((0, State.PLAIN), (1, State.HELD))
    assert made.misplaced(1) == ""
    assert made.misplaced(0) == ""


def test_arguments_without_an_index_or_a_block_are_misplaced() -> None:
    made = roster((0, State.PLAIN), (None, State.HELD))
    assert made.misplaced(None) == "arguments without an index"
    assert made.misplaced(7) == "arguments for no block"


@pytest.mark.parametrize("state", [State.HELD, State.DONE])
def test_arguments_that_reach_another_live_call_by_position_are_misplaced(state: State) -> None:
    made = roster((0, State.PLAIN), (5, state))
    made.add(Block(1, State.PLAIN))
    assert made.misplaced(1) == "arguments for two calls, by index and by position"


def test_arguments_that_reach_a_refused_call_by_position_do_no_harm() -> None:
    made = roster((0, State.PLAIN), (5, State.REPLACED))
    made.add(Block(1, State.PLAIN))
    assert made.misplaced(1) == ""


def test_a_block_that_took_the_index_of_a_call_gets_no_arguments() -> None:
    call = Block(3, State.DONE)
    made = Roster()
    made.add(call)
    made.released(call)
    made.add(Block(3))
    assert made.misplaced(3) == "arguments for a call whose index was used again"
    assert made.reused(3)


def test_an_index_under_which_something_else_had_arguments_is_no_calls() -> None:
    made = roster((0, State.PLAIN))
    assert not made.reused(0)
    made.argued(0)
    made.argued(None)
    assert made.reused(0)
    assert not made.reused(None)


def test_a_block_is_found_by_its_last_index_and_by_its_own_position() -> None:
    first, second, unseen = Block(4), Block(4), Block(4)
    made = Roster()
    made.add(first)
    made.add(second)
    made.add(unseen, positioned=False)
    assert made.named(4) is unseen
    assert made.named(0) is None
    assert (made.position(first), made.position(second)) == (0, 1)


def test_a_roster_is_full_at_its_bound_whoever_sees_the_blocks() -> None:
    made = Roster()
    for _ in range(MAX_BLOCKS):
        assert not made.full
        made.add(Block(0), positioned=False)
    assert made.full
