"""What packets are remembered in decides nothing and is bounded: a flow by its ends and protocol, for a time, in a set of a known size."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.network.plane import Plan
from agentsh_net.core.nft import flows as nft_flows
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.core.nft import sets as nft_sets


@pytest.mark.parametrize("name", nft_flows.SETS)
def test_a_flow_is_forgotten_when_it_is_quiet_and_the_set_has_an_end(name: str) -> None:
    made = nft_flows.SETS[name]
    assert (made["timeout"], made["size"]) == (nft_flows.QUIET, nft_flows.SIZE)
    assert set(made["flags"]) == {"dynamic", "timeout"}


@pytest.mark.parametrize("name", nft_flows.SETS)
def test_a_flow_is_both_ends_and_the_protocol(name: str) -> None:
    asked = json.dumps(nft_flows.KEYS[name])
    assert all(f'"{field}"' in asked for field in ("saddr", "daddr", "l4proto", "sport", "dport"))
    assert len(nft_flows.KEYS[name]["concat"]) == len(nft_flows.SETS[name]["type"])


def test_no_set_of_flows_is_one_that_a_plan_fills() -> None:
    assert nft_flows.SETS.keys().isdisjoint(nft_sets.TYPES)
    made = json.dumps(nft_ruleset.fill(Plan(), nflog_group=5))
    assert all(f'"name": "{name}"' in made for name in nft_flows.SETS)
