"""Both planes are one kernel to the daemon: what cannot be had is said, a failed apply changes nothing, down leaves nothing."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest
from netns import box
from netns.scene import BOTH, at, attempt, listening, opened, plan

from agentsh_net.core.errors import KernelError
from agentsh_net.core.plane import Kernel, LayerStatus
from agentsh_net.core.settings import Network
from agentsh_net.kernel import bpf_syscall, host, loader
from agentsh_net.kernel.nflog import Nflog

BAD = plan(1, deny=(at("10.99.0.2"),), tag=(at("10.99.0.3", 443),))


def unloadable() -> loader.Loaded:
    raise KernelError("the verifier said no", layer="ebpf", remedy="a newer kernel")


def by_layer(statuses: list[LayerStatus]) -> dict[str, LayerStatus]:
    return {status.layer: status for status in statuses}


@pytest.mark.kernel
def test_both_layers_are_in_force_after_the_first_apply_and_not_before() -> None:
    def inside() -> tuple[list[bool], list[str], list[bool]]:
        kernel: Kernel = host.open_kernel(Network(mode="enforce"))
        before = kernel.status()
        kernel.apply(BAD)
        return [s.in_force for s in before], [s.reason for s in before], [s.in_force for s in kernel.status()]

    before, reasons, after = box.in_box(inside)
    assert (before, after) == ([False, False], [True, True])
    assert reasons == ["no plan was applied yet"] * 2


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (Network(mode="off"), "network.mode is off"),
        (Network(layers=()), "not in network.layers"),
        (Network(scope="netns", layers=("ebpf",)), "network.scope is netns"),
    ],
)
def test_a_layer_that_nobody_asked_for_is_not_opened_and_says_why(network: Network, reason: str) -> None:
    def inside() -> tuple[LayerStatus, list[str]]:
        kernel = host.open_kernel(network, load=unloadable)
        kernel.apply(plan())
        return by_layer(kernel.status())["ebpf"], host.leftovers()

    status, left = box.in_box(inside)
    assert (status.wanted, status.in_force, status.reason) == (False, False, reason)
    assert left == []


@pytest.mark.kernel
def test_a_layer_that_cannot_be_had_is_off_with_its_remedy_and_the_other_holds() -> None:
    def inside() -> tuple[LayerStatus, str]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        kernel = host.open_kernel(Network(mode="enforce"), load=unloadable)
        kernel.apply(BAD)
        return by_layer(kernel.status())["ebpf"], attempt("10.99.0.2")

    status, result = box.in_box(inside)
    assert (status.wanted, status.in_force) == (True, False)
    assert (status.reason, status.remedy) == ("the verifier said no", "a newer kernel")
    assert result == "ECONNREFUSED"


@pytest.mark.kernel
def test_a_required_layer_that_cannot_be_had_is_fatal_and_leaves_nothing() -> None:
    def inside() -> tuple[str, list[str]]:
        try:
            host.open_kernel(Network(mode="enforce", required=True), load=unloadable)
        except KernelError as error:
            return str(error), host.leftovers()
        return "", []

    assert box.in_box(inside) == ("the verifier said no", [])


@pytest.mark.kernel
def test_without_cgroup2_the_packet_plane_stands_alone() -> None:
    def inside() -> tuple[LayerStatus, str]:
        box.there()
        subprocess.run(["umount", "/sys/fs/cgroup"], check=True)
        kernel = host.open_kernel(Network(mode="enforce"))
        kernel.apply(BAD)
        return by_layer(kernel.status())["ebpf"], attempt("10.99.0.2")

    status, result = box.in_box(inside)
    assert "cgroup v2" in status.reason
    assert status.remedy
    assert result == "ECONNREFUSED"


@pytest.mark.kernel
def test_a_log_group_in_use_costs_the_events_and_not_the_enforcement() -> None:
    def inside() -> tuple[LayerStatus, str, list[object]]:
        box.there()
        _other = Nflog(Network().nflog_group)
        kernel = opened(BAD, "nftables")
        return by_layer(kernel.status())["nftables"], attempt("10.99.0.2"), kernel.records()

    status, result, records = box.in_box(inside)
    assert status.in_force
    assert "network.nflog_group" in status.detail
    assert (result, records) == ("ECONNREFUSED", [])


@pytest.mark.kernel
@pytest.mark.parametrize("plane", ["nft widens", "eBPF deletes"])
def test_a_failed_apply_leaves_the_old_plan_in_force(plane: str) -> None:
    def inside() -> tuple[str, list[str], list[bool], bool]:
        there = box.there()
        _servers = [listening(there, a) for a in ("10.99.0.2", "10.99.0.3")]
        kernel = opened(BAD)

        def fail(*_: object) -> None:
            raise KernelError("broken on purpose")

        if plane == "nft widens":
            kernel._nft.widen = fail
        else:
            kernel._ebpf.delete = fail
        reason = ""
        try:
            kernel.apply(plan(2, deny=(at("10.99.0.3"),)))
        except KernelError as error:
            reason = str(error)
        results = [attempt("10.99.0.2"), attempt("10.99.0.3")]
        restored = set(kernel._ebpf.rules()) == set(BAD.rules)
        return reason, results, [s.in_force for s in kernel.status()], restored

    reason, results, in_force, restored = box.in_box(inside)
    assert reason == "broken on purpose"
    assert results == ["EPERM", "connected"]
    assert in_force == [True, True]
    assert restored


@pytest.mark.kernel
def test_applying_the_same_plan_again_puts_back_what_was_taken_away() -> None:
    def inside() -> tuple[list[bool], list[bool]]:
        kernel = opened(BAD)
        host.down()
        before = [s.in_force for s in kernel.status()]
        kernel.apply(plan(1, deny=(at("10.99.0.2"),), tag=(at("10.99.0.3", 443),)))
        return before, [s.in_force for s in kernel.status()]

    assert box.in_box(inside) == ([False, False], [True, True])


@pytest.mark.kernel
def test_ten_thousand_addresses_and_then_one_more_are_applied_and_confirmed() -> None:
    def inside() -> list[bool]:
        many = tuple(at(f"10.{n >> 8}.{n & 255}.9") for n in range(10_000))
        kernel = opened(plan(1, deny=many))
        kernel.apply(plan(2, deny=(*many, at("10.99.0.2"))))
        return [s.in_force for s in kernel.status()]

    assert box.in_box(inside) == [True, True]


@pytest.mark.kernel
def test_close_with_removal_leaves_nothing_and_close_without_leaves_enforcement() -> None:
    def inside() -> tuple[list[str], str, int, int]:
        box.there()
        opened(BAD).close(remove=True)
        gone = host.leftovers()
        opened(BAD).close(remove=False)
        left, result = len(host.leftovers()), attempt("10.99.0.2")
        return gone, result, left, len(host.down())

    assert box.in_box(inside) == ([], "EPERM", 5, 5)


@pytest.mark.kernel
@pytest.mark.parametrize("layers", [("ebpf",), ("nftables",), BOTH], ids="+".join)
def test_down_cleans_whatever_state_there_is_and_says_what_it_was(layers: tuple[str, ...]) -> None:
    def inside() -> tuple[int, list[str], list[str]]:
        opened(BAD, *layers)
        return len(host.down()), host.leftovers(), host.down()

    found, left, again = box.in_box(inside)
    assert found == {("ebpf",): 4, ("nftables",): 1, BOTH: 5}[layers]
    assert left == again == []


@pytest.mark.kernel
def test_without_privilege_the_leftovers_cannot_be_told_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> list[int]:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(bpf_syscall, "attached", refuse)
    with pytest.raises(KernelError) as caught:
        host.leftovers(Path("/"))
    assert caught.value.remedy == "run as root"
