"""Both planes are one kernel to the daemon: what cannot be had is said, and a failed apply changes nothing."""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import struct
import subprocess
import threading

import pytest
from netns import box
from netns.scene import at, attempt, drain, listening, opened, plan
from netns.tampering import nft_as_owner

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Kernel, LayerStatus
from agentsh_net.kernel import host
from agentsh_net.kernel.bpf import loader
from agentsh_net.kernel.bpf.probe_source import PROGRAMS
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.leftovers import down, leftovers, remove
from agentsh_net.kernel.nft import table as nft_table
from agentsh_net.kernel.nft.nflog import Nflog

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
        return by_layer(kernel.status())["ebpf"], leftovers()

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
@pytest.mark.parametrize("which", ["auto", "prebuilt", "bcc"])
def test_the_loader_is_the_one_that_the_configuration_names(
    monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    def load(asked: str, _kept: object) -> loader.Loaded:
        raise KernelError(f"asked for {asked}")

    def inside() -> str:
        kernel = host.open_kernel(Network(layers=("ebpf",), bpf_loader=which))
        kernel.apply(BAD)
        return by_layer(kernel.status())["ebpf"].reason

    monkeypatch.setattr(loader, "load", load)
    assert box.in_box(inside) == f"asked for {which}"


@pytest.mark.kernel
def test_a_required_layer_that_cannot_be_had_is_fatal_and_leaves_nothing() -> None:
    def inside() -> tuple[str, list[str]]:
        try:
            host.open_kernel(Network(mode="enforce", required=True), load=unloadable)
        except KernelError as error:
            return str(error), leftovers()
        return "", []

    why = "the layer ebpf, without which network.required lets nothing start: the verifier said no"
    assert box.in_box(inside) == (why, [])


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
def test_a_log_group_in_use_costs_the_events_and_not_the_enforcement_until_it_is_free() -> None:
    def inside() -> tuple[LayerStatus, str, list[object], LayerStatus, list[str]]:
        box.there()
        other = Nflog(Network().nflog_group)
        other.listen()
        kernel = opened(BAD, "nftables")
        watched = kernel.filenos()
        taken = by_layer(kernel.status())["nftables"], attempt("10.99.0.2"), kernel.records()
        other.close()
        free = by_layer(kernel.status())["nftables"]
        attempt("10.99.0.2")
        assert select.select(watched, [], [], 30)[0], "whoever waited all along hears of it"
        return *taken, free, [str(record.address) for record in kernel.records()]

    status, result, records, free, heard = box.in_box(inside)
    assert status.in_force
    assert "network.nflog_group" in status.silent
    assert status.silent in status.detail
    assert (result, records) == ("ECONNREFUSED", [])
    assert (free.in_force, free.silent, heard) == (True, "", [str(at("10.99.0.2").address)])


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
        remove("ebpf", hierarchy())
        nft_as_owner("flush ruleset")
        before = [s.in_force for s in kernel.status()]
        kernel.apply(plan(1, deny=(at("10.99.0.2"),), tag=(at("10.99.0.3", 443),)))
        return before, [s.in_force for s in kernel.status()]

    assert box.in_box(inside) == ([False, False], [True, True])


@pytest.mark.kernel
def test_status_never_sees_half_of_a_change() -> None:
    def inside() -> set[bool]:
        box.there()
        kernel = opened(BAD)
        asked: set[bool] = set()
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                asked.update(s.in_force for s in kernel.status())

        asking = threading.Thread(target=ask)
        asking.start()
        for generation in range(2, 30):
            kernel.apply(plan(generation, deny=(at("10.99.0.2"), at(f"10.99.1.{generation}"))))
        done.set()
        asking.join()
        return asked

    assert box.in_box(inside) == {True}


@pytest.mark.kernel
def test_records_do_not_wait_for_a_change() -> None:
    def inside() -> list[str]:
        box.there()
        kernel = opened(BAD)
        told: list[str] = []
        with kernel._changing:  # as a change does, however long it takes
            attempt("10.99.0.2")
            reading = threading.Thread(target=lambda: told.extend(str(r.address) for r in kernel.records()))
            reading.start()
            reading.join(60)
            return [*told]

    assert box.in_box(inside) == [str(at("10.99.0.2").address)]


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
        gone = leftovers()
        opened(BAD).close(remove=False)
        left, result = len(leftovers()), attempt("10.99.0.2")
        return gone, result, left, len(down())

    assert box.in_box(inside) == ([], "EPERM", len(PROGRAMS) + 2, len(PROGRAMS) + 2)


@pytest.mark.kernel
def test_a_flushed_set_is_put_back_however_long_it_takes_to_look_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nft_table, "_SHARE", 1e9)  # as a set of many thousands has it

    def inside() -> tuple[str, bool, str]:
        _server = listening(box.there(), "10.99.0.2")
        kernel = opened(BAD, "nftables")
        nft_as_owner("flush set inet agentsh_net deny4")
        [reason] = [s.reason for s in kernel.status() if s.layer == "nftables"]
        kernel.reassert()
        [state] = [s.in_force for s in kernel.status() if s.layer == "nftables"]
        return reason, state, attempt("10.99.0.2")

    reason, state, said = box.in_box(inside)
    assert "set deny4 has 0 elements, 0 of 1" in reason
    assert (state, said) == (True, "ECONNREFUSED")


@pytest.mark.kernel
def test_what_a_predecessor_left_in_a_layer_that_is_no_longer_wanted_is_removed() -> None:
    def inside() -> tuple[int, list[str]]:
        opened(BAD).close(remove=False)
        kernel = host.open_kernel(Network(mode="enforce", layers=("nftables",)))
        kernel.apply(BAD)
        only_packets = leftovers()
        kernel.close(remove=False)
        host.open_kernel(Network(mode="off")).apply(plan())
        return only_packets, leftovers()

    assert box.in_box(inside) == (["nftables table inet agentsh_net"], [])


@pytest.mark.kernel
def test_a_daemon_that_kept_two_capabilities_still_changes_sweeps_tells_and_cleans_up() -> None:
    def inside() -> tuple[list[str], list[bool], list[str], list[str]]:
        there = box.there()
        _servers = [listening(there, a) for a in ("10.99.0.2", "10.99.0.3")]
        reader, writer = os.pipe()
        kernel = opened(BAD)
        child = os.fork()
        if child == 0:
            keep_only(CAP_NET_ADMIN, CAP_BPF)
            other = plan(2, deny=(at("10.99.0.3"),))
            kernel.apply(other)
            kernel.sweep(other)
            results = [attempt("10.99.0.2"), attempt("10.99.0.3")]
            layers = [record.layer for record in drain(kernel, 1)]
            in_force = [s.in_force for s in kernel.status()]
            kernel.close(remove=True)
            os.write(writer, pickle.dumps((results, in_force, layers)))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            told = pickle.loads(pipe.read())
        os.waitpid(child, 0)
        return (*told, leftovers())

    assert box.in_box(inside) == (["connected", "EPERM"], [True, True], ["ebpf"], [])


CAP_NET_ADMIN, CAP_BPF = 12, 39


def keep_only(*capabilities: int) -> None:
    """Drop every other capability (capset(2), version 3)."""
    mask = sum(1 << number for number in capabilities)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(struct.pack("=IIIIII", low, low, 0, high, high, 0))
    assert ctypes.CDLL(None).capset(header, data) == 0


def disturbances(layers: tuple[str, ...]) -> list[bool]:
    kernel = opened(plan(1, deny=(at("10.99.0.2"),)), *layers)
    kernel.disturbed()  # our own doing
    heard = [kernel.disturbed()]
    if "nftables" in layers:
        nft_as_owner("flush ruleset")
    else:
        remove("ebpf", hierarchy())
    heard.append(kernel.disturbed())
    with kernel._changing:
        heard.append(kernel.disturbed())
    kernel.apply(plan(1, deny=(at("10.99.0.2"),)))
    kernel.disturbed()
    return [*heard, kernel.disturbed(), all(s.in_force for s in kernel.status() if s.wanted)]


@pytest.mark.parametrize("layers", [("ebpf",), ("nftables",)], ids="+".join)
def test_a_layer_that_somebody_touches_is_disturbed_until_it_is_put_back(layers: tuple[str, ...]) -> None:
    assert box.in_box(disturbances, layers) == [False, True, False, False, True]
