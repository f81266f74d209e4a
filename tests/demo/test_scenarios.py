"""The table of scenarios is whole: nine attacks, each with a theft that its own turns commit and one thing that stops it."""

from __future__ import annotations

import pytest

from agentsh_net.core.audit.event_types import EVENT_TYPES
from agentsh_net.demo import cast
from agentsh_net.demo.scenarios import BY_NAME, SCENARIOS, Run, Scenario, Way, played_in


def test_there_are_nine_numbered_in_order_and_named_apart() -> None:
    assert [scenario.number for scenario in SCENARIOS] == list(range(1, 10))
    assert len(BY_NAME) == 9


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_the_theft_is_the_last_call_and_no_honest_one(scenario: Scenario) -> None:
    assert scenario.stop.type in EVENT_TYPES
    if scenario.way is Way.AROUND:
        assert scenario.thief == (cast.PROVIDER, scenario.name)
        return
    last = scenario.scenes[-1].turns[-1]
    assert (last.server, last.tool) == scenario.thief
    assert not last.honest
    for scene in scenario.scenes:
        assert {turn.server for turn in scene.turns} <= {*scene.servers, cast.EXFIL}


def test_without_enforcement_all_are_played_and_with_it_each_once() -> None:
    assert played_in(Run.AUDIT) == SCENARIOS
    once = sorted((*played_in(Run.ENFORCED), *played_in(Run.SUGGESTED)), key=lambda s: s.number)
    assert tuple(once) == SCENARIOS
    assert [s.name for s in played_in(Run.SUGGESTED)] == ["suggested-policy"]


def test_what_worked_is_said_in_words() -> None:
    assert BY_NAME["rug-pull"].worked == "calc got the key"
    assert BY_NAME["suggested-policy"].worked == "the file was deleted"
    assert BY_NAME["around-the-proxy"].worked == "provider got the key"
