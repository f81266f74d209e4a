"""Others' rulesets, in the chains and at the priorities in which they ship, neither open what is denied nor close what is allowed.

Nor does their reload take ours away where tables can be owned (Linux 6.9); elsewhere what it takes away is seen at once and put back.
The chains on hooks and the first rules behind them are those that firewalld 1.3 and ufw 0.36 had in the kernel and Debian's nftables.service
ships, and that Docker's and kube-proxy's documents tell of. None of these programs runs here.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
from pathlib import Path

import pytest
from attacks.net.test_processes import CONTAINER, ROUTER, shell
from netns import box
from netns.scene import at, attempt, drain, listening, opened, outcome, plan
from netns.stage import BAD, GOOD, PLANES
from netns.tampering import owner

from agentsh_net.core.configuration.settings import Network
from agentsh_net.kernel import host
from agentsh_net.kernel.nft.writer import TOO_OLD

pytestmark = pytest.mark.kernel

FIREWALLD = """
add table inet firewalld
delete table inet firewalld
table inet firewalld {
	chain mangle_PREROUTING { type filter hook prerouting priority mangle + 10; policy accept; }
	chain nat_PREROUTING { type nat hook prerouting priority dstnat + 10; policy accept; }
	chain nat_POSTROUTING { type nat hook postrouting priority srcnat + 10; policy accept; }
	chain nat_OUTPUT { type nat hook output priority -90; policy accept; }
	chain filter_PREROUTING {
		type filter hook prerouting priority filter + 10; policy accept;
		icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
		meta nfproto ipv6 fib saddr . mark . iif oif missing drop
	}
	chain filter_INPUT {
		type filter hook input priority filter + 10; policy accept;
		ct state { established, related } accept
		ct status dnat accept
		iifname "lo" accept
		ct state invalid drop
		reject with icmpx admin-prohibited
	}
	chain filter_OUTPUT {
		type filter hook output priority filter + 10; policy accept;
		ct state { established, related } accept
		oifname "lo" accept
		ip6 daddr { ::/96, ::ffff:0.0.0.0/96, 2002:a00::/24 } reject with icmpv6 addr-unreachable
	}
}
"""
UFW = """
add table ip filter
delete table ip filter
table ip filter {
	chain INPUT { type filter hook input priority filter; policy drop; jump ufw-before-input; }
	chain FORWARD { type filter hook forward priority filter; policy drop; }
	chain OUTPUT { type filter hook output priority filter; policy accept; jump ufw-before-output; }
	chain ufw-before-input {
		iifname "lo" accept
		ct state related,established accept
		ct state invalid drop
	}
	chain ufw-before-output {
		oifname "lo" accept
		ct state related,established accept
		ct state new accept
	}
}
"""
DOCKER = """
add table ip nat
delete table ip nat
add table ip filter
delete table ip filter
table ip nat {
	chain DOCKER { tcp dport 8080 dnat to 172.17.0.2:80; }
	chain PREROUTING { type nat hook prerouting priority dstnat; policy accept; fib daddr type local jump DOCKER; }
	chain OUTPUT { type nat hook output priority -100; policy accept; ip daddr != 127.0.0.0/8 fib daddr type local jump DOCKER; }
	chain POSTROUTING { type nat hook postrouting priority srcnat; policy accept; ip saddr 172.17.0.0/16 masquerade; }
}
table ip filter {
	chain DOCKER-USER { return; }
	chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; ct state related,established accept; }
}
"""
KUBE_PROXY = """
add table ip kube-proxy
delete table ip kube-proxy
table ip kube-proxy {
	chain service { meta l4proto tcp dnat to 172.18.0.2:6443; }
	map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.1 . tcp . 443 : goto service }; }
	chain services { ip daddr . meta l4proto . th dport vmap @service-ips; }
	chain nat-output { type nat hook output priority -100; policy accept; jump services; }
	chain nat-prerouting { type nat hook prerouting priority dstnat; policy accept; jump services; }
	chain nat-postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		meta mark & 0x00004000 == 0 return
		meta mark set meta mark ^ 0x00004000
		masquerade fully-random
	}
	chain filter-output { type filter hook output priority -110; policy accept; ct state new ip daddr 10.96.0.9 reject; }
	chain filter-forward { type filter hook forward priority -110; policy accept; ct state new ip daddr 10.96.0.9 reject; }
}
"""
SERVICE = """
flush ruleset
table inet filter {
	chain input { type filter hook input priority filter; }
	chain forward { type filter hook forward priority filter; }
	chain output { type filter hook output priority filter; }
}
"""
RULESETS = {
    "firewalld": FIREWALLD,
    "ufw": UFW,
    "docker": DOCKER,
    "kube-proxy": KUBE_PROXY,
    "nftables.service": SERVICE,
}


def beside(ruleset: str, *, plain: bool) -> list[tuple[str, str, str, bool]]:
    """Load a ruleset beside ours, and again; return after each what a denied and an allowed server said, and what was seen of ours."""
    far = box.there()
    _servers = [listening(far, address) for address in (BAD, GOOD)]
    kernel = host.open_kernel(Network(mode="enforce", layers=("nftables",), required=True))
    assert kernel._nft is not None
    if plain:
        kernel._nft._writer.plain = TOO_OLD
    kernel.apply(plan(deny=(at(BAD),), tag=(at(GOOD),)))
    kernel.disturbed()
    seen = []
    for _ in ("started", "reloaded"):
        subprocess.run(["nft", "-f", "-"], input=ruleset, text=True, check=True)
        noticed = kernel.disturbed()
        (status,) = (s for s in kernel.status() if s.layer == "nftables")
        taken = "" if status.in_force else status.reason
        if taken:
            kernel.reassert()
        said = attempt(BAD), attempt(GOOD)
        assert {str(record.address) for record in drain(kernel, 2)} == {
            str(at(a).address) for a in (BAD, GOOD)
        }
        seen.append((*said, taken and ("owned" if owner() else "plain"), noticed))
    return seen


@pytest.mark.parametrize("plain", [False, True], ids=["owned", "plain"])
@pytest.mark.parametrize("name", RULESETS)
def test_it_holds_beside_others_rules_and_through_their_reloads(name: str, *, plain: bool) -> None:
    seen = box.in_box(lambda: beside(RULESETS[name], plain=plain))
    assert {(bad, good) for bad, good, _, _ in seen} == {("ECONNREFUSED", "connected")}
    assert all(noticed for *_, noticed in seen)
    taken = {whose for *_, whose, _ in seen} - {""}
    flushes = "flush ruleset" in RULESETS[name]
    assert taken <= ({"plain"} if flushes else set())
    assert bool(taken) == flushes or not plain


OFFLOAD = """
table inet fast {
	flowtable shortcut { hook ingress priority 0; devices = { here, outside }; }
	chain forward {
		type filter hook forward priority 0;
		ip protocol tcp flow add @shortcut
	}
}
"""


def offloaded(layers: tuple[str, ...]) -> tuple[bool, int, str] | None:
    """Have others' rules put a container's connection past the hooks, deny its server, and return what arrives and how the sweep ends it."""
    far, container = box.there(), box.new_namespace()
    shell(ROUTER.format(fd=container.fd), container.fd)
    container.call(lambda: shell(CONTAINER))
    far.call(lambda: shell(f"ip route add 10.98.0.0/24 via {box.HERE_V4}"))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    subprocess.run(["modprobe", "-qa", "nft_flow_offload", "nf_flow_table_inet"], check=False)
    made = subprocess.run(["nft", "-f", "-"], input=OFFLOAD, text=True, capture_output=True)
    if "No such file" in made.stderr:
        return None
    assert not made.returncode, made.stderr
    _agent = container.call(lambda: subprocess.Popen(["sleep", "infinity"]))  # by whom the namespace is found
    kernel = opened(plan(1), *layers)
    with listening(far, BAD) as server, container.socket(socket.AF_INET) as client:
        client.connect((BAD, 443))
        peer, _ = server.accept()

        def carried() -> bool:
            client.send(b"x")
            return bool(select.select([peer], [], [], box.SLOWNESS)[0]) and peer.recv(1) == b"x"

        for _ in range(3):
            assert carried()
            peer.send(b"y")
            client.recv(1)
        denied = plan(2, deny=(at(BAD),))
        kernel.apply(denied)
        arrives = carried()
        ended = kernel.sweep(denied)
        said = outcome(lambda: client.send(b"x"))
        return arrives, len(ended), said


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_containers_connection_that_others_rules_put_past_the_hooks_is_ended_all_the_same(
    layers: tuple[str, ...],
) -> None:
    found = box.in_box(offloaded, layers)
    if found is None:
        pytest.skip(f"this kernel ({os.uname().release}) has no flow tables: the rule cannot be made")
    arrives, ended, said = found
    assert not arrives, (
        "what a flow table hands on is seen at the device, or by eBPF at the container's socket"
    )
    assert ended == 1
    assert said != "connected"
