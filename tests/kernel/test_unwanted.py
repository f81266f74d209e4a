"""A layer that nobody asks for says why; what a dead daemon left in it is removed, and what a living one has in it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from netns import box
from netns.scene import at, opened, plan

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import leftovers, unwanted
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.unwanted import Unwanted

BAD = plan(1, deny=(at("10.99.0.2"),))
BOTH = ("ebpf", "nftables")


@pytest.mark.parametrize(
    ("network", "reasons"),
    [
        (Network(mode="off"), dict.fromkeys(BOTH, "network.mode is off")),
        (Network(layers=("ebpf",)), {"nftables": "not in network.layers"}),
        (Network(scope="netns"), {"ebpf": "network.scope is netns"}),
        (Network(layers=BOTH), {}),
    ],
)
def test_what_is_not_asked_for_says_why(network: Network, reasons: dict[str, str]) -> None:
    layers = Unwanted(network)
    assert {layer: layers.status(layer).reason for layer in BOTH if layer in layers} == reasons
    assert all(not layers.status(layer).wanted and not layers.status(layer).in_force for layer in reasons)


def test_until_a_configuration_is_known_every_layer_is_wanted() -> None:
    assert [layer for layer in BOTH if layer in Unwanted()] == []


def cleared(*, alive: bool) -> tuple[list[str], list[str]]:
    first = opened(BAD)
    if not alive:
        first.close(remove=False)
    layers = Unwanted(Network(mode="off"))
    layers.clear(hierarchy(), claimed=False)
    return leftovers.leftovers(), [layers.status(layer).reason for layer in BOTH]


@pytest.mark.kernel
def test_what_a_dead_daemon_left_is_removed() -> None:
    assert box.in_box(lambda: cleared(alive=False)) == ([], ["network.mode is off"] * 2)


@pytest.mark.kernel
def test_what_a_living_one_enforces_is_left_to_it_and_it_is_named() -> None:
    left, reasons = box.in_box(lambda: cleared(alive=True))
    assert len(left) == 7  # six programs and a table; without a device there is no fence
    for reason in reasons:
        assert reason.startswith("network.mode is off; another agentsh-net, process ")
        assert reason.endswith(", enforces there")


@pytest.mark.kernel
def test_ones_own_hierarchy_is_no_others() -> None:
    def inside() -> list[str]:
        opened(BAD).close(remove=False)
        Unwanted(Network(layers=("nftables",))).clear(hierarchy(), claimed=True)
        return leftovers.leftovers()

    assert box.in_box(inside) == ["nftables table inet agentsh_net"]


def test_what_cannot_be_removed_is_said_to_be_there_still(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_layer: str, _hierarchy: Path | None) -> None:
        raise KernelError("not for you")

    monkeypatch.setattr(unwanted, "_other", lambda *_, **__: None)
    monkeypatch.setattr(leftovers, "remove", refused)
    layers = Unwanted(Network(layers=("ebpf",)))
    layers.clear(None, claimed=False)
    assert layers.status("nftables").reason == (
        "not in network.layers; what a predecessor left there may still act: not for you"
    )
