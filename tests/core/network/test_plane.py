"""Plans are compared by value, so that applying one twice can be seen to change nothing."""

from __future__ import annotations

from ipaddress import IPv6Address

from agentsh_net.core.network.plane import Endpoint, Fate, Plan, Rule


def test_equal_plans_are_equal_whatever_the_order_of_their_rules() -> None:
    one, two = Endpoint(IPv6Address("::1")), Endpoint(IPv6Address("::2"), 80)
    deny, tag = Rule(Fate.DENY, ("a",)), Rule(Fate.TAG, ("b",))
    assert Plan(1, {one: deny, two: tag}) == Plan(1, {two: tag, one: deny})
    assert Plan(1, {one: deny}) != Plan(1, {one: tag})


def test_endpoints_sort_by_address_then_port() -> None:
    low, high = IPv6Address("::1"), IPv6Address("::2")
    assert sorted([Endpoint(high), Endpoint(low, 9), Endpoint(low)]) == [
        Endpoint(low),
        Endpoint(low, 9),
        Endpoint(high),
    ]
