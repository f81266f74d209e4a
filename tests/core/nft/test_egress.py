"""The rules of default-deny: whose packets are judged, what they may be for in every spelling, and nothing of it while it is off."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv6Network

from netns.scene import at

from agentsh_net.core.network.plane import Egress, Endpoint, Fate, Plan, Prefix, Rule
from agentsh_net.core.nft import egress as nft_egress
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.core.nft import sets as nft_sets
from agentsh_net.core.nft.sockets import Sockets

SOCKETS = Sockets("agentsh-net/sessions", "agentsh-net/workers", ".session", (2,), worker_uid=99)
RULES = {
    at("10.0.0.1", 443): Rule(Fate.TAG, ("good",), declared=True),
    at("10.0.0.2"): Rule(Fate.ALLOW, (), declared=True),
    at("10.0.0.3"): Rule(Fate.DENY, ("bad",)),
}
REFUSING = Plan(1, RULES, egress=Egress(refuse=True))


def made(plan: Plan) -> dict[str, list[str]]:
    used = nft_sets.room(plan.rules).used
    found: dict[str, list[str]] = {}
    for chain, expressions in nft_egress.rules(plan, used, [6, 17], 5, SOCKETS):
        found.setdefault(chain, []).append(json.dumps(expressions))
    return found


def chains(plan: Plan) -> set[str]:
    commands = nft_ruleset.fill(plan, nflog_group=5, sockets=SOCKETS)["nftables"]
    return {c["add"]["chain"]["name"] for c in commands if "chain" in c.get("add", {})}


def test_while_it_is_off_there_is_neither_a_chain_nor_a_rule() -> None:
    off = replace(REFUSING, egress=None)
    assert made(off) == {}
    assert chains(REFUSING) - chains(off) == {"egress", "declared", "undeclared"}


def test_only_sessions_are_judged() -> None:
    assert ["sessions" in rule and '"goto"' in rule for rule in made(REFUSING)["egress"]] == [True]


def test_in_a_sidecar_everybody_is_judged_but_the_proxy_and_what_the_kernel_says_by_itself() -> None:
    rules = made(replace(REFUSING, egress=Egress(refuse=True, everybody=True)))["egress"]
    assert ["return" in rule for rule in rules] == [True, False, True, True, False]
    assert "workers" in rules[0]
    assert "skuid" in rules[1]
    assert "143" in rules[2]


def test_what_is_declared_stands_in_sets_beside_what_is_done_there() -> None:
    held = {name: len(keys) for name, keys in nft_sets.keys(REFUSING).items() if keys}
    assert held == {
        "deny4": 1,
        "deny6": 2,
        "tag4_port": 1,
        "tag6_port": 1,
        "allow4": 1,
        "allow6": 2,
        "allow4_port": 1,
        "allow6_port": 1,
    }
    rules = made(REFUSING)["declared"]
    assert all(any(f'"@{name}"' in rule for rule in rules) for name in held if name.startswith("allow"))
    assert not any("@deny" in rule or "@tag" in rule for rule in rules)
    assert '{"goto": {"target": "undeclared"}}' in rules[-1]


def test_a_prefix_is_compared_with_in_every_spelling() -> None:
    prefixes = (Prefix(IPv6Network("::ffff:10.0.0.0/104"), 22), Prefix(IPv6Network("2001:db8::/32")))
    rules = made(replace(REFUSING, egress=Egress(refuse=True, prefixes=prefixes)))["declared"]
    written = [(p["addr"], p["len"], '"right": 22' in rule) for rule in rules for p in _prefixes(rule)]
    assert written == [
        ("2002::", 16, False),  # the mask under which 6to4 is looked up
        ("10.0.0.0", 8, True),
        ("64:ff9b::a00:0", 104, True),
        ("2002:a00::", 24, True),
        ("2001:db8::", 32, False),
    ]


def _prefixes(rule: str) -> list[dict[str, object]]:
    rights = (e["match"]["right"] for e in json.loads(rule) if "match" in e)
    return [r["prefix"] for r in rights if isinstance(r, dict) and "prefix" in r]


def test_it_refuses_or_tells_and_the_log_says_that_no_rule_did() -> None:
    assert any("deny-undeclared:1" in rule for rule in made(REFUSING)["undeclared"])
    telling = made(replace(REFUSING, egress=Egress(refuse=False)))["undeclared"]
    assert any("tag-undeclared:1" in rule for rule in telling)
    assert not any("reject" in rule or "drop" in rule for rule in telling)


def test_an_endpoint_of_no_fate_is_in_no_set_but_the_declared() -> None:
    rules = {Endpoint(at("10.0.0.2").address): Rule(Fate.ALLOW, (), declared=True)}
    assert {name for name, keys in nft_sets.keys(Plan(1, rules)).items() if keys} == {"allow4", "allow6"}
