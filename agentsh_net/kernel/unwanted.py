"""Layers that the configuration does not ask for: why, what a predecessor left there, and which daemon has them instead.

A layer that is asked for and cannot be had is the host's business.
"""

from __future__ import annotations

from pathlib import Path

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import LayerStatus
from agentsh_net.kernel import claims, leftovers
from agentsh_net.kernel.bpf import ebpf
from agentsh_net.kernel.limits import may_load_programs
from agentsh_net.kernel.nft import nftables

LAYERS = (ebpf.LAYER, nftables.LAYER)


class Unwanted:
    """Those layers, and what is to be said of each."""

    def __init__(self, network: Network | None = None) -> None:
        """None: every layer is wanted."""
        self._reasons = {} if network is None else _reasons(network)

    def __contains__(self, layer: str) -> bool:
        return layer in self._reasons

    def status(self, layer: str) -> LayerStatus:
        """Return the row of such a layer."""
        return LayerStatus(layer, wanted=False, in_force=False, reason=self._reasons[layer])

    def clear(self, hierarchy: Path | None, *, claimed: bool) -> None:
        """Remove what a predecessor left in them, or say that it is there. `claimed`: the hierarchy is ours."""
        for layer, reason in self._reasons.items():
            if layer == ebpf.LAYER and not may_load_programs():
                continue  # a sidecar: nobody of its kind left any
            if (pid := _other(layer, hierarchy, claimed=claimed)) is not None:
                who = f"process {pid}" if pid else "a process that cannot be seen from here"
                self._reasons[layer] = f"{reason}; another agentsh-net, {who}, enforces there"
                continue
            try:
                leftovers.remove(layer, hierarchy)
            except KernelError as error:
                self._reasons[layer] = f"{reason}; what a predecessor left there may still act: {error}"


def _other(layer: str, hierarchy: Path | None, *, claimed: bool) -> int | None:
    """Return the other daemon that enforces in a layer, 0 for one that cannot be seen."""
    if layer == nftables.LAYER:
        return claims.namespace_holder()
    if hierarchy is None or claimed:
        return None
    return claims.hierarchy_holder(hierarchy)


def _reasons(network: Network) -> dict[str, str]:
    if network.mode == "off":
        return dict.fromkeys(LAYERS, "network.mode is off")
    reasons = {layer: "not in network.layers" for layer in LAYERS if layer not in network.layers}
    if network.scope == "netns":
        reasons[ebpf.LAYER] = "network.scope is netns"
    return reasons
