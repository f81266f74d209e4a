"""A bucket gives what is in it, fills at its rate and no further, and whoever waits as long as he is told gets his token."""

from __future__ import annotations

import pytest

from agentsh_net.core.limits.token_bucket import Bucket


def test_a_full_bucket_gives_its_size_at_once_and_then_its_rate() -> None:
    bucket = Bucket.full(3, 0.5, 100.0)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(101.9)
    assert bucket.take(102.0)
    assert [bucket.take(1000.0) for _ in range(4)] == [True, True, True, False]


def test_a_clock_that_goes_back_fills_nothing_and_takes_nothing_away() -> None:
    bucket = Bucket.full(1, 1, 100.0)
    assert bucket.take(100.0)
    assert not bucket.take(50.0)
    assert not bucket.take(100.9)
    assert bucket.take(101.0)


@pytest.mark.parametrize("rate", [1 / 3, 0.1, 7 / 60, 1e6 / 60])
def test_a_token_is_there_after_the_time_that_was_told(rate: float) -> None:
    bucket, now = Bucket.full(1, rate, 0.1), 0.1
    for _ in range(1000):
        assert bucket.take(now)
        wait = bucket.wait(now)
        assert 0 < wait < 1.001 / rate
        now += wait


def test_what_is_owed_is_waited_for_and_more_than_a_bucket_holds_comes_from_a_full_one() -> None:
    bucket = Bucket.full(10, 2)
    assert bucket.wait(0.0, 1000) == 0.0
    bucket.tokens = -10.0
    assert bucket.wait(0.0) == 5.5
    assert bucket.wait(0.0, 1000) == 10.0
    assert bucket.wait(6.0, 2) == 0.0
