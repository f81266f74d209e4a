"""The plan denies what policy denies and no more, and shows every narrowing."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import pytest
from fake_policy import V6, A, B, at, policy, server
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import Config, Mcp, Network, Sandbox
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.network import kernel_plan
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.kernel_plan import Diff, build, diff, find
from agentsh_net.core.network.plane import Endpoint, Fate, Name, Plan, Rule


def test_a_denied_server_is_refused_at_all_its_addresses_on_every_port() -> None:
    plan = build(policy(server("bad"), denied="bad"), {"bad": [A, V6]})
    assert plan.rules == {at(A): Rule(Fate.DENY, ("bad",)), at(V6): Rule(Fate.DENY, ("bad",))}


def test_an_allowed_server_is_tagged_at_its_port_only() -> None:
    plan = build(policy(server("good", 8443)), {"good": [A]})
    assert plan.rules == {at(A, 8443): Rule(Fate.TAG, ("good",))}


@pytest.mark.parametrize(
    "settings", [{"mode": "tag"}, {"mode": "enforce", "audit": True}], ids=["mode tag", "audit"]
)
def test_nothing_is_refused_where_the_operator_only_watches(settings: dict[str, object]) -> None:
    plan = build(policy(server("bad"), denied="bad", **settings), {"bad": [A]})
    assert plan.rules == {at(A, 443): Rule(Fate.TAG, ("bad",))}


def test_mode_off_plans_nothing_and_judges_nobody() -> None:
    off = policy(server("bad"), denied="bad", mode="off")
    assert build(off, {"bad": [A]}).rules == {}
    assert off.judged == []


def test_the_plan_carries_the_generation_and_the_mark_within_its_mask() -> None:
    snapshot = policy(server("good"))
    snapshot = replace(snapshot, config=Config(network=Network(mark=0xFFFF_FFFF, mark_mask=0x00FF_0000)))
    plan = build(snapshot, {})
    assert (plan.generation, plan.mark, plan.mark_mask) == (7, 0x00FF_0000, 0x00FF_0000)


def test_a_stdio_server_and_a_server_without_addresses_have_no_rules() -> None:
    stdio = Server("fs", Transport.STDIO, command="fs")
    assert build(policy(stdio, server("bad"), denied="fs bad"), {"fs": [A], "bad": []}).rules == {}
    assert kernel_plan.watched_hosts(Config(sandbox=Sandbox(mcp=Mcp(servers=(stdio, server("bad")))))) == {
        "bad": "bad.example"
    }


def test_two_denied_servers_on_one_address_are_one_refusal_that_names_both() -> None:
    plan = build(policy(server("b", 1), server("a", 2), denied="a b"), {"a": [A], "b": [A]})
    assert plan.rules == {at(A): Rule(Fate.DENY, ("a", "b"))}


def test_two_spellings_of_one_address_are_one_endpoint() -> None:
    spellings = [ip_address("10.0.0.1"), ip_address("::ffff:10.0.0.1"), ip_address("64:ff9b::a00:1")]
    assert build(policy(server("bad"), denied="bad"), {"bad": spellings}).rules == {
        at(spellings[0]): Rule(Fate.DENY, ("bad",))
    }


def test_a_denial_on_a_shared_address_narrows_to_the_denied_port() -> None:
    snapshot = policy(server("bad", 8443), server("good", 443), denied="bad")
    assert build(snapshot, {"bad": [A], "good": [A]}).rules == {
        at(A, 443): Rule(Fate.TAG, ("good",)),
        at(A, 8443): Rule(Fate.DENY, ("bad",)),
    }


def test_the_denial_narrows_at_the_shared_address_only() -> None:
    snapshot = policy(server("bad", 8443), server("good", 443), denied="bad")
    assert build(snapshot, {"bad": [A, B], "good": [A]}).rules[at(B)] == Rule(Fate.DENY, ("bad",))


@pytest.mark.parametrize(("choice", "fate"), [("block", Fate.DENY), ("tag", Fate.TAG)])
def test_the_operator_decides_on_a_shared_endpoint_and_the_rule_shows_it(choice: str, fate: Fate) -> None:
    snapshot = policy(server("bad"), server("good"), denied="bad", shared=choice)
    assert build(snapshot, {"bad": [A], "good": [A]}).rules == {
        at(A, 443): Rule(fate, ("bad", "good"), shared=True)
    }


def test_where_names_decide_the_plan_has_them_and_the_denied_one_counts_at_every_port_of_the_address() -> (
    None
):
    snapshot = policy(server("bad"), server("good"), server("far", 8443), denied="bad far", shared="sni")
    plan = build(snapshot, {"bad": [A], "good": [A], "far": [A, B]})
    everybody = ("bad", "far", "good")
    assert plan.rules == {
        at(A): Rule(Fate.SNI_OPEN, everybody, shared=True),
        at(A, 443): Rule(Fate.SNI, ("bad", "good"), shared=True),
        at(A, 8443): Rule(Fate.DENY, ("far",)),
        at(B): Rule(Fate.DENY, ("far",)),
    }
    assert plan.names == {
        Name("bad.example"): Fate.DENY,
        Name("far.example"): Fate.DENY,
        Name("good.example"): Fate.TAG,
    }


def test_no_names_are_planned_where_none_decides() -> None:
    assert build(policy(server("bad"), denied="bad", shared="sni"), {"bad": [A]}).names == {}
    apart = policy(server("bad"), server("good"), denied="bad", shared="sni")
    assert build(apart, {"bad": [A], "good": [B]}).names == {}


@pytest.mark.parametrize(("choice", "fate"), [("sni", Fate.DENY), ("block", Fate.DENY), ("tag", Fate.TAG)])
def test_names_do_not_decide_on_this_host_where_paths_tell_servers_apart(choice: str, fate: Fate) -> None:
    snapshot = policy(server("bad"), server("good"), denied="bad", shared=choice)
    here = ip_address("127.0.0.1")
    assert {r.fate for r in build(snapshot, {"bad": [here], "good": [here]}).rules.values()} == {fate}


def test_a_denied_server_that_no_client_names_is_refused_at_its_port_alone_beside_others() -> None:
    plain = replace(server("bad", 8080), url="http://bad.example:8080")
    made = build(policy(plain, server("good"), denied="bad", shared="sni"), {"bad": [A], "good": [A]})
    assert made.rules == {at(A, 443): Rule(Fate.TAG, ("good",)), at(A, 8080): Rule(Fate.DENY, ("bad",))}
    assert made.names == {}


endpoints = st.builds(Endpoint, st.ip_addresses(v=6), st.sampled_from([0, 443, 8443]))
rules = st.builds(Rule, st.sampled_from(list(Fate)), st.just(("a",)) | st.just(("a", "b")), st.booleans())
names = st.builds(Name, st.sampled_from(["a.test", "b.test"]), st.sampled_from([0, 443]))
plans = st.builds(
    lambda found, named: Plan(rules=found, names=named),
    st.dictionaries(endpoints, rules, max_size=8),
    st.dictionaries(names, st.sampled_from([Fate.DENY, Fate.TAG])),
)


@given(plans, plans)
def test_the_diff_leads_from_any_plan_to_any_other(old: Plan, new: Plan) -> None:
    step = diff(old, new)
    assert {
        e: r for e, r in (dict(old.rules) | dict(step.adds)).items() if e not in step.deletes
    } == new.rules
    assert not step.adds.keys() & set(step.deletes)
    assert {
        n: f for n, f in (dict(old.names) | dict(step.names)).items() if n not in step.forgotten
    } == new.names


@given(plans, plans)
def test_between_adds_and_deletes_everything_is_denied_that_both_plans_deny(old: Plan, new: Plan) -> None:
    step = diff(old, new)
    between = Plan(rules=dict(old.rules) | dict(step.adds))
    for endpoint in {*old.rules, *new.rules}:
        verdicts = [find(p, endpoint.address, endpoint.port) for p in (old, new)]
        if all(rule is not None and rule.fate is Fate.DENY for rule in verdicts):
            assert find(between, endpoint.address, endpoint.port).fate is Fate.DENY


@given(plans)
def test_the_diff_of_a_plan_with_itself_is_empty(plan: Plan) -> None:
    assert diff(plan, Plan(rules=dict(plan.rules), names=dict(plan.names))) == Diff({}, ())


def test_denial_wins_whichever_rule_of_an_address_says_it() -> None:
    deny, tag = Rule(Fate.DENY, ("bad",)), Rule(Fate.TAG, ("good",))
    for rules_ in ({at(A): deny, at(A, 443): tag}, {at(A): tag, at(A, 443): deny}):
        assert find(Plan(rules=rules_), canonical(A), 443) == deny
    assert find(Plan(rules={at(A): deny}), canonical(B), 443) is None


HERE4, HERE6 = at(ip_address("127.0.0.1"), 9000), at(ip_address("::1"), 9000)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", "::"])
def test_a_denied_server_on_this_host_is_refused_at_its_port_alone_and_at_both_loopbacks(
    address: str,
) -> None:
    made = build(policy(server("local", 9000), denied="local"), {"local": [ip_address(address)]})
    assert dict(made.rules) == dict.fromkeys((HERE4, HERE6), Rule(Fate.DENY, ("local",)))


def test_an_allowed_server_at_the_other_loopback_stays_allowed() -> None:
    servers = policy(server("four", 9000), server("six", 9000), denied="four")
    made = build(servers, {"four": [ip_address("127.0.0.1")], "six": [ip_address("::1")]})
    assert (made.rules[HERE4].fate, made.rules[HERE6].fate) == (Fate.DENY, Fate.TAG)


def test_an_allowed_server_on_this_host_is_tagged_where_it_is() -> None:
    made = build(policy(server("local", 9000)), {"local": [ip_address("127.0.0.1")]})
    assert dict(made.rules) == {HERE4: Rule(Fate.TAG, ("local",))}


def test_what_was_let_pass_to_another_address_is_not_the_local_servers() -> None:
    made = build(policy(server("local", 9000), denied="local"), {"local": [ip_address("127.0.0.1")]})
    assert find(made, canonical(ip_address("192.0.2.7")), 9000) is None


def test_hearsay_adds_denials_of_a_denied_server() -> None:
    snapshot = policy(server("bad"), denied="bad")
    assert build(snapshot, {"bad": [A]}, {"bad": [B, V6]}).rules == {
        at(A): Rule(Fate.DENY, ("bad",)),
        at(B): Rule(Fate.DENY, ("bad",)),
        at(V6): Rule(Fate.DENY, ("bad",)),
    }


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "::1"])
def test_hearsay_denies_nothing_on_this_host(address: str) -> None:
    assert build(policy(server("bad"), denied="bad"), {}, {"bad": [ip_address(address)]}).rules == {}


def test_where_names_decide_hearsay_refuses_the_name_at_a_neighbours_address_and_no_more() -> None:
    snapshot = policy(server("bad"), server("good"), server("far"), denied="bad", shared="sni")
    made = build(snapshot, {"good": [A], "far": [B]}, {"bad": [A]})
    assert made.rules == {
        at(A): Rule(Fate.SNI_OPEN, ("bad", "good"), shared=True),
        at(A, 443): Rule(Fate.TAG, ("good",)),
        at(B, 443): Rule(Fate.TAG, ("far",)),
    }
    assert made.names[Name("bad.example")] is Fate.DENY


def test_hearsay_of_a_denied_server_that_no_client_names_changes_nothing_at_a_neighbours_address() -> None:
    plain = replace(server("bad"), url="http://bad.example")
    snapshot = policy(plain, server("good"), denied="bad", shared="sni")
    assert build(snapshot, {"good": [A]}, {"bad": [A]}) == build(snapshot, {"good": [A]})


@pytest.mark.parametrize("shared", ["block", "tag"])
@pytest.mark.parametrize("liar", ["bad", "good"])
def test_hearsay_neither_shares_nor_allows_nor_denies_an_address_that_somebody_has(
    liar: str, shared: str
) -> None:
    snapshot = policy(server("bad"), server("good"), denied="bad", shared=shared)
    known = {"bad": [A], "good": [B]}
    told = build(snapshot, known, {liar: [A, B]})
    assert told == build(snapshot, known)


@pytest.mark.parametrize(("mode", "audit"), [("tag", False), ("off", False), ("enforce", True)])
def test_hearsay_denies_nothing_where_nothing_is_denied(mode: str, audit: bool) -> None:
    snapshot = policy(server("bad"), server("good"), denied="bad", mode=mode, audit=audit)
    assert build(snapshot, {}, {"bad": [A], "good": [B]}).rules == {}


@given(st.data())
def test_hearsay_never_takes_a_rule_away_or_changes_one(data: st.DataObject) -> None:
    addresses = st.lists(st.sampled_from([A, B, V6, ip_address("127.0.0.1"), ip_address("::1")]), max_size=4)
    book = st.fixed_dictionaries({}, optional=dict.fromkeys(("bad", "worse", "good"), addresses))
    shared = data.draw(st.sampled_from(["block", "tag"]))
    snapshot = policy(server("bad"), server("worse", 80), server("good"), denied="bad worse", shared=shared)
    known = data.draw(book)
    before, after = build(snapshot, known).rules, build(snapshot, known, data.draw(book)).rules
    assert {e: after.get(e) for e in before} == dict(before)
    assert all(rule.fate is Fate.DENY and not rule.shared for e, rule in after.items() if e not in before)


def test_at_a_name_servers_address_a_denied_server_is_refused_at_its_port_alone_and_that_is_told() -> None:
    snapshot = policy(server("bad", 8443), denied="bad")
    theirs = {canonical(A)}
    plan = build(snapshot, {"bad": [A, V6]}, name_servers=theirs)
    assert plan.rules == {at(A, 8443): Rule(Fate.DENY, ("bad",)), at(V6): Rule(Fate.DENY, ("bad",))}
    assert kernel_plan.spared(plan, theirs) == {canonical(A): ("bad",)}
    assert kernel_plan.spared(plan, {canonical(B)}) == {}
