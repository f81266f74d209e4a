"""What is remembered of the last plan makes the next one cheaper, never another."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.config import parse
from agentsh_net.core.network import kernel_plan
from agentsh_net.core.network.addresses import Address, canonical
from agentsh_net.core.network.claims import Claims
from agentsh_net.core.network.plane import Endpoint, Fate, Rule
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins

PLACES = ("192.0.2.1", "192.0.2.2", "2001:db8::1", "127.0.0.1", "127.0.0.9", "::1", "::ffff:192.0.2.1")

policies = st.fixed_dictionaries(
    {
        "servers": st.dictionaries(
            st.sampled_from("abcd"),
            st.tuples(st.sampled_from((443, 8000)), st.lists(st.sampled_from(PLACES), max_size=3)),
        ),
        "denied": st.sets(st.sampled_from("abcd")),
        "shared": st.sampled_from(("block", "tag", "sni")),
    }
)


def judged(drawn: dict[str, Any]) -> tuple[Snapshot, dict[str, tuple[Address, ...]]]:
    servers = [
        {"id": name, "type": "http", "url": f"https://{name}.test:{port}/mcp"}
        for name, (port, _) in drawn["servers"].items()
    ]
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {"servers": servers, "denied_servers": [{"id": n} for n in sorted(drawn["denied"])]}
        },
        "network": {"mode": "enforce", "on_shared_address": drawn["shared"]},
    }
    config = parse(mapping)
    addresses = {name: tuple(map(ip_address, found)) for name, (_, found) in drawn["servers"].items()}
    return Snapshot(1, "sha256:0", config, Registry(config.sandbox.mcp.servers), Pins(), mapping), addresses


@given(st.lists(policies, min_size=1, max_size=5))
def test_a_plan_is_the_same_whatever_came_before_it(drawn: list[dict[str, Any]]) -> None:
    claims = Claims()
    for snapshot, addresses in map(judged, drawn):
        remembered = kernel_plan.build(snapshot, addresses, claims=claims)
        assert remembered == kernel_plan.build(snapshot, addresses)


def test_what_did_not_change_is_not_made_again() -> None:
    claims = Claims()
    first, addresses = judged(
        {
            "servers": {"a": (443, ["192.0.2.1"]), "b": (443, ["192.0.2.2"])},
            "denied": {"a"},
            "shared": "block",
        }
    )
    servers = first.registry.servers
    before = {c.server.id: c for c in claims.of(servers, addresses, {"a"})}
    moved = addresses | {"b": (ip_address("192.0.2.9"),)}
    after = {c.server.id: c for c in claims.of(servers, moved, {"a"})}
    assert after["a"] is before["a"]
    assert after["b"] is not before["b"]


def test_a_claim_has_a_denied_server_on_every_port_and_another_on_its_own() -> None:
    snapshot, addresses = judged(
        {
            "servers": {"a": (443, ["192.0.2.1"]), "b": (8000, ["192.0.2.2"])},
            "denied": set(),
            "shared": "block",
        }
    )
    denied, tagged = Claims().of(snapshot.registry.servers, addresses, {"a"})
    assert denied.rules == {Endpoint(canonical(ip_address("192.0.2.1"))): Rule(Fate.DENY, ("a",))}
    assert tagged.rules == {Endpoint(canonical(ip_address("192.0.2.2")), 8000): Rule(Fate.TAG, ("b",))}


def test_loopback_is_never_one_servers_alone() -> None:
    snapshot, addresses = judged({"servers": {"a": (443, ["127.0.0.9"])}, "denied": {"a"}, "shared": "block"})
    (claim,) = Claims().of(snapshot.registry.servers, addresses, {"a"})
    assert claim.rules == {}
    assert len(claim.homes) == 1
