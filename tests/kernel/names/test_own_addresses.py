"""The addresses of this host's interfaces are known, both families, those of this network namespace."""

from __future__ import annotations

import subprocess
from ipaddress import ip_address

import pytest
from netns import box

from agentsh_net.kernel.names.own_addresses import is_local, own_addresses


@pytest.mark.kernel
def test_the_interfaces_addresses_are_ours_and_the_far_ends_are_not() -> None:
    def inside() -> frozenset[object]:
        box.there()
        return own_addresses()

    found = box.in_box(inside)
    assert {ip_address(a) for a in ("127.0.0.1", "::1", box.HERE_V4, box.HERE_V6)} <= found
    assert ip_address(box.THERE_V4[0]) not in found


@pytest.mark.kernel
def test_the_addresses_of_a_clusters_services_are_not_this_hosts() -> None:
    def inside() -> frozenset[object]:
        commands = "link add kube-ipvs0 type veth peer name other\naddr add 10.96.0.1/32 dev kube-ipvs0\naddr add fd00:96::1/128 dev kube-ipvs0"
        subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True)
        return own_addresses()

    assert {str(a) for a in box.in_box(inside)} == {"127.0.0.1", "::1"}


def test_without_privilege_loopback_is_known_too() -> None:
    assert ip_address("127.0.0.1") in own_addresses()


@pytest.mark.kernel
def test_what_the_kernel_takes_for_itself_is_local_on_any_interface_and_in_any_range() -> None:
    def inside() -> list[bool]:
        box.there()
        commands = "link add kube-ipvs0 type veth peer name other\naddr add 10.96.0.1/32 dev kube-ipvs0\nroute add local 10.55.0.0/16 dev lo"
        subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True)
        asked = ("127.0.0.1", "127.9.9.9", "::1", box.HERE_V4, box.HERE_V6, "10.96.0.1", "10.55.1.2")
        far = (box.THERE_V4[0], box.THERE_V6[0], "192.0.2.1", "2001:db8::1")
        return [is_local(ip_address(address)) for address in (*asked, *far)]

    assert box.in_box(inside) == [True] * 7 + [False] * 4
