"""Follows what the declared servers' names mean: our own questions, others' answers, and the planes that take both.

The daemon starts it, and asks it what to tell people. What an answer may do is core.network.addresses' and core.network.hearsay's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.network.gap import GapSummary
from agentsh_net.current import Addresses, Current
from agentsh_net.kernel.names.address_memory import AddressMemory
from agentsh_net.kernel.names.name_servers import NameServers
from agentsh_net.kernel.names.resolver import Resolver
from agentsh_net.resolution.readdressing import Readdressing
from agentsh_net.resolution.snoop import DnsSnoop
from agentsh_net.resolution.stub import DnsStub
from agentsh_net.tasks import Tasks


class NameWatch:
    """The resolver, and whoever else hears of addresses."""

    def __init__(
        self,
        network: Network,
        memory: Path,
        *,
        tasks: Tasks,
        emit: Callable[[Event], None],
        log: logging.Logger,
    ) -> None:
        resolve = network.resolve
        stub = resolve.stub_listen if resolve.stub else ""
        self._servers = NameServers(resolve.upstream, stub)
        self.resolver = Resolver(
            resolve,
            changed=self._changed,
            memory=AddressMemory(memory),
            overheard=AddressMemory(memory.with_stem(memory.stem + "-overheard"))
            if resolve.snoop_dns
            else None,
            name_servers=self._servers,
        )
        self._network, self._tasks, self._emit, self._log = network, tasks, emit, log
        self._readdressing: Readdressing | None = None
        self._snoop: DnsSnoop | None = None
        self._stub: DnsStub | None = None

    async def start(self, current: Current) -> None:
        """Begin, once `current` has put in force what was known at first. Raises ConfigError where the stub's port is taken."""
        self._readdressing = Readdressing(current, self.resolver, self._tasks.spawn)
        self._tasks.keep("resolver", self.resolver.run)
        if self._network.resolve.snoop_dns and self._network.mode != "off":
            self._snoop = DnsSnoop(self.resolver, self._readdressing.soon, self._emit, self._log)
            self._snoop.start()
        if self._network.resolve.stub:
            self._stub = DnsStub(
                self._network.resolve,
                self._servers,
                self.resolver,
                self._readdressing.soon,
                self._emit,
                self._log,
            )
            self._tasks.spawn(self._stub.run())
            await self._stub.serving()

    def stop(self) -> None:
        """Stop listening; the tasks are their spawner's."""
        if self._snoop is not None:
            self._snoop.stop()

    def gap(self) -> GapSummary:
        """Return how long the planes took to follow what clients knew."""
        return self._snoop.gaps.summary() if self._snoop is not None else GapSummary()

    def status(self) -> dict[str, Any]:
        """Return the parts of `status` that are about names."""
        off = {"wanted": False, "in_force": False}
        return {
            "resolver": {
                "problems": self.resolver.problems(),
                "refused": self.resolver.refused,
                "names": self._names(),
            },
            "snoop": self._snoop.status() if self._snoop is not None else off,
            "stub": self._stub.status() if self._stub is not None else off,
        }

    def _names(self) -> list[dict[str, Any]]:
        """Return what is known of each name: by our own questions, by the hosts file, by others' answers."""
        heard = self.resolver.heard()
        return [
            {
                "name": name,
                "addresses": [str(address) for address in state.addresses],
                "hosts_file": [str(address) for address in state.hosts_file],
                "overheard": {
                    str(address): source.name.lower() for address, source in heard.get(name, {}).items()
                },
                "age": state.age,
                "failure": state.failure,
                "failures": state.failures,
            }
            for name, state in self.resolver.names().items()
        ]

    def _changed(self, addresses: Addresses) -> None:  # noqa: ARG002 - the newest are taken when it is their turn
        if self._readdressing is not None:
            self._readdressing.soon()
