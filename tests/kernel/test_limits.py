"""What a process may not do is told with what that costs and what mends it, and what it may do is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from netns import box

from agentsh_net.core.configuration.settings import Network
from agentsh_net.kernel import limits

EVERYTHING = (1 << 41) - 1
NET_ADMIN = 1 << 12
SETUID_SETGID = 1 << 7 | 1 << 6


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc that shows the host's processes, seen by root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "2").mkdir()
    (tmp_path / "2/comm").write_text("kthreadd\n")
    return tmp_path


def missing(network: Network, held: int, proc: Path) -> list[str]:
    return [limit.missing for limit in limits.limits(network, held=held, proc=proc, hierarchy=proc)]


def test_root_on_its_host_lacks_nothing(host: Path) -> None:
    assert missing(Network(), EVERYTHING, host) == []


def test_a_sidecar_is_told_of_everything_it_lacks(host: Path) -> None:
    (host / "2/comm").unlink()
    assert missing(Network(scope="netns"), NET_ADMIN, host) == [
        "no eBPF (network.scope is netns)",
        "another process namespace than the host's",
        "no CAP_SETUID and CAP_SETGID",
    ]


def test_root_of_a_namespace_of_its_own_making_is_told_that_nobody_else_is_in_it(host: Path) -> None:
    (host / "self").mkdir()
    (host / "self/setgroups").write_text("deny\n")
    assert missing(Network(mode="off"), EVERYTHING, host) == ["other users in this user namespace"]
    assert not limits.may_change_user(EVERYTHING, host)
    (host / "self/setgroups").write_text("allow\n")
    assert missing(Network(mode="off"), EVERYTHING, host) == []


def test_on_a_host_each_capability_is_missed_for_what_it_does(host: Path) -> None:
    assert missing(Network(), NET_ADMIN | SETUID_SETGID, host) == ["no CAP_SYS_ADMIN", "no CAP_SYS_PTRACE"]


def test_a_containers_part_of_the_hierarchy_is_not_taken_for_the_hosts(host: Path) -> None:
    (host / "cgroup.events").write_text("populated 1\n")
    assert missing(Network(), EVERYTHING, host) == ["another cgroup root than the host's"]
    assert missing(Network(layers=("nftables",)), EVERYTHING, host) == []
    assert missing(Network(mode="off"), EVERYTHING, host) == []


def test_a_network_namespace_of_ones_own_is_not_taken_for_the_hosts(host: Path) -> None:
    for process in ("1", "self"):
        (host / process / "ns").mkdir(parents=True)
        (host / process / "ns/net").write_text("")
    assert missing(Network(), EVERYTHING, host) == ["another network namespace than the host's"]
    assert missing(Network(layers=("ebpf",)), EVERYTHING, host) == []
    assert missing(Network(scope="netns"), EVERYTHING, host) == ["no eBPF (network.scope is netns)"]
    (host / "1/ns/net").unlink()
    (host / "1/ns/net").hardlink_to(host / "self/ns/net")
    assert missing(Network(), EVERYTHING, host) == []


@pytest.mark.kernel
def test_in_a_cgroup_namespace_the_root_is_a_part() -> None:
    def inside() -> bool:
        return "another cgroup root than the host's" in [each.missing for each in limits.limits(Network())]

    assert box.in_box(inside)


def test_without_the_network_layer_only_the_workers_count(host: Path) -> None:
    assert missing(Network(mode="off"), 0, host) == ["no CAP_SETUID and CAP_SETGID"]
    assert missing(Network(mode="off"), SETUID_SETGID, host) == []


def test_who_is_not_root_has_nobody_to_become(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing(Network(mode="off"), 0, host) == []


def test_either_half_of_the_identity_is_not_enough() -> None:
    assert limits.may_change_user(SETUID_SETGID)
    assert not limits.may_change_user(1 << 7)
    assert not limits.may_change_user(1 << 6)


def test_every_limit_reads_as_a_cost_and_a_remedy(host: Path) -> None:
    for limit in limits.limits(Network(scope="netns"), held=0, proc=host):
        assert str(limit) == f"{limit.missing}: {limit.cost} (fix: {limit.remedy})"
        assert limit.cost
        assert limit.remedy


def test_who_may_load_no_program_has_left_none() -> None:
    assert not limits.may_load_programs(NET_ADMIN | SETUID_SETGID)
    assert limits.may_load_programs(1 << 39)
    assert limits.may_load_programs(1 << 21)


def test_what_shares_an_endpoint_with_a_provider_is_named() -> None:
    limit = limits.beside_provider(["corp"], ["evil", "worse"])
    assert "evil, worse" in limit.missing
    assert "lead to the LLM provider corp" in limit.cost


def test_what_shares_an_address_with_a_name_server_is_named() -> None:
    limit = limits.name_server("10.0.0.53", ("evil", "worse"))
    assert str(limit).startswith("an address of their own for evil, worse: 10.0.0.53 is a name server")


def test_a_kernel_that_does_not_say_whose_sockets_are_is_missed_for_sessions(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.clients, "are_shown", lambda: False)
    assert missing(Network(), EVERYTHING, host) == [
        "no word of the kernel's whose a TCP socket is (sock_diag)"
    ]
    assert missing(Network(mode="off"), EVERYTHING, host) == []
