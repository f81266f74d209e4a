"""A server's calls stay within its rate, a call is charged once, and what is remembered is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import RateLimit, RateLimits
from agentsh_net.core.limits import ratelimit
from agentsh_net.core.limits.ratelimit import MAX_REMEMBERED, Buckets, limit_of


def buckets(rpm=60, burst=3, **per_server):
    return Buckets(RateLimits(True, rpm, burst, {k: RateLimit(*v) for k, v in per_server.items()}))


def test_the_burst_passes_at_once_and_then_the_rate_holds():
    limited = buckets(60, 3)
    assert [limited.take("a", str(i), 0.0) for i in range(5)] == [True, True, True, False, False]
    assert limited.take("a", "later", 1.0)
    assert not limited.take("a", "too soon", 1.5)


def test_servers_have_buckets_of_their_own_whatever_their_spelling():
    limited = buckets(60, 1, weather=(6, 2))
    assert limited.take("a", "1", 0.0)
    assert limited.take("b", "1", 0.0)
    assert [limited.take("Weather", str(i), 0.0) for i in range(3)] == [True, True, False]
    assert not limited.take("weather", "x", 9.0)
    assert limited.take("weather", "y", 10.0)


def test_a_call_is_charged_once_and_keeps_its_answer():
    limited = buckets(60, 1)
    assert limited.take("a", "call", 0.0)
    assert limited.take("a", "call", 0.0)
    assert not limited.take("a", "other", 0.0)
    assert not limited.take("a", "other", 60.0)  # the same call again, not a new one
    assert limited.take("a", "third", 60.0)


def test_a_call_without_a_key_is_a_call_each_time():
    limited = buckets(60, 1)
    assert limited.take("a", "", 0.0)
    assert not limited.take("a", "", 0.0)


def test_limits_that_are_off_charge_nothing():
    off = Buckets(RateLimits(False, 1, 1))
    assert all(off.take("a", str(i), 0.0) for i in range(100))


def test_a_clock_that_goes_back_gives_nothing():
    limited = buckets(60, 1)
    assert limited.take("a", "1", 100.0)
    assert not limited.take("a", "2", 0.0)
    assert not limited.take("a", "3", 100.5)


def test_the_oldest_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr(ratelimit, "MAX_REMEMBERED", 2)
    limited = buckets(0.001, 3)
    assert [limited.take("a", key, 0.0) for key in ("1", "2", "3")] == [True] * 3
    assert limited.take("a", "2", 0.0)
    assert limited.take("a", "3", 0.0)
    assert not limited.take("a", "1", 0.0)  # forgotten, so charged again
    assert MAX_REMEMBERED > 1000


def test_a_reload_keeps_what_was_used():
    old = buckets(60, 3)
    for i in range(3):
        old.take("a", str(i), 0.0)
    new = old.with_limits(RateLimits(True, 60, 100))
    assert not new.take("a", "x", 0.0)
    assert new.take("a", "0", 0.0)  # a call that was answered before
    smaller = buckets(60, 100).with_limits(RateLimits(True, 60, 2))
    assert [smaller.take("b", str(i), 0.0) for i in range(3)] == [True, True, False]


def test_the_limit_of_a_server_is_its_own_or_the_default():
    limits = RateLimits(True, 60, 10, {"Weather": RateLimit(10, 3)})
    assert limit_of(limits, "weather") == RateLimit(10, 3)
    assert limit_of(limits, "fs") == RateLimit(60, 10)


@given(st.lists(st.floats(0, 120), max_size=60))
def test_no_minute_lets_more_through_than_burst_and_rate(times):
    limited = buckets(30, 5)
    passed = [t for i, t in enumerate(sorted(times)) if limited.take("a", str(i), t)]
    for start in passed:
        assert len([t for t in passed if start <= t <= start + 60]) <= 5 + 30
