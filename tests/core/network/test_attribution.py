"""A record becomes the event of whom it concerns: a denied server before others, a provider where no server explains it, and why."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import pytest
from fake_policy import A, Policy, policy, server

from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.attribution import attribute, remote
from agentsh_net.core.network.kernel_plan import build
from agentsh_net.core.network.plane import ConnectRecord, Fate, Finding, Plan


def record(fate: Fate = Fate.DENY, **changes: object) -> ConnectRecord:
    fields = {
        "layer": "ebpf", "fate": fate, "address": canonical(A), "port": 443, "protocol": 6, "family": 2, "time_ns": 1,
        "generation": 7, "pid": 42, "uid": 1000, "comm": "curl", "exe": "/usr/bin/curl", "cgroup": "/x", "container_id": "c",
    }  # fmt: skip
    return ConnectRecord(**(fields | changes))


def test_a_refused_connect_is_an_event_with_who_where_and_why() -> None:
    snapshot = policy(server("bad"), denied="bad")
    event = attribute(snapshot, record(), build(snapshot, {"bad": [A]}))
    assert (event.action, event.would, event.reason, event.rule) == (
        "block",
        None,
        "bad is denied",
        "denied_servers[0]",
    )
    assert (event.remote_addr, event.remote_host) == ("203.0.113.1:443", "bad.example")
    assert (event.server_id, event.server_type, event.candidates) == ("bad", "http", ["bad"])
    assert (event.layer, event.family, event.protocol) == ("ebpf", "inet", "tcp")
    assert (event.pid, event.uid, event.comm, event.exe) == (42, 1000, "curl", "/usr/bin/curl")
    assert (event.cgroup, event.container_id) == ("/x", "c")


def test_an_allowed_connect_is_an_event_that_allows() -> None:
    snapshot = policy(server("good"))
    event = attribute(snapshot, record(Fate.TAG), build(snapshot, {"good": [A]}))
    assert (event.action, event.would, event.server_id) == ("allow", None, "good")


@pytest.mark.parametrize(
    "settings", [{"mode": "tag"}, {"mode": "enforce", "audit": True}], ids=["mode tag", "audit"]
)
def test_a_denied_server_that_was_only_watched_would_be_blocked(settings: dict[str, object]) -> None:
    snapshot = policy(server("bad"), denied="bad", **settings)
    event = attribute(snapshot, record(Fate.TAG), build(snapshot, {"bad": [A]}))
    assert (event.action, event.would, event.reason) == ("allow", "block", "bad is denied")


def test_an_observed_denial_was_not_a_refusal() -> None:
    snapshot = policy(server("bad"), denied="bad")
    event = attribute(snapshot, record(observed=True), build(snapshot, {"bad": [A]}))
    assert (event.action, event.would) == ("allow", "block")


def test_a_shared_endpoint_blames_the_denied_server_and_names_the_others() -> None:
    snapshot = policy(server("good"), server("zzz"), denied="zzz")
    event = attribute(snapshot, record(), build(snapshot, {"zzz": [A], "good": [A]}))
    assert (event.server_id, event.candidates) == ("zzz", ["good", "zzz"])
    assert event.reason == "zzz is denied (endpoint shared by good, zzz)"


def test_a_record_of_an_older_plan_is_told_as_such() -> None:
    snapshot = policy(server("good"))
    gone = attribute(snapshot, record(generation=3), build(snapshot, {}))
    assert (gone.action, gone.server_id, gone.remote_host) == ("block", "", "")
    assert "generation 3" in gone.reason
    allowed_by_now = attribute(snapshot, record(generation=3, port=443), build(snapshot, {"good": [A]}))
    assert allowed_by_now.action == "block"
    assert allowed_by_now.reason == "refused under policy generation 3; today's policy says: good is allowed"


@pytest.mark.parametrize(
    ("address", "shown"), [("203.0.113.1", "203.0.113.1:443"), ("64:ff9b::1.2.3.4", "1.2.3.4:443"), ("2001:db8::1", "[2001:db8::1]:443")]
)  # fmt: skip
def test_addresses_are_shown_as_people_write_them(address: str, shown: str) -> None:
    assert remote(canonical(ip_address(address)), 443) == shown


@pytest.mark.parametrize(("number", "name"), [(17, "udp"), (262, "mptcp"), (99, "99")])
def test_a_protocol_is_named_or_numbered(number: int, name: str) -> None:
    assert attribute(policy(), record(protocol=number), Plan()).protocol == name


@pytest.mark.parametrize("name", ["127.0.0.1", "127.9.9.9", "192.0.2.7"])
def test_what_was_refused_at_any_name_of_this_host_is_the_local_servers(name: str) -> None:
    judged = policy(server("local", 9000), denied="local")
    made = build(judged, {"local": [ip_address("127.0.0.1")]})
    record = ConnectRecord("nftables", Fate.DENY, canonical(ip_address(name)), 9000, 6, 2, time_ns=0)
    assert attribute(judged, record, made).server_id == "local"
    passed = replace(record, address=canonical(ip_address("192.0.2.7")), fate=Fate.TAG)
    assert attribute(judged, passed, made).server_id == "", "it was let pass, so it is no name of this host"


def test_what_was_refused_at_an_ipv6_name_of_this_host_is_the_local_servers_too() -> None:
    judged = policy(server("other"), server("local", 9000), denied="local")
    made = build(judged, {"local": [ip_address("::1")]})
    record = ConnectRecord("nftables", Fate.DENY, ip_address("2001:db8::5"), 9000, 6, 10, time_ns=0)
    event = attribute(judged, record, made)
    assert (event.server_id, event.remote_host) == ("local", "local.example")


def test_an_address_in_another_spelling_is_the_same_servers_and_a_session_is_told_where_there_is_one() -> (
    None
):
    snapshot = policy(server("bad"), denied="bad")
    nat64 = record(address=ip_address("64:ff9b::203.0.113.1"))
    for seen, session in ((nat64, "default"), (replace(nat64, session_id="s-1"), "s-1")):
        event = attribute(snapshot, seen, build(snapshot, {"bad": [A]}))
        assert (event.server_id, event.session_id) == ("bad", session)


def shared_policy() -> tuple[Policy, Plan]:
    snapshot = policy(server("bad"), server("good"), denied="bad", shared="sni")
    return snapshot, build(snapshot, {"bad": [A], "good": [A]})


def read(finding: Finding, sni: str = "", fate: Fate = Fate.DENY) -> ConnectRecord:
    return ConnectRecord("ebpf", fate, canonical(A), 443, 6, 2, 0, finding=finding, sni=sni)


def test_a_read_name_says_whose_connection_it_was() -> None:
    snapshot, plan = shared_policy()
    event = attribute(snapshot, read(Finding.NAMED, "bad.example"), plan)
    assert (event.action, event.server_id, event.candidates, event.sni) == (
        "block",
        "bad",
        ["bad"],
        "bad.example",
    )
    assert event.reason == "bad is denied (endpoint shared by bad, good)"
    allowed = attribute(snapshot, read(Finding.NAMED, "good.example", Fate.TAG), plan)
    assert (allowed.action, allowed.would, allowed.server_id) == ("allow", None, "good")
    assert (allowed.remote_host, allowed.candidates) == ("good.example", ["good"])
    strange = attribute(snapshot, read(Finding.NAMED, "nobody.example"), plan)
    assert (strange.server_id, strange.candidates) == ("bad", ["bad", "good"])


def test_what_cannot_be_read_is_blamed_on_the_denied_server_and_the_reason_says_why() -> None:
    snapshot, plan = shared_policy()
    event = attribute(snapshot, read(Finding.NAMELESS), plan)
    assert (event.action, event.server_id, event.candidates) == ("block", "bad", ["bad", "good"])
    assert event.reason == (
        "endpoint shared by bad, good: a ClientHello without a server name, and network.on_unknown_sni is block; bad is denied"
    )
    quic = attribute(snapshot, replace(read(Finding.NAMELESS), finding=None, protocol=17), plan)
    assert "udp, which shows no server name" in quic.reason
    elsewhere = attribute(snapshot, replace(read(Finding.NAMELESS, fate=Fate.TAG), port=8443), plan)
    assert (elsewhere.action, elsewhere.would) == ("allow", "block")
    assert elsewhere.reason == (
        "endpoint shared by bad, good: a ClientHello without a server name, and no denied server is known at this port; bad is denied"
    )


def test_where_the_unknown_may_pass_the_reason_says_why_a_forgotten_connection_does_not() -> None:
    snapshot, plan = shared_policy()
    plan = replace(plan, rules={e: replace(rule, fate=Fate.SNI_OPEN) for e, rule in plan.rules.items()})
    assert attribute(snapshot, read(Finding.UNSEEN), plan).reason == (
        "endpoint shared by bad, good: a connection whose beginning was not seen, and to which no server has answered yet; bad is denied"
    )
