"""What sessions may reach is what policy declares, never what it denies, and nobody's answer adds to it."""

from __future__ import annotations

from ipaddress import IPv6Network, ip_address
from typing import Any

import pytest

from agentsh_net.core.audit.events import LlmDirectConnection, NetworkConnection, UndeclaredConnection
from agentsh_net.core.configuration import config as configuration
from agentsh_net.core.network import attribution, egress, kernel_plan, llm_plan
from agentsh_net.core.network.addresses import LOOPBACKS, canonical
from agentsh_net.core.network.plane import ConnectRecord, Egress, Endpoint, Fate, Plan, Prefix
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins

GOOD, BAD, PYPI, LLM, OWN, DNS, ELSE = (canonical(ip_address(f"10.0.0.{n}")) for n in range(1, 8))
KNOWN = {"good": [GOOD], "bad": [BAD], "*>pypi.org": [PYPI], llm_plan.key("corp"): [LLM]}


def snapshot(*allow: str, sessions: str = "refuse", audit: bool = False, **network: Any) -> Snapshot:
    servers = [{"id": s, "type": "http", "url": f"https://{s}.test/mcp"} for s in ("good", "bad")]
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {"servers": servers, "denied_servers": [{"id": "bad"}], "enforce_policy": not audit}
        },
        "proxy": {"providers": {"corp": {"dialect": "openai", "base_url": "https://llm.corp/v1"}}},
        "network": {"mode": "enforce", "egress": {"sessions": sessions, "allow": list(allow)}} | network,
    }
    config = configuration.parse(mapping)
    return Snapshot(1, "d", config, Registry(config.sandbox.mcp.servers), Pins(), mapping)


def built(policy: Snapshot, **more: Any) -> Plan:
    return kernel_plan.build(policy, KNOWN, own={OWN}, name_servers={DNS}, **more)


def declared(plan: Plan) -> set[tuple[str, int]]:
    return {
        (str(e.address.ipv4_mapped or e.address), e.port) for e, rule in plan.rules.items() if rule.declared
    }


HERE = {("10.0.0.5", 0), ("127.0.0.1", 0), ("::1", 0), ("10.0.0.6", 53)}


def test_declared_are_this_host_its_name_servers_and_allowed_servers_at_their_ports() -> None:
    plan = built(snapshot())
    assert declared(plan) == {("10.0.0.1", 443)} | HERE
    assert plan.egress == Egress(refuse=True)


def test_names_addresses_and_prefixes_of_the_list_are_declared_at_one_port_or_at_all() -> None:
    plan = built(
        snapshot("pypi.org:443", "10.0.0.7", "[2001:db8::1]:22", "10.1.0.0/16:80", "2001:db8:1::/48")
    )
    assert declared(plan) - HERE == {
        ("10.0.0.1", 443),
        ("10.0.0.3", 443),
        ("10.0.0.7", 0),
        ("2001:db8::1", 22),
    }
    assert plan.egress is not None
    assert plan.egress.prefixes == (
        Prefix(IPv6Network("::ffff:10.1.0.0/112"), 80),
        Prefix(IPv6Network("2001:db8:1::/48")),
    )


@pytest.mark.parametrize("entry", ["bad.test", "10.0.0.2", "10.0.0.2:443"])
def test_a_denial_is_one_whatever_the_list_says(entry: str) -> None:
    known = KNOWN | {"*>bad.test": [BAD]}
    plan = kernel_plan.build(snapshot(entry), known)
    assert kernel_plan.find(plan, BAD, 443).fate is Fate.DENY
    assert not plan.rules[Endpoint(BAD)].declared


def test_overheard_addresses_of_a_denied_name_are_refused_at_an_allowed_names_address_too() -> None:
    plan = built(snapshot("pypi.org"), hearsay={"bad": [PYPI]})
    assert plan.rules[Endpoint(PYPI)].fate is Fate.DENY


@pytest.mark.parametrize("direct", ["off", "tag", "refuse"])
def test_a_provider_is_not_declared(direct: str) -> None:
    assert not egress.is_declared(built(snapshot(llm_direct=direct)), LLM, 443)


def test_with_open_nothing_is_declared_and_no_name_is_asked_for() -> None:
    policy = snapshot("pypi.org", sessions="open")
    plan = built(policy)
    assert (plan.egress, declared(plan)) == (None, set())
    assert "*>pypi.org" not in kernel_plan.watched_hosts(policy.config)


def test_allowed_names_are_asked_for_and_addresses_are_not() -> None:
    watched = kernel_plan.watched_hosts(snapshot("pypi.org:443", "10.0.0.7", "10.1.0.0/16").config)
    assert {key: host for key, host in watched.items() if egress.is_key(key)} == {"*>pypi.org": "pypi.org"}


@pytest.mark.parametrize(
    ("sessions", "audit", "network", "refuse"),
    [
        ("refuse", False, {}, True),
        ("refuse", True, {}, False),
        ("refuse", False, {"mode": "tag"}, False),
        ("tag", False, {}, False),
    ],
)
def test_audit_and_tag_refuse_nothing(
    sessions: str, audit: bool, network: dict[str, str], refuse: bool
) -> None:
    found = egress.of(snapshot(sessions=sessions, audit=audit, **network).config)
    assert found is not None
    assert found.refuse is refuse


def test_in_a_sidecar_everybody_is_as_a_session() -> None:
    assert egress.of(snapshot(scope="netns").config) == Egress(refuse=True, everybody=True)


@pytest.mark.parametrize(
    ("address", "port", "expected"),
    [
        ("10.0.0.1", 443, True),
        ("10.0.0.1", 444, False),
        ("10.1.2.3", 80, True),
        ("10.1.2.3", 81, False),
        ("10.2.0.0", 80, False),
        ("64:ff9b::a01:203", 80, True),
        ("127.9.9.9", 1, True),
        ("10.0.0.6", 53, True),
        ("10.0.0.6", 54, False),
    ],
)
def test_whether_an_endpoint_is_declared(address: str, port: int, expected: bool) -> None:
    assert egress.is_declared(built(snapshot("10.1.0.0/16:80")), ip_address(address), port) is expected  # type: ignore[arg-type]


def record(address: Any, *, fate: Fate = Fate.DENY, port: int = 443) -> ConnectRecord:
    return ConnectRecord("ebpf", fate, address, port, 6, 2, 0, session_id="s", undeclared=True)


@pytest.mark.parametrize(
    ("policy", "fate", "action", "would"),
    [
        (snapshot(), Fate.DENY, "block", None),
        (snapshot(audit=True), Fate.TAG, "allow", "block"),
        (snapshot(sessions="tag"), Fate.TAG, "allow", None),
    ],
)
def test_the_event_says_who_what_and_what_would_have_been(
    policy: Snapshot, fate: Fate, action: str, would: str | None
) -> None:
    event = attribution.attribute(policy, record(ELSE, fate=fate), built(policy))
    assert isinstance(event, UndeclaredConnection)
    assert (event.action, event.would, event.session_id, event.rule) == (action, would, "s", "network.egress")
    assert event.remote_addr == "10.0.0.7:443"


def test_a_denied_server_and_a_provider_are_named_where_they_are() -> None:
    policy = snapshot(llm_direct="tag")
    denied = attribution.attribute(policy, record(BAD), built(policy))
    assert isinstance(denied, NetworkConnection)
    assert denied.server_id == "bad"
    direct = attribution.attribute(policy, record(LLM), built(policy))
    assert isinstance(direct, LlmDirectConnection)
    assert (direct.provider, direct.action, direct.rule) == ("corp", "block", "network.egress")


def test_a_host_that_cannot_tell_the_proxy_keeps_what_is_declared() -> None:
    policy = snapshot("10.0.0.4", llm_direct="refuse")
    plan = kernel_plan.without_providers(built(policy))
    assert declared(plan) == {("10.0.0.1", 443), ("10.0.0.4", 0)} | HERE
    assert LOOPBACKS[0] in {e.address for e in plan.rules}
