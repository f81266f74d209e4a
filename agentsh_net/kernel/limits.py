"""What this process may not do here, what that costs, and what mends it: a container's capabilities and namespaces.

For `status`, `doctor` and the start-up lines. A layer that cannot be had at all is the planes' own business.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentsh_net import capabilities
from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.cgroups import cgroup
from agentsh_net.kernel.sockets import clients

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that is missing. None of them stops a layer."""

    missing: str
    cost: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.missing}: {self.cost} (fix: {self.remedy})"


def limits(
    network: Network, *, held: int | None = None, proc: Path = _PROC, hierarchy: Path | None = None
) -> list[Limit]:
    """Return what is missing for all that `network` could have. `held` is the effective capability set, by default this process's."""
    held = capabilities.effective() if held is None else held
    here = network.scope == "netns"
    found = []
    if network.mode != "off":
        if here:
            found.append(_WITHOUT_EBPF)
        elif not capabilities.has(held, "CAP_SYS_ADMIN"):
            found.append(_OWN_SOCKETS_ONLY)
        if not here and "ebpf" in network.layers and is_a_part(hierarchy or cgroup.hierarchy()):
            found.append(_OWN_CGROUPS_ONLY)
        if not here and "nftables" in network.layers and _is_elsewhere(proc):
            found.append(_OWN_NETWORK_ONLY)
        if not sees_the_host(proc):
            found.append(_OWN_PROCESSES_ONLY)
        elif not capabilities.has(held, "CAP_SYS_PTRACE"):
            found.append(_NO_EXECUTABLES)
        if not here and not clients.are_shown():
            found.append(_TOKENS_ONLY)
    if os.geteuid() == 0 and not may_change_user(held, proc):
        found.append(_ONLY_USER if is_only_user(proc) else _WORKERS_STAY_ROOT)
    return found


def name_server(address: str, server_ids: Sequence[str]) -> Limit:
    """Return what it means that denied servers are at an address that this system asks for names."""
    return Limit(
        f"an address of their own for {', '.join(server_ids)}",
        f"{address} is a name server of this system, so they are refused there at their ports alone, and not at every port",
        "use another name server (/etc/resolv.conf), or declare what else they listen at",
    )


def beside_provider(providers: Sequence[str], server_ids: Sequence[str]) -> Limit:
    """Return what it means that denied servers are at an LLM provider's endpoint."""
    return Limit(
        f"an address of their own for {', '.join(server_ids)}",
        f"their names lead to the LLM provider {', '.join(providers)}: who talks to it around the proxy is refused as if to them",
        "ask who owns those names; network.on_shared_address: sni tells them apart",
    )


def unswept(error: KernelError) -> Limit:
    """Return what it means that connections could not be looked through."""
    return Limit(
        f"the last look through connections ({error})",
        "connections from before policy denied their servers may still stand; it is tried again every 10 s",
        error.remedy,
    )


def may_change_user(held: int | None = None, proc: Path = _PROC) -> bool:
    """Say whether this process can become another user."""
    held = capabilities.effective() if held is None else held
    return (
        capabilities.has(held, "CAP_SETUID")
        and capabilities.has(held, "CAP_SETGID")
        and not is_only_user(proc)
    )


def is_only_user(proc: Path = _PROC) -> bool:
    """Say whether this is a user namespace that its own user made (`unshare -r`): it has nobody else (user_namespaces(7))."""
    try:
        return (proc / "self/setgroups").read_text(encoding="ascii").strip() == "deny"
    except OSError:
        return False


def may_load_programs(held: int | None = None) -> bool:
    """Say whether this process could ever have attached an eBPF program, and so have left one."""
    held = capabilities.effective() if held is None else held
    return capabilities.has(held, "CAP_BPF") or capabilities.has(held, "CAP_SYS_ADMIN")


def sees_the_host(proc: Path) -> bool:
    """Say whether the host's processes are visible: process 2 is the kernel's thread starter there, and only there."""
    try:
        return (proc / "2/comm").read_text(encoding="utf-8", errors="replace").strip() == "kthreadd"
    except OSError:
        return False


def is_a_part(hierarchy: Path | None) -> bool:
    """Say whether a hierarchy's root is some cgroup of a larger one: only the real root has no events (cgroup-v2.rst)."""
    return hierarchy is not None and (hierarchy / "cgroup.events").exists()


def _is_elsewhere(proc: Path) -> bool:
    """Say whether the host's first process has another network namespace than we; what cannot be seen is not said."""
    try:
        return sees_the_host(proc) and not (proc / "1/ns/net").samefile(proc / "self/ns/net")
    except OSError:
        return False


_OWN_NETWORK_ONLY = Limit(
    "another network namespace than the host's",
    "nftables judges the packets of this namespace alone; what other ones send past it is left to eBPF",
    "run it in the host's (nsenter --net=/proc/1/ns/net; docker, podman: --network=host), or set network.scope: netns",
)
_OWN_CGROUPS_ONLY = Limit(
    "another cgroup root than the host's",
    "eBPF refuses and names only what runs below it, which is this container; whoever else shares the network is left to nftables",
    "give the container the host's hierarchy: --cgroupns=host with /sys/fs/cgroup mounted (deploy/kubernetes/daemonset.yaml)",
)
_WITHOUT_EBPF = Limit(
    "no eBPF (network.scope is netns)",
    "a denied connection is reset by nftables, not failed at connect(); a refused TCP connection is told with its user, not its process",
    "run the daemon on the node (deploy/kubernetes/daemonset.yaml), with CAP_BPF and network.scope: host",
)
_OWN_SOCKETS_ONLY = Limit(
    "no CAP_SYS_ADMIN",
    "connections that stand in other network namespaces are not closed; their packets are refused where they pass this one",
    "add the capability, or set network.scope: netns where there is one namespace",
)
_OWN_PROCESSES_ONLY = Limit(
    "another process namespace than the host's",
    "events name only processes of the namespace that the daemon shares",
    "share the agent's (Kubernetes: shareProcessNamespace: true; podman, docker: --pid=container:AGENT), or the host's",
)
_NO_EXECUTABLES = Limit(
    "no CAP_SYS_PTRACE", "events do not name the executables of other users' processes", "add the capability"
)
_TOKENS_ONLY = Limit(
    "no word of the kernel's whose a TCP socket is (sock_diag)",
    "over HTTP sessions are told apart by the tokens in their URLs alone: an agent that leaves its own out is of the default session",
    "modprobe tcp_diag (CONFIG_INET_TCP_DIAG), on Linux 5.9 or later",
)
_ONLY_USER = Limit(
    "other users in this user namespace",
    "the proxy's workers keep this user's id: without any capability, but whoever else runs as it may stop them",
    "map a range of users into it (newuidmap(1); rootless container engines do)",
)
_WORKERS_STAY_ROOT = Limit(
    "no CAP_SETUID and CAP_SETGID",
    "the proxy's workers keep this user's id: without any capability, but whoever else runs as it may stop them",
    "add SETUID and SETGID to the container's capabilities, or run it as a user of its own",
)
