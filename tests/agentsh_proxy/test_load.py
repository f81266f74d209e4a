"""What a worker holds of unfinished bodies has a bound of its own."""

from __future__ import annotations

from agentsh_proxy.load import MAX_LOAD, Load


def test_it_is_too_much_past_the_bound() -> None:
    load = Load()
    load.size = MAX_LOAD
    assert not load.too_much
    load.size += 1
    assert load.too_much
