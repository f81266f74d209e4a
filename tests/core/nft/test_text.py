"""The text says what the JSON says: the kernel makes the same table of either, and what cannot be said is an error."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest
from netns import box

from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.core.network.plane import Endpoint, Fate, Plan, Rule
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.core.nft import text as nft_text
from agentsh_net.core.nft.sockets import Sockets
from agentsh_net.kernel.nft.library import _opened

FATES = {
    ("10.0.0.1", 0): Rule(Fate.DENY, ("bad",)),
    ("fd00::1", 0): Rule(Fate.DENY, ("bad", "worse")),
    ("10.0.0.2", 443): Rule(Fate.DENY, ("bad",)),
    ("10.0.0.3", 443): Rule(Fate.TAG, ("good",)),
    ("fd00::3", 443): Rule(Fate.TAG, ("good",)),
    ("127.0.0.1", 9000): Rule(Fate.DENY, ("local",)),
    ("10.0.0.4", 443): Rule(Fate.DENY, (), providers=("openai",)),
    ("::1", 11434): Rule(Fate.DENY, (), providers=("ollama",)),
}
RULES = {Endpoint(canonical(ip_address(a)), port): rule for (a, port), rule in FATES.items()}
PLAN = Plan(3, RULES, 0x00A50000, 0x00FF0000)
WITH_USER = Sockets(worker_uid=990)


def normal(listing: str) -> list[Any]:
    """Return a listing without what counts up."""
    return [undynamic(x) for x in json.loads(listing)["nftables"] if "metainfo" not in x]


def undynamic(value: Any) -> Any:
    """Return it without what counts up, and without the one flag of sets that nftables 1.0.6 does not know in JSON."""
    if isinstance(value, dict):
        return {k: undynamic(v) for k, v in value.items() if k not in {"handle", "packets", "bytes"}}
    if isinstance(value, list):
        return [undynamic(v) for v in value if v != "dynamic"]
    return value


def both_ways() -> tuple[list[Any], list[Any]]:
    library, listings = _opened(), []
    smaller = replace(PLAN, generation=4, rules=dict(list(RULES.items())[:3]))
    step = nft_ruleset.change(PLAN, smaller, diff(PLAN, smaller), nflog_group=5, sockets=WITH_USER)
    for run in (lambda t: library.json_cmd(undynamic(t)), lambda t: library.cmd(nft_text.render(t))):
        library.cmd("add table inet agentsh_net; add table inet agentsh_net_bridge")
        for transaction in (
            nft_ruleset.fill(PLAN, nflog_group=5, sockets=WITH_USER),
            nft_ruleset.fill(PLAN, nflog_group=5, sockets=WITH_USER, table=nft_ruleset.BRIDGE),
            step.widen,
            step.narrow,
        ):
            code, _, complaint = run(transaction)
            assert code == 0, complaint
        listing = ["nft", "-j", "list", "table", "inet", "agentsh_net"]
        listings.append(subprocess.run(listing, capture_output=True, text=True, check=True).stdout)
        library.cmd("delete table inet agentsh_net; delete table inet agentsh_net_bridge")
    return normal(listings[0]), normal(listings[1])


@pytest.mark.kernel
def test_the_kernel_makes_the_same_table_of_either() -> None:
    by_json, by_text = box.in_box(both_ways)
    assert by_json == by_text
    assert len(by_json) > 40


def test_what_json_cannot_say_is_there_as_text() -> None:
    cgroups = Sockets("a/sessions", "a/workers", ".session", (2,))
    wanted = replace(PLAN, sessions_only=True)
    for plan, table in ((PLAN, nft_ruleset.TABLE), (wanted, nft_ruleset.BRIDGE)):
        text = nft_text.render(nft_ruleset.fill(plan, nflog_group=5, sockets=cgroups, table=table))
        assert 'socket cgroupv2 level 2 "a/' in text


def test_a_cgroup_is_asked_for_by_level_and_path() -> None:
    (match,) = Sockets("a/sessions", "", ".session", (2,)).of_sessions()
    assert nft_text._statement(match) == 'socket cgroupv2 level 2 "a/sessions"'


@pytest.mark.parametrize(
    "expression", [{"queue": {"num": 1}}, {"match": {"op": "==", "left": {"rt": 1}, "right": 1}}]
)
def test_what_is_not_known_is_an_error(expression: dict[str, Any]) -> None:
    rule = {"family": "inet", "table": "t", "chain": "c", "expr": [expression]}
    with pytest.raises(ValueError, match="a "):
        nft_text.render({"nftables": [{"add": {"rule": rule}}]})
