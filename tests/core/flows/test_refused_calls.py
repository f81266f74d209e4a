"""What is told of refused calls is remembered by place, each once, and neither memory nor one place's list grows without a bound."""

from __future__ import annotations

import pytest

from agentsh_net.core.flows import refused_calls
from agentsh_net.core.flows.refused_calls import RefusedCalls


def all_of(calls: RefusedCalls, place: str) -> list[str]:
    return [told for number in range(9) if (told := calls.told(place, number)) is not None]


def test_each_place_has_its_own_once():
    calls = RefusedCalls()
    for told in ("a", "b", "a"):
        calls.note("one", told)
    calls.note("other", "c")
    assert (all_of(calls, "one"), all_of(calls, "other"), all_of(calls, "none")) == (["a", "b"], ["c"], [])


def test_the_first_are_forgotten_and_the_rest_stay():
    calls = RefusedCalls()
    for told in ("a", "b", "c"):
        calls.note("one", told)
    calls.forget("one", 2)
    assert all_of(calls, "one") == ["c"]
    calls.forget("one", 7)
    calls.forget("none", 1)
    assert (all_of(calls, "one"), calls._by_place, calls._size) == ([], {}, 0)


@pytest.mark.parametrize(("bound", "most"), [("MAX_PLACES", 3), ("MAX_BYTES", 30)])
def test_the_oldest_places_make_room(monkeypatch, bound, most):
    monkeypatch.setattr(refused_calls, bound, most)
    calls = RefusedCalls()
    for number in range(9):
        calls.note(f"p{number}", "0123456789")
    assert list(calls._by_place) == ["p6", "p7", "p8"]
    assert calls._size == 30


def test_one_place_has_so_many(monkeypatch):
    monkeypatch.setattr(refused_calls, "MAX_CALLS", 2)
    calls = RefusedCalls()
    for told in "abc":
        calls.note("one", told)
    assert all_of(calls, "one") == ["a", "b"]
