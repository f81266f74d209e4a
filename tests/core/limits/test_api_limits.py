"""A provider's minute is shared out once: estimates are charged before, what they missed after, and nothing is lost in a reload."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import ProviderLimits
from agentsh_net.core.limits.api_limits import MAX_DEBT_MINUTES, ApiLimits


def limits(requests: float = 0, tokens: float = 0) -> ApiLimits:
    return ApiLimits({"p": ProviderLimits(requests, tokens)})


def test_requests_of_a_minute_then_one_as_each_becomes_free() -> None:
    made = limits(requests=60)
    assert [made.admit("p", 0, 0.0) for _ in range(60)] == [0.0] * 60
    assert made.admit("p", 0, 0.0) == pytest.approx(1)
    assert made.admit("p", 0, 1.0) == 0
    assert made.admit("p", 0, 1.0) == pytest.approx(1)


def test_what_is_refused_costs_nothing() -> None:
    made = limits(requests=2, tokens=100)
    assert made.admit("p", 80, 0.0) == 0
    assert made.admit("p", 80, 0.0) == pytest.approx(36)
    assert made.admit("p", 20, 0.0) == 0


def test_an_answer_settles_the_estimate_up_and_down() -> None:
    made = limits(tokens=600)
    assert made.admit("p", 100, 0.0) == 0
    made.settle("p", 800, 0.0)
    assert made.admit("p", 100, 0.0) == pytest.approx(40)
    made.settle("p", -900, 0.0)
    assert made.admit("p", 600, 0.0) == 0


def test_debt_is_bounded() -> None:
    made = limits(tokens=60)
    made.settle("p", 10**9, 0.0)
    assert made.admit("p", 1, 0.0) <= (MAX_DEBT_MINUTES + 1) * 60


def test_more_than_a_minute_holds_goes_through_a_full_bucket_and_leaves_debt() -> None:
    made = limits(tokens=60)
    assert made.admit("p", 100, 0.0) == 0
    assert made.admit("p", 1, 0.0) == pytest.approx(41)


def test_no_limit_is_no_limit() -> None:
    assert [limits().admit("p", 10**9, 0.0), limits(requests=1).admit("other", 1, 0.0)] == [0, 0]


def test_a_reload_keeps_what_was_used() -> None:
    made = limits(requests=2, tokens=100)
    made.admit("p", 60, 0.0)
    after = made.with_limits({"p": ProviderLimits(2, 100)})
    assert after.admit("p", 60, 0.0) > 0
    assert made.with_limits({}).admit("p", 10**6, 0.0) == 0


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 5)), max_size=60))
def test_never_more_than_the_minutes_hold(asked: list[tuple[int, float]]) -> None:
    made, now, let = limits(tokens=600), 0.0, 0
    for tokens, pause in asked:
        now += pause
        if made.admit("p", tokens, now) == 0:
            let += tokens
    assert let <= 600 + now * 10 + 1e-6


def test_waiting_as_told_is_enough() -> None:
    made, now = limits(requests=7, tokens=1000), 0.0
    for _ in range(50):
        wait = made.admit("p", 333, now)
        now += wait
        assert not wait or made.admit("p", 333, now) == 0
