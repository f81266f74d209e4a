"""Percentiles are nearest-rank ones over the last gaps; the count is of all time."""

from __future__ import annotations

from agentsh_net.core.network.gap import Gaps, GapSummary


def test_nothing_measured_is_zero() -> None:
    assert Gaps().summary() == GapSummary(0, 0.0, 0.0, 0.0)


def test_percentiles_are_nearest_rank() -> None:
    gaps = Gaps()
    for n in range(100, 0, -1):
        gaps.add(n / 1000)
    assert gaps.summary() == GapSummary(100, 0.05, 0.099, 0.1, 5.05)


def test_only_the_last_are_kept_but_all_are_counted() -> None:
    gaps = Gaps(kept=2)
    for seconds in (9.0, 0.1, 0.2):
        gaps.add(seconds)
    assert gaps.summary() == GapSummary(3, 0.1, 0.2, 0.2, 9.3)


def test_a_clock_that_was_set_back_gives_no_negative_gap() -> None:
    gaps = Gaps()
    gaps.add(-5)
    assert gaps.summary().max == 0.0
