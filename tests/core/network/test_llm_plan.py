"""A provider's endpoint is refused or tagged for everybody but our own proxy, and its neighbours are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

import pytest

from agentsh_net.core.audit.events import LlmDirectConnection, NetworkConnection
from agentsh_net.core.configuration import config as configuration
from agentsh_net.core.network import attribution, kernel_plan, llm_plan
from agentsh_net.core.network.addresses import canonical, plain
from agentsh_net.core.network.plane import ConnectRecord, Endpoint, Fate, Plan, Rule
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins

A = ip_address("10.0.0.1")
AT = canonical(A)
HERE = {llm_plan.key("corp"): [A]}


def snapshot(
    direct: str,
    denied: tuple[str, ...] = (),
    *,
    audit: bool = False,
    urls: Mapping[str, str] = MappingProxyType({}),
    **network: Any,
) -> Snapshot:
    url = {
        "same": "https://same.test/mcp",
        "other": "https://other.test:8443/mcp",
        "corp": "https://llm.corp/v1",
    } | dict(urls)
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {
                "enforce_policy": not audit,
                "servers": [
                    {"id": "same", "type": "http", "url": url["same"]},
                    {"id": "other", "type": "http", "url": url["other"]},
                ],
                "denied_servers": [{"id": s} for s in denied],
            }
        },
        "proxy": {"providers": {"corp": {"dialect": "openai", "base_url": url["corp"]}}},
        "network": {"mode": "enforce", "llm_direct": direct, **network},
    }
    config = configuration.parse(mapping)
    return Snapshot(1, "d", config, Registry(config.sandbox.mcp.servers), Pins(), mapping)


def built(snapshot: Snapshot, **addresses: Any) -> dict[tuple[str, int], Rule]:
    plan = kernel_plan.build(snapshot, HERE | {name: [A] for name in addresses})
    return {(str(plain(e.address)), e.port): rule for e, rule in plan.rules.items()}


def test_off_plans_nothing_and_looks_up_what_a_denied_name_could_cut_off() -> None:
    assert llm_plan.watched(snapshot("off").config)[llm_plan.key("corp")] == "llm.corp"
    assert built(snapshot("off")) == {}
    assert llm_plan.watched(snapshot("off", mode="tag").config) == {}
    assert llm_plan.watched(snapshot("tag", mode="off").config) == {}
    literals = configuration.parse({"version": 1, "network": {"mode": "enforce"}})
    assert llm_plan.watched(literals) == {}


@pytest.mark.parametrize(("on_shared", "fate"), [("block", Fate.DENY), ("sni", Fate.SNI), ("tag", Fate.TAG)])
def test_a_denied_name_that_leads_to_a_provider_never_cuts_off_our_own_proxy(
    on_shared: str, fate: Fate
) -> None:
    """And nobody at the provider's other ports; the denied server is refused, or judged by its name, all the same."""
    off = snapshot("off", ("same",), on_shared_address=on_shared)
    assert built(off, same=1) == {("10.0.0.1", 443): Rule(fate, ("same",), shared=True, providers=("corp",))}
    elsewhere = snapshot("off", ("other",), on_shared_address=on_shared)
    assert built(elsewhere, other=1) == {("10.0.0.1", 8443): Rule(Fate.DENY, ("other",))}


def test_off_means_that_nobody_is_told_of_at_an_allowed_servers_endpoint() -> None:
    assert built(snapshot("off"), same=1) == {("10.0.0.1", 443): Rule(Fate.TAG, ("same",))}


def test_where_names_decide_between_servers_our_own_proxy_still_reaches_the_provider_there() -> None:
    twins = snapshot("off", ("same",), urls={"other": "https://other.test/mcp"}, on_shared_address="sni")
    assert built(twins, same=1, other=1)["10.0.0.1", 443] == Rule(
        Fate.SNI, ("other", "same"), shared=True, providers=("corp",)
    )


def test_who_is_refused_at_a_providers_endpoint_is_named() -> None:
    places = HERE | {"same": [A], "other": [ip_address("10.0.0.2")]}
    both = kernel_plan.build(snapshot("off", ("same", "other")), places)
    assert llm_plan.beside(both.rules) == {("same",): ("corp",)}
    for nobodys in (
        snapshot("off"),
        snapshot("tag"),
        snapshot("off", ("same",), on_shared_address="sni"),
    ):
        assert llm_plan.beside(kernel_plan.build(nobodys, places).rules) == {}
    alone = kernel_plan.build(snapshot("refuse"), HERE)
    assert llm_plan.beside(alone.rules) == {}


@pytest.mark.parametrize(
    ("on_shared", "direct", "rule"),
    [
        ("block", "off", None),
        ("sni", "off", Rule(Fate.SNI_OPEN, ("same",), shared=True)),
        ("sni", "tag", None),
    ],
)
def test_hearsay_denies_nothing_at_a_providers_address_but_the_name(
    on_shared: str, direct: str, rule: Rule | None
) -> None:
    plan = kernel_plan.build(snapshot(direct, ("same",), on_shared_address=on_shared), HERE, {"same": [A]})
    assert plan.rules.get(Endpoint(AT)) == rule
    assert not any(r.fate is Fate.DENY for r in plan.rules.values())


def test_every_provider_is_looked_up_under_a_key_that_no_server_has() -> None:
    watched = kernel_plan.watched_hosts(snapshot("tag").config)
    assert watched["*corp"] == "llm.corp"
    assert watched["*anthropic"] == "api.anthropic.com"
    assert watched["same"] == "same.test"


@pytest.mark.parametrize(
    ("direct", "audit", "fate"),
    [("tag", False, Fate.TAG), ("refuse", False, Fate.DENY), ("refuse", True, Fate.TAG)],
)
def test_a_provider_is_looked_after_at_its_port_and_our_own_proxy_is_exempt(
    direct: str, fate: Fate, *, audit: bool
) -> None:
    rules = built(snapshot(direct, audit=audit))
    assert rules == {("10.0.0.1", 443): Rule(fate, (), providers=("corp",))}
    assert rules["10.0.0.1", 443].unless_ours


def test_a_denied_server_at_a_providers_address_is_denied_at_its_own_port_alone() -> None:
    assert built(snapshot("tag", ("other",)), other=1) == {
        ("10.0.0.1", 443): Rule(Fate.TAG, (), providers=("corp",)),
        ("10.0.0.1", 8443): Rule(Fate.DENY, ("other",)),
    }


@pytest.mark.parametrize(
    ("direct", "denied", "on_shared", "fate", "shared"),
    [
        ("refuse", ("same",), "block", Fate.DENY, False),
        ("tag", (), "block", Fate.TAG, False),
        ("tag", ("same",), "block", Fate.DENY, True),
        ("tag", ("same",), "tag", Fate.TAG, True),
        ("refuse", (), "block", Fate.DENY, True),
        ("refuse", (), "tag", Fate.TAG, True),
        ("refuse", (), "sni", Fate.SNI, True),
        ("tag", ("same",), "sni", Fate.SNI, True),
    ],
)
def test_at_an_endpoint_of_both_the_shared_rule_decides_and_the_proxy_still_passes(
    direct: str, denied: tuple[str, ...], on_shared: str, fate: Fate, *, shared: bool
) -> None:
    rules = built(snapshot(direct, denied, on_shared_address=on_shared), same=1)
    assert rules == {("10.0.0.1", 443): Rule(fate, ("same",), shared=shared, providers=("corp",))}


UNNAMED = {"same": "http://same.test:443/mcp"}
NAMELESS = {"corp": "http://llm.corp:443/v1"}


@pytest.mark.parametrize(
    ("direct", "denied", "urls", "on_shared", "fate"),
    [
        ("tag", ("same",), {}, "sni", Fate.SNI_OPEN),
        ("tag", ("same",), UNNAMED, "sni", Fate.SNI),  # whoever says no name may mean the denied server
        ("refuse", (), UNNAMED, "sni", Fate.SNI_OPEN),  # the provider's clients all say its name
        ("refuse", (), NAMELESS, "sni", Fate.SNI),  # whoever says no name may mean the provider
        ("refuse", (), NAMELESS, "tag", Fate.TAG),
    ],
)
def test_where_the_unknown_passes_it_does_not_if_it_may_be_who_is_refused(
    direct: str, denied: tuple[str, ...], urls: dict[str, str], on_shared: str, fate: Fate
) -> None:
    judged = snapshot(direct, denied, urls=urls, on_shared_address=on_shared, on_unknown_sni="tag")
    assert built(judged, same=1)["10.0.0.1", 443] == Rule(fate, ("same",), shared=True, providers=("corp",))


@pytest.mark.parametrize(("on_shared", "fate"), [("block", Fate.DENY), ("sni", Fate.DENY), ("tag", Fate.TAG)])
def test_on_this_host_no_name_tells_a_provider_from_a_server(on_shared: str, fate: Fate) -> None:
    here = [ip_address("127.0.0.1")]
    plan = kernel_plan.build(
        snapshot("refuse", on_shared_address=on_shared), {llm_plan.key("corp"): here, "same": here}
    )
    assert plan.rules[Endpoint(canonical(here[0]), 443)] == Rule(
        fate, ("same",), shared=True, providers=("corp",)
    )


@pytest.mark.parametrize("url", ["http://llm.corp:443/v1", "https://10.0.0.1/v1"])
def test_a_provider_that_no_client_names_has_no_name_in_the_plan(url: str) -> None:
    judged = snapshot("refuse", urls={"corp": url}, on_shared_address="sni")
    assert not {"llm.corp", "10.0.0.1"} & {name.host for name in llm_plan.names(judged.config)}


def test_a_provider_is_told_of_where_nothing_is_enforced() -> None:
    assert built(snapshot("tag", mode="tag")) == {("10.0.0.1", 443): Rule(Fate.TAG, (), providers=("corp",))}


def test_a_provider_on_this_host_is_refused_by_both_its_loopback_addresses() -> None:
    plan = kernel_plan.build(snapshot("refuse"), {llm_plan.key("ollama"): [ip_address("127.0.0.1")]})
    assert {e.address for e in plan.rules} == {ip_address("::ffff:127.0.0.1"), ip_address("::1")}
    assert all(rule.unless_ours for rule in plan.rules.values())


def test_without_a_way_to_tell_our_proxy_no_provider_is_refused_and_every_server_still_is() -> None:
    plan = kernel_plan.build(snapshot("refuse", ("same", "other")), {**HERE, "same": [A], "other": [A]})
    left = kernel_plan.without_providers(plan)
    assert {(e.port, r.fate, r.server_ids) for e, r in left.rules.items()} == {
        (443, Fate.DENY, ("same",)),
        (8443, Fate.DENY, ("other",)),
    }
    assert not any(rule.unless_ours for rule in left.rules.values())


def seen(snapshot: Snapshot, rule: Rule, **more: Any) -> NetworkConnection | LlmDirectConnection:
    record = ConnectRecord(
        layer="ebpf", fate=rule.fate, address=AT, port=443, protocol=6, family=2, time_ns=1, pid=7, comm="agent",
        session_id="mine", **more,
    )  # fmt: skip
    return attribution.attribute(snapshot, record, Plan(1, {Endpoint(AT, 443): rule}))


def test_the_event_names_the_provider_and_the_session() -> None:
    event = seen(snapshot("refuse"), Rule(Fate.DENY, (), providers=("corp",)))
    assert isinstance(event, LlmDirectConnection)
    assert (event.action, event.would, event.provider, event.rule) == (
        "block",
        None,
        "corp",
        "network.llm_direct",
    )
    assert (event.session_id, event.pid, event.comm, event.remote_addr) == (
        "mine",
        7,
        "agent",
        "10.0.0.1:443",
    )


def test_in_audit_mode_it_says_what_would_have_happened() -> None:
    event = seen(snapshot("refuse", audit=True), Rule(Fate.TAG, (), providers=("corp",)))
    assert (event.action, event.would) == ("allow", "block")
    assert seen(snapshot("tag"), Rule(Fate.TAG, (), providers=("corp",))).would is None


@pytest.mark.parametrize(
    ("denied", "fate", "kind"),
    [
        (("same",), Fate.DENY, "mcp_network_connection"),
        ((), Fate.DENY, "llm_direct_connection"),
        ((), Fate.TAG, "mcp_network_connection"),
    ],
)
def test_at_an_endpoint_of_both_the_one_is_blamed_that_explains_it(
    denied: tuple[str, ...], fate: Fate, kind: str
) -> None:
    rule = Rule(fate, ("same",), shared=True, providers=("corp",))
    assert seen(snapshot("refuse", denied), rule).type == kind


def test_where_names_decide_the_providers_name_is_refused_and_the_servers_is_not() -> None:
    shared = snapshot("refuse", on_shared_address="sni", on_unknown_sni="tag")
    plan = kernel_plan.build(shared, {**HERE, "same": [A]})
    assert plan.rules[Endpoint(AT, 443)].fate is Fate.SNI_OPEN
    said = {name.host: fate for name, fate in plan.names.items()}
    assert (said["llm.corp"], said["same.test"]) == (Fate.DENY, Fate.TAG)
    assert "127.0.0.1" not in said, "an address is no name"
    tagging = snapshot("tag", ("same",), on_shared_address="sni")
    assert "llm.corp" not in {n.host for n in kernel_plan.build(tagging, {**HERE, "same": [A]}).names}
