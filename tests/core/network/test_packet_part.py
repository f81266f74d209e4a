"""The packet plane's part of a plan is what shared_endpoints makes of it, and the same object as long as nothing is another."""

from __future__ import annotations

from dataclasses import replace

from netns.scene import at, plan

from agentsh_net.core.network.packet_part import PacketPart
from agentsh_net.core.network.plane import Fate, Plan
from agentsh_net.core.network.shared_endpoints import without_names

WHOLE = plan(1, deny=(at("10.99.0.2"),))


def by_name() -> Plan:
    (endpoint, rule), *_ = WHOLE.rules.items()
    return replace(WHOLE, rules={endpoint: replace(rule, fate=Fate.SNI)})


def test_a_plan_in_which_no_name_decides_is_its_own_part() -> None:
    assert PacketPart().of(WHOLE, elsewhere=True) is WHOLE


def test_the_part_follows_who_reads_names() -> None:
    part, shared = PacketPart(), by_name()
    for elsewhere in (True, False, True):
        wanted = replace(without_names(shared, read_elsewhere=elsewhere), alone=not elsewhere)
        assert part.of(shared, elsewhere=elsewhere) == wanted
    assert not part.of(shared, elsewhere=True).rules


def test_the_plan_in_force_and_the_next_are_remembered_and_older_ones_told_anew() -> None:
    part, old, new, newest = PacketPart(), by_name(), by_name(), by_name()
    first = part.of(old, elsewhere=True)
    part.of(new, elsewhere=True)
    assert part.of(old, elsewhere=True) is first
    part.of(newest, elsewhere=True)
    again = part.of(old, elsewhere=True)
    assert again == first
    assert again is not first
