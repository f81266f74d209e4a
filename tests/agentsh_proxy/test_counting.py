"""Totals have names that the link can carry."""

from __future__ import annotations

from agentsh_proxy.counting import Counts

from agentsh_net.core import link


def test_totals_survive_the_link():
    counts = Counts(requests=3)
    counts.calls_judged += 2
    (payload,) = link.Framer(1 << 20).feed(link.encode(link.Counters(counts.totals())))
    told = link.decode_from_worker(payload).counters
    assert told["requests"] == 3
    assert told["calls_judged"] == 2
