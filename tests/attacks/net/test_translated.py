"""Row 18 the other way round: an address that is denied, and is another by the time its packets leave.

A Service of a cluster, a port that a container engine publishes: whoever asks for it is refused, and the event says what was asked for.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from attacks.net.test_processes import CONTAINER, ROUTER, TCP, UDP, shell
from attacks.net.test_routes import nft
from netns import box
from netns.scene import at, attempt, drain, listening, opened, outcome
from netns.stage import NFT, OTHER, OTHER6, PLANES

from agentsh_net.core.network import attribution
from agentsh_net.core.network.plane import Fate, Plan, Rule

pytestmark = pytest.mark.kernel

SERVICE, SERVICE6, PUBLISHED, OPEN = "10.94.0.9", "fd00:94::9", 8080, 8081
# As kube-proxy and container engines write it: for this host's own connections, and for those that come in.
NAT = f"""
table inet nat {{
	chain asked {{
		ip daddr {SERVICE} meta l4proto {{ tcp, udp }} dnat ip to {OTHER}
		ip6 daddr {SERVICE6} meta l4proto tcp dnat ip6 to {OTHER6}
		ip daddr != 127.0.0.0/8 fib daddr type local tcp dport {{ {PUBLISHED}, {OPEN} }} dnat ip to {OTHER}:443
	}}
	chain out {{ type nat hook output priority -100; jump asked; }}
	chain in {{ type nat hook prerouting priority -100; jump asked; }}
	chain back {{ type nat hook postrouting priority 100; ip daddr {OTHER} masquerade; }}
}}
"""
CONTAINER6 = "ip addr add fd00:98::2/64 dev inside nodad; ip route add default via fd00:98::1"


def datagram(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return outcome(lambda: client.sendto(b"x", (address, 443)))


def asked(layers: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str], list[tuple[str, str, str]]]:
    """Ask for denied addresses that lead elsewhere; return who was told what, what innocents were, and the events."""
    far, container = box.there(), box.new_namespace()
    shell(ROUTER.format(fd=container.fd) + "ip addr add fd00:98::1/64 dev outside nodad", container.fd)
    container.call(lambda: shell(CONTAINER + CONTAINER6))
    far.call(
        lambda: shell(
            f"ip route add 10.98.0.0/24 via {box.HERE_V4}; ip route add fd00:98::/64 via {box.HERE_V6}"
        )
    )
    for file in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        Path(f"/proc/sys/net/{file}").write_text("1")
    shell(f"ip route add {SERVICE}/32 via {OTHER}; ip -6 route add {SERVICE6}/128 via {OTHER6}")
    servers = [listening(far, OTHER), listening(far, OTHER6), socket.create_server(("0.0.0.0", 9000))]
    nft(NAT)
    before = {
        attempt(SERVICE),
        attempt(SERVICE6),
        attempt(box.HERE_V4, PUBLISHED),
        container.call(lambda: attempt(SERVICE)),
    }
    assert before == {"connected"}, before
    rules = {at(a): Rule(Fate.DENY, ("service",)) for a in (SERVICE, SERVICE6)}
    rules |= {
        at(a, port): Rule(Fate.DENY, ("here",))
        for a in ("127.0.0.1", box.HERE_V4)
        for port in (PUBLISHED, 9000)
    }
    wanted = Plan(1, rules)
    kernel = opened(wanted, *layers)
    said = {
        "tcp": attempt(SERVICE),
        "tcp6": attempt(SERVICE6),
        "udp": datagram(SERVICE),
        "published": attempt(box.HERE_V4, PUBLISHED),
        "container": container.call(lambda: attempt(SERVICE)),
        "container6": container.call(lambda: attempt(SERVICE6)),
    }
    found = {
        (attribution.remote(r.address, r.port), r.layer, rule.server_ids[0])
        for r in drain(kernel, len(said))
        if (rule := attribution.rule_of(r, wanted))
    }
    innocent = {
        "another published port": attempt(box.HERE_V4, OPEN),
        "what is behind": attempt(OTHER),
    }
    if layers == NFT:  # to eBPF whoever is of this machine is no stranger, in whatever namespace
        # Whom policy denies this host's server is this host, and not whoever else may ask it for something.
        innocent["a neighbour"] = far.call(lambda: attempt(box.HERE_V4, 9000))
        innocent["a neighbour, published"] = far.call(lambda: attempt(box.HERE_V4, PUBLISHED))
    assert servers
    return said, innocent, sorted(found)


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_denied_address_that_becomes_another_is_refused_and_told_by_what_was_asked_for(
    layers: tuple[str, ...],
) -> None:
    said, innocent, found = box.in_box(asked, layers)
    first = layers[0]
    assert {said.pop("udp")} == UDP[first]
    assert set(said.values()) == TCP[first]
    assert set(innocent.values()) == {"connected"}
    assert found == sorted(
        (where, first, server)
        for where, server in (
            (f"{SERVICE}:443", "service"), (f"[{SERVICE6}]:443", "service"), (f"{box.HERE_V4}:{PUBLISHED}", "here"),
        )
    )  # fmt: skip
