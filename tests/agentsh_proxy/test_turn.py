"""What asks for the end of a turn is called once, in order, with one wake-up of the loop."""

from __future__ import annotations

from agentsh_proxy.turn import Turn


def test_one_turn_is_one_callback_for_everybody():
    soon, called = [], []
    turn = Turn(soon.append)
    turn.at_end(lambda: called.append(1))
    turn.at_end(lambda: called.append(2))
    assert (len(soon), called) == (1, [])
    soon.pop()()
    assert called == [1, 2]


def test_what_is_asked_for_while_a_turn_ends_belongs_to_the_next():
    soon, called = [], []
    turn = Turn(soon.append)
    turn.at_end(lambda: turn.at_end(lambda: called.append("next")))
    soon.pop()()
    assert called == []
    soon.pop()()
    assert called == ["next"]
