"""A plan becomes one transaction in our own table: denials first, marks masked, deletes last, nothing hangs on a missing set."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.core.network.plane import Endpoint, Fate, Plan, Rule
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.core.nft import sets as nft_sets
from agentsh_net.core.nft.sockets import Sockets

A, B, V6 = (canonical(ip_address(text)) for text in ("10.0.0.1", "10.0.0.2", "fd00::1"))
SOCKETS = Sockets("agentsh-net/sessions", "agentsh-net/workers", ".session", (2,))
DENY, TAG = Rule(Fate.DENY, ("bad",)), Rule(Fate.TAG, ("good",))


def plan(rules: dict[Endpoint, Rule], generation: int = 1) -> Plan:
    return Plan(generation, rules)


def commands(transaction: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [
        (verb, kind, body)
        for c in transaction["nftables"]
        for verb, x in c.items()
        for kind, body in x.items()
    ]


def elements(transaction: dict[str, Any], verb: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for did, kind, body in commands(transaction):
        if (did, kind) == (verb, "element"):
            found.setdefault(body["name"], []).extend(body["elem"])
    return found


def rules(transaction: dict[str, Any], chain: str) -> list[str]:
    return [
        json.dumps(b["expr"])
        for _, kind, b in commands(transaction)
        if kind == "rule" and b["chain"] == chain
    ]


def test_every_command_stays_in_our_own_table() -> None:
    made = nft_ruleset.fill(plan({Endpoint(A): DENY, Endpoint(V6, 443): TAG}), nflog_group=5)
    assert {(body["family"], body["table"]) for _, _, body in commands(made)} == {("inet", "agentsh_net")}


def test_an_empty_table_is_filled_and_the_table_itself_left_alone() -> None:
    made = commands(nft_ruleset.fill(plan({}), nflog_group=5))
    assert {verb for verb, _, _ in made} == {"add"}  # `add table` would be refused where it is owned
    assert {kind for _, kind, _ in made} == {"counter", "set", "chain", "rule"}


def test_a_denied_ipv4_address_is_denied_in_every_spelling_a_packet_can_have() -> None:
    made = elements(nft_ruleset.fill(plan({Endpoint(A): DENY}), nflog_group=5), "add")
    assert {name: [e["elem"]["val"] for e in found] for name, found in made.items()} == {
        "deny4": ["10.0.0.1"],
        "deny6": ["64:ff9b::a00:1", "2002:a00:1::"],
    }


def test_a_rule_with_a_port_is_an_address_and_a_port_as_numbers() -> None:
    made = elements(nft_ruleset.fill(plan({Endpoint(V6, 443): TAG}), nflog_group=5), "add")
    assert made == {"tag6_port": [{"elem": {"val": {"concat": ["fd00::1", 443]}, "comment": "good"}}]}


def test_all_elements_of_a_set_go_in_one_command() -> None:
    many = {Endpoint(canonical(ip_address(0x0A000000 + i))): DENY for i in range(1000)}
    made = commands(nft_ruleset.fill(plan(many), nflog_group=5))
    assert sum(kind == "element" for _, kind, _ in made) == 2


def test_denials_stand_above_tags_in_both_hooks() -> None:
    made = nft_ruleset.fill(
        plan({Endpoint(A): DENY, Endpoint(A, 443): TAG, Endpoint(B, 1): DENY}), nflog_group=5
    )
    for hook in ("output", "forward"):
        verdicts = ["refuse" if "refuse" in rule else "tag" for rule in rules(made, hook)]
        assert verdicts == sorted(verdicts)
        assert set(verdicts) == {"refuse", "tag"}


def test_alone_it_asks_before_translation_too_and_tags_there_alone() -> None:
    wanted = plan({Endpoint(A): DENY, Endpoint(B, 443): TAG})
    made = nft_ruleset.fill(replace(wanted, alone=True), nflog_group=5)
    chains = {b["name"]: b for _, kind, b in commands(made) if kind == "chain" and "hook" in b}
    assert {name: (c["hook"], c["prio"]) for name, c in chains.items()} == {
        "asked": ("output", -110), "asked_routed": ("prerouting", -110), "output": ("output", -10), "forward": ("forward", -10),
    }  # fmt: skip
    assert {name: ["@tag4_port" in rule for rule in rules(made, name) if "@" in rule] for name in chains} == {
        "asked": [False, True], "asked_routed": [False, True], "output": [False], "forward": [False],
    }  # fmt: skip
    assert {
        b["name"] for _, kind, b in commands(nft_ruleset.fill(wanted, nflog_group=5)) if kind == "chain"
    }.isdisjoint({"asked", "asked_routed"})


def test_what_the_network_asks_of_this_host_is_not_judged_on_its_way_in() -> None:
    here = Endpoint(canonical(ip_address("127.0.0.1")), 9000)
    wanted = replace(plan({Endpoint(A): DENY, Endpoint(B, 443): DENY, here: DENY}), alone=True)
    made = nft_ruleset.fill(wanted, nflog_group=5)
    incoming = [rule for rule in rules(made, "asked_routed") if "@" in rule]
    assert len(incoming) == 2
    assert all('"!="' in rule and '"fib"' in rule for rule in incoming)
    for chain in ("asked", "output", "forward"):
        assert not any('"!="' in rule for rule in rules(made, chain))
        assert any("@deny4_here" in rule for rule in rules(made, chain))


def test_a_lookup_stands_only_where_its_set_has_elements() -> None:
    made = nft_ruleset.fill(plan({Endpoint(V6): DENY}), nflog_group=5)
    assert not any("@" in rule for rule in rules(made, "output"))
    looked_up = [rule for rule in rules(made, "six_output") if "@" in rule]
    assert looked_up and all("@deny6" in rule for rule in looked_up)


EVERYTHING = {
    Endpoint(A): DENY, Endpoint(B, 443): TAG, Endpoint(V6, 443): TAG, Endpoint(V6, 80): DENY,
    Endpoint(B, 80): Rule(Fate.TAG, (), providers=("openai",)),
}  # fmt: skip


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("sessions_only", [True, False])
def test_no_rule_has_connections_tracked_but_to_give_them_the_mark_that_policy_wants(
    alone: bool, sessions_only: bool
) -> None:
    """Any `ct` would have the kernel track every connection of the machine."""
    wanted = replace(plan(EVERYTHING), alone=alone, sessions_only=sessions_only, sessions=("one",))
    made = nft_ruleset.fill(wanted, nflog_group=5, sockets=SOCKETS)
    assert "tag6_port" in json.dumps(made)
    assert '"ct"' not in json.dumps(made)
    marked = replace(wanted, mark=0x00A50000, mark_mask=0x00FF0000)
    asking = [
        body["expr"]
        for _, kind, body in commands(nft_ruleset.fill(marked, nflog_group=5, sockets=SOCKETS))
        if kind == "rule" and '"ct"' in json.dumps(body)
    ]
    assert asking
    assert all(list(statement) == ["mangle"] for statements in asking for statement in statements)


def test_tcp_is_reset_and_the_rest_is_told_that_it_is_prohibited_after_being_logged() -> None:
    refuse = rules(nft_ruleset.fill(plan({Endpoint(A): DENY}, generation=9), nflog_group=5), "refuse")
    assert '"prefix": "agentsh-net:deny:9", "group": 5' in refuse[1]
    assert '{"counter": "denied"}' in refuse[1]
    assert "tcp reset" in refuse[2]
    assert "icmpx" in refuse[3]


def test_marks_change_no_bit_outside_the_mask() -> None:
    wanted = replace(plan({Endpoint(A, 443): TAG}), mark=0x00A50000, mark_mask=0x00FF0000)
    tag = rules(nft_ruleset.fill(wanted, nflog_group=5), "tag")
    for where, rule in (("meta", tag[0]), ("ct", tag[1])):
        key = {where: {"key": "mark"}}
        value = {"|": [{"&": [key, 0xFF00FFFF]}, 0x00A50000]}
        assert json.loads(rule) == [{"mangle": {"key": key, "value": value}}]


def test_a_mark_that_comes_or_goes_rewrites_the_rules_and_nothing_else() -> None:
    bare = plan({Endpoint(A, 443): TAG})
    marked = replace(bare, mark=1, mark_mask=1)
    for old, new in ((bare, marked), (marked, bare)):
        widen, narrow = change(old, new)
        assert {kind for _, kind, _ in commands(widen)} == {"chain", "rule"}
        assert ('"ct"' in json.dumps(widen)) is (new is marked)
        assert narrow is None


def change(old: Plan, new: Plan) -> tuple[dict[str, Any], dict[str, Any] | None]:
    made = nft_ruleset.change(old, new, diff(old, new), nflog_group=5)
    return made.widen, made.narrow


def test_a_change_adds_in_one_transaction_and_deletes_in_the_next() -> None:
    widen, narrow = change(plan({Endpoint(A): DENY}), plan({Endpoint(B): DENY}, 2))
    assert [e["elem"]["val"] for e in elements(widen, "add")["deny4"]] == ["10.0.0.2"]
    assert elements(widen, "delete") == {}
    assert elements(narrow, "delete")["deny4"] == ["10.0.0.1"]
    assert elements(narrow, "add") == {}


def test_in_between_the_rules_look_in_the_sets_of_both_plans() -> None:
    widen, narrow = change(plan({Endpoint(V6): DENY}), plan({Endpoint(V6, 443): DENY}, 2))
    between, after = " ".join(rules(widen, "six_output")), " ".join(rules(narrow, "six_output"))
    assert '@deny6"' in between
    assert "@deny6_port" in between
    assert '@deny6"' not in after
    assert "@deny6_port" in after


def test_a_change_that_only_adds_has_nothing_to_narrow() -> None:
    assert change(plan({Endpoint(A): DENY}), plan({Endpoint(A): DENY, Endpoint(B): DENY}, 2))[1] is None


def test_a_change_leaves_the_elements_alone_that_stay() -> None:
    old = plan({Endpoint(A): DENY, Endpoint(V6): DENY})
    widen, _ = change(old, plan({Endpoint(A): DENY, Endpoint(V6): DENY, Endpoint(B): DENY}, 2))
    assert "10.0.0.1" not in json.dumps(widen)
    assert "fd00::1" not in json.dumps(widen)


def test_a_fate_that_changes_is_in_both_sets_in_between() -> None:
    widen, narrow = change(plan({Endpoint(V6, 443): TAG}), plan({Endpoint(V6, 443): DENY}, 2))
    assert list(elements(widen, "add")) == ["deny6_port"]
    assert elements(narrow, "delete") == {"tag6_port": [{"concat": ["fd00::1", 443]}]}


def test_a_comment_that_changes_goes_and_comes_in_one_transaction() -> None:
    old, new = plan({Endpoint(V6): DENY}), plan({Endpoint(V6): Rule(Fate.DENY, ("bad", "worse"))}, 2)
    widen, narrow = change(old, new)
    verbs = [verb for verb, kind, _ in commands(widen) if kind == "element"]
    assert verbs == ["delete", "add"]
    assert elements(widen, "add") == {"deny6": [{"elem": {"val": "fd00::1", "comment": "bad,worse"}}]}
    assert narrow is None


def test_a_change_of_generation_alone_rewrites_the_rules_and_no_element() -> None:
    widen, narrow = change(plan({Endpoint(A): DENY}, 1), plan({Endpoint(A): DENY}, 2))
    assert elements(widen, "add") == elements(widen, "delete") == {}
    assert "agentsh-net:deny:2" in json.dumps(widen)
    assert narrow is None


class Table:
    """What nf_tables makes of a transaction: sets of a size, which refuse what does not fit."""

    def __init__(self, made: dict[str, Any]) -> None:
        self.sizes: dict[str, int] = {}
        self.held: dict[str, dict[str, str]] = {}
        self.commit(made)

    def commit(self, transaction: dict[str, Any]) -> None:
        flushed = False
        for verb, kind, body in commands(transaction):
            name = body.get("name")
            if kind == "set" and verb == "delete":
                assert flushed, "rules look into it"
                del self.sizes[name], self.held[name]
            elif kind == "set" and name in nft_sets.TYPES:
                assert name not in self.sizes
                self.sizes[name], self.held[name] = body["size"], {}
            elif kind == "element":
                for element in body["elem"]:
                    self._one(verb, name, element)
            flushed = flushed or verb == "flush"

    def _one(self, verb: str, name: str, element: Any) -> None:
        held = self.held[name]
        if verb == "delete":
            del held[json.dumps(element)]
            return
        key = json.dumps(element["elem"]["val"])
        assert key not in held
        held[key] = element["elem"]["comment"]
        assert len(held) <= self.sizes[name]


ENDPOINTS = st.builds(
    lambda number, port: Endpoint(canonical(ip_address("10.0.0.0") + number), port),
    st.integers(0, 400),
    st.sampled_from([0, 443]),
)
PLANS = st.dictionaries(ENDPOINTS, st.sampled_from([DENY, TAG, Rule(Fate.DENY, ("bad", "worse"))]))


@given(st.lists(st.tuples(PLANS, st.integers(0, 400)), min_size=2, max_size=5))
def test_however_plans_follow_each_other_the_sets_are_the_last_ones_and_both_in_between(
    drawn: list[tuple[dict[Endpoint, Rule], int]],
) -> None:
    first, *others = [
        plan({Endpoint(canonical(ip_address("10.9.0.0") + n)): DENY for n in range(many)} | drawn_rules)
        for drawn_rules, many in drawn
    ]
    table, old, room = Table(nft_ruleset.fill(first, nflog_group=5)), first, nft_sets.room(first.rules)
    for new in others:
        before = {name: set(held) for name, held in table.held.items()}
        step = nft_ruleset.change(old, new, diff(old, new), nflog_group=5, room=room)
        table.commit(step.widen)
        wanted = Table(nft_ruleset.fill(new, nflog_group=5)).held
        assert all(table.held[name].keys() >= before[name] | wanted[name].keys() for name in wanted)
        table.commit(step.narrow or {"nftables": []})
        assert table.held == wanted
        assert (step.room.held, step.room.sizes) == (nft_sets.room(new.rules).held, table.sizes)
        old, room = new, step.room


def test_the_bridge_is_the_same_table_under_another_name() -> None:
    wanted = plan({Endpoint(A): DENY, Endpoint(V6, 443): TAG})
    bridge = json.dumps(nft_ruleset.fill(wanted, nflog_group=5, table=nft_ruleset.BRIDGE))
    assert bridge.replace("agentsh_net_bridge", "agentsh_net") == json.dumps(
        nft_ruleset.fill(wanted, nflog_group=5)
    )
    assert '"agentsh_net"' not in bridge


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        (["a", "b"], "a,b"),
        (['x"; drop'], "x???drop"),
        (["\u00fc\n"], "??"),
        (["io.github/x:1-_"], "io.github/x:1-_"),
    ],
)
def test_a_comment_is_the_server_ids_without_anything_that_could_be_syntax(
    ids: list[str], shown: str
) -> None:
    assert nft_sets.comment(ids) == shown


def test_a_comment_fits_the_kernel() -> None:
    assert len(nft_sets.comment(["server"] * 1000)) == 100


def test_an_ipv4_packet_is_asked_once_whether_it_is_ipv6() -> None:
    made = rules(
        nft_ruleset.fill(plan({Endpoint(A): DENY, Endpoint(V6, 443): DENY}), nflog_group=5), "output"
    )
    assert len(made) == 2
    assert '"@deny4"' in made[0]
    assert '"six_output"' in made[1]


def test_a_port_of_this_host_is_asked_for_before_the_address_is() -> None:
    local = Endpoint(canonical(ip_address("127.0.0.1")), 9000)
    made = rules(nft_ruleset.fill(plan({local: DENY}), nflog_group=5), "output")[0]
    assert made.index("@deny4_here") < made.index('"fib"')
    assert '"refuse"' in made


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", "ipv4"), ("::1", "ipv6")])
def test_a_port_of_this_host_is_asked_for_in_packets_of_its_family_alone(address: str, family: str) -> None:
    made = nft_ruleset.fill(plan({Endpoint(canonical(ip_address(address)), 9000): DENY}), nflog_group=5)
    v6 = family == "ipv6"
    (lookup,) = [rule for rule in rules(made, "six_output" if v6 else "output") if "_here" in rule]
    assert f'"right": "{family}"' in lookup
    assert any('"jump"' in rule for rule in rules(made, "output")) is v6


def test_an_ipv6_address_is_looked_for_in_the_site_of_6to4_too() -> None:
    (plain, site) = rules(nft_ruleset.fill(plan({Endpoint(V6): DENY}), nflog_group=5), "six_output")
    assert "prefix" not in plain
    assert '"prefix": {"addr": "2002::", "len": 16}' in site
    assert "ffff:ffff:ffff::" in site


@pytest.mark.parametrize(
    ("denied", "refused"),
    [({Endpoint(V6, 443): DENY}, True), ({Endpoint(V6): DENY, Endpoint(B, 443): DENY}, True), ({Endpoint(V6): DENY}, False), ({Endpoint(V6, 443): TAG}, False)],
)  # fmt: skip
def test_an_ipv6_packet_whose_port_cannot_be_read_is_refused_where_a_port_is_denied(
    denied: dict[Endpoint, Rule], refused: bool
) -> None:
    made = nft_ruleset.fill(replace(plan(denied), alone=True), nflog_group=5)
    for hook, whither in (("output", "refuse"), ("forward", "refuse_routed")):
        *_, readable, later, portless, rest = ["", "", "", "", *rules(made, f"six_{hook}")]
        for rule, field in ((readable, "dport"), (later, "frag-off"), (portless, "l4proto")):
            assert (f'"{field}"' in rule and rule.endswith('{"return": null}]')) is refused
        assert (rest == f'[{{"goto": {{"target": "{whither}"}}}}]') is refused
    for chain in ("six_asked", "six_asked_routed"):
        assert not any('"return"' in rule for rule in rules(made, chain))


def test_with_sessions_alone_nothing_that_is_forwarded_is_asked_for() -> None:
    wanted = replace(plan({Endpoint(A): DENY, Endpoint(V6, 443): TAG}), sessions_only=True)
    made = nft_ruleset.fill(wanted, nflog_group=5, sockets=SOCKETS)
    assert rules(made, "forward") == []
    assert '"refuse_scope"' in rules(made, "output")[0]
    assert '"tag_scope"' in rules(made, "six_output")[-1]


def test_forwarded_packets_are_asked_for_no_socket_because_the_kernel_refuses_the_question() -> None:
    rule = Rule(Fate.DENY, (), providers=("openai",))
    wanted = replace(plan({Endpoint(A): DENY, Endpoint(B, 443): rule}), sessions=("one",))
    made = nft_ruleset.fill(wanted, nflog_group=5, sockets=SOCKETS)
    reached = [
        r for chain in ("forward", "six_forward", "refuse_routed", "tag_routed") for r in rules(made, chain)
    ]
    assert not any("socket" in rule for rule in reached)
    assert '"refuse_routed"' in reached[0]


def test_a_providers_endpoint_is_asked_for_apart_and_does_not_concern_the_proxy() -> None:
    rule = Rule(Fate.DENY, (), providers=("openai",))
    made = nft_ruleset.fill(plan({Endpoint(A, 443): rule}), nflog_group=5, sockets=SOCKETS)
    assert elements(made, "add").keys() == {"deny4_port_llm", "deny6_port_llm"}
    assert '"refuse_ours"' in rules(made, "output")[0]
    exempt, rest = rules(made, "refuse_ours")
    assert "agentsh-net/workers" in exempt
    assert exempt.endswith('{"return": null}]')
    assert rest == '[{"goto": {"target": "refuse"}}]'
