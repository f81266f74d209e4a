"""A snapshot as the network layer needs one, of few words: servers, and which of them are denied."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address

from agentsh_net.core.configuration.settings import Config, Network
from agentsh_net.core.model import Action, Server, Transport, Verdict
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.plane import Endpoint
from agentsh_net.core.registry import Registry

A, B, V6 = ip_address("203.0.113.1"), ip_address("203.0.113.2"), ip_address("2001:db8::1")


@dataclass(frozen=True)
class Policy:
    """A snapshot that denies the ids it was given."""

    registry: Registry
    config: Config
    denied: frozenset[str]
    audit: bool = False
    generation: int = 7
    judged: list[str] = field(default_factory=list)

    def judge_server(self, server_id: str) -> Verdict:
        self.judged.append(server_id)
        if server_id not in self.denied:
            return Verdict(Action.ALLOW, f"{server_id} is allowed", "default")
        if self.audit:
            return Verdict(Action.ALLOW, f"{server_id} is denied", "denied_servers[0]", would=Action.BLOCK)
        return Verdict(Action.BLOCK, f"{server_id} is denied", "denied_servers[0]")


def server(server_id: str, port: int = 443) -> Server:
    return Server(
        server_id, Transport.HTTP, url=f"https://{server_id}.example", host=f"{server_id}.example", port=port
    )


def policy(
    *servers: Server, denied: str = "", mode: str = "enforce", shared: str = "block", audit: bool = False
) -> Policy:
    network = Network(mode=mode, on_shared_address=shared)
    return Policy(Registry(servers), Config(network=network), frozenset(denied.split()), audit)


def at(address: object, port: int = 0) -> Endpoint:
    return Endpoint(canonical(address), port)
