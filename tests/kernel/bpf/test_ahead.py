"""Probes are loaded while others work, once, where they are wanted; what goes wrong is told where they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import ahead, loader
from agentsh_net.kernel.cgroups import cgroup

LOADED = loader.Loaded({}, {}, how="by the test")


@pytest.fixture(autouse=True)
def somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "root", lambda: "/somewhere")


def loads(monkeypatch: pytest.MonkeyPatch, function: Callable[..., loader.Loaded]) -> None:
    monkeypatch.setattr(loader, "load", function)


def test_the_caller_goes_on_while_the_kernel_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    go, asked = threading.Event(), []

    def load(which: str, _kept: object) -> loader.Loaded:
        asked.append(which)
        assert go.wait(60)
        return LOADED

    loads(monkeypatch, load)
    result = ahead.begin(Network(bpf_loader="prebuilt"))
    go.set()  # reached although nothing is loaded yet
    assert result is not None
    assert result() is LOADED
    assert asked == ["prebuilt"]


def test_a_failure_is_raised_where_the_probes_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(which: str, _kept: object) -> loader.Loaded:
        raise KernelError(f"no {which}", layer="ebpf", remedy="mend it")

    loads(monkeypatch, load)
    result = ahead.begin(Network())
    assert result is not None
    with pytest.raises(KernelError, match="no auto"):
        result()


@pytest.mark.parametrize(
    "network", [Network(mode="off"), Network(scope="netns"), Network(layers=("nftables",))]
)
def test_nothing_is_loaded_that_nobody_will_ask_for(
    monkeypatch: pytest.MonkeyPatch, network: Network
) -> None:
    loads(monkeypatch, lambda *_: pytest.fail("loaded"))
    assert ahead.begin(network) is None


def test_nothing_is_loaded_where_it_could_not_be_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise KernelError("no cgroup v2 hierarchy is mounted", layer="ebpf")

    monkeypatch.setattr(cgroup, "root", nowhere)
    loads(monkeypatch, lambda *_: pytest.fail("loaded"))
    assert ahead.begin(Network()) is None
