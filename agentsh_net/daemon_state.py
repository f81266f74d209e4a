"""What the daemon is made of while it runs, for whoever asks it: calls at the control socket, metrics, `status`.

How the parts come up, in which order, and end, is the daemon's business.
"""

from __future__ import annotations

import asyncio
from typing import Final

from agentsh_net.agent_sessions import AgentSessions
from agentsh_net.clock import now_rfc3339
from agentsh_net.core.audit.tally import Tally
from agentsh_net.current import Current
from agentsh_net.layer_watch import LayerWatch
from agentsh_net.metrics_page import MetricsPage
from agentsh_net.reloading import Reloading
from agentsh_net.resolution.watch import NameWatch
from agentsh_net.servers.reports import Reports
from agentsh_net.sessions import Sessions
from agentsh_net.shims.service import ShimService
from agentsh_net.store.writer import Writer
from agentsh_net.workers.pool import Pool

# Seconds in which servers that were never heard of may say what they offer before it is said that all is in force: until then a
# tool's bare name is nobody's. One that does not answer must not keep the rest waiting.
FIRST_WORDS: Final = 2.0


class DaemonState:
    """The parts of a daemon. `ready` says that all of them are there."""

    def __init__(self) -> None:
        self.started = now_rfc3339()
        self.ready = False
        self.stopping = asyncio.Event()
        self.removes = False  # at the end nothing stays in force, whatever `network.on_exit` says
        self.sessions = Sessions()
        self.tally = Tally()
        # Set while starting, in this order.
        self.writer: Writer
        self.pool: Pool | None = None
        self.page: MetricsPage | None = None
        self.layers: LayerWatch
        self.names: NameWatch
        self.current: Current
        self.reports: Reports
        self.reloading: Reloading
        self.agents: AgentSessions
        self.shims: ShimService

    @property
    def proxy_url(self) -> str:
        """The LLM proxy's base, empty while it is off."""
        return self.pool.url if self.pool is not None else ""

    @property
    def gateway_url(self) -> str:
        """The MCP gateway's base, empty while it is off."""
        return self.pool.gateway_url if self.pool is not None else ""

    def stop(self, *, remove: bool = False) -> None:
        """Let the daemon begin to stop; returns at once."""
        self.removes = self.removes or remove
        self.stopping.set()

    async def hear_servers(self, *, anew: bool = False) -> None:
        """Wait, for `FIRST_WORDS` at most, until it is known what the servers offer, asked `anew` or not; a stop ends the waiting."""
        if self.pool is None:  # nobody asks them
            return
        ends = [*map(asyncio.ensure_future, (self.reports.introduced(anew=anew), self.stopping.wait()))]
        if anew:
            await self.pool.relist()
        await asyncio.wait(ends, timeout=FIRST_WORDS, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
