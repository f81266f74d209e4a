"""Totals have names that the link can carry."""

from __future__ import annotations

from agentsh_proxy.counting import Counts

from agentsh_net.core.links import link


def test_totals_survive_the_link():
    counts = Counts(requests=3)
    counts.calls_judged += 2
    (payload,) = link.Framer(1 << 20).feed(link.encode(link.Counters(counts.totals())))
    told = link.decode_from_worker(payload).counters
    assert told["requests"] == 3
    assert told["calls_judged"] == 2


def test_histograms_and_reasons_are_told_place_by_place():
    counts = Counts()
    for seconds in (0.001, 0.01, 0.3, 1000):
        counts.head.observe(seconds)
    counts.uninspected["frame_too_long"] += 2
    told = counts.totals()
    places = [told[f"head.{n}"] for n in range(len(link.LATENCY_BOUNDS) + 1)]
    assert (places[0], places[4], places[-1], sum(places), told["head.ms"]) == (2, 1, 1, 4, 1000311)
    assert told["uninspected.frame_too_long"] == 2
    assert all(type(value) is int for value in told.values())
    assert len(told) < link.MAX_COUNTERS


def test_an_answer_that_came_at_once_is_in_both_histograms():
    at_once, apart = Counts(), Counts()
    at_once.at_once.observe(0.02)
    apart.head.observe(0.02)
    apart.answer.observe(0.02)
    assert at_once.totals() == apart.totals()
