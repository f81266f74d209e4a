"""Connections to LLM providers: made over TCP and TLS, and kept while they lie idle.

What is said over one is `upstream`'s business.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.familiar_heads import AnswerHeads
from agentsh_proxy.counting import Counts
from agentsh_proxy.http_client import tls_context
from agentsh_proxy.llm.upstream import UpstreamConnection, Waiting
from agentsh_proxy.llm.view import Origin
from agentsh_proxy.llm.write_coalescing import WriteCoalescer

IDLE_SECONDS = 55.0  # shorter than the 60 s after which load balancers commonly drop an idle connection

P = TypeVar("P", bound=asyncio.Protocol)


class Pool:
    """Idle connections by origin, newest first, and the making of new ones."""

    def __init__(self, loop: asyncio.AbstractEventLoop, counts: Counts) -> None:
        self._loop = loop
        self._counts = counts
        self._tls = tls_context()
        self.idle: defaultdict[Origin, list[UpstreamConnection]] = defaultdict(list)
        self.heads: defaultdict[Origin, AnswerHeads] = defaultdict(AnswerHeads)
        # In a context of its own: to copy the current one for every turn costs a third of the call.
        self.writes = WriteCoalescer(partial(loop.call_soon, context=copy_context()))
        self._connecting: set[asyncio.Task[None]] = set()
        self.now = loop.time()

    def ask(self, origin: Origin, exchange: Waiting, data: bytes) -> UpstreamConnection | None:
        """Send a request, or the beginning of it, over a connection that lies idle; None where there is none."""
        idle = self.idle[origin]
        while idle:
            connection = idle.pop()
            if connection.ask(exchange, data):
                self._counts.upstream_reused += 1
                return connection
        return None

    def connect(self, origin: Origin, exchange: Waiting, *, seconds: float) -> asyncio.Task[None]:
        """Make a connection for `exchange` (cancel the task to let go)."""
        task = self._loop.create_task(self._connect(origin, exchange, seconds))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return task

    def sweep(self, now: float) -> None:
        """Close what lay idle too long."""
        self.now = now
        for idle in self.idle.values():
            for connection in [c for c in idle if now - c.idle_since > IDLE_SECONDS]:
                connection.abort()

    def close(self) -> None:
        """Close everything idle and stop connecting."""
        for task in list(self._connecting):
            task.cancel()
        for idle in self.idle.values():
            for connection in list(idle):
                connection.abort()

    async def open(self, origin: Origin, make: Callable[[], P], seconds: float) -> P:
        """Return a connection of its own kind, which the pool forgets. Raises ProtocolError."""
        where = f"{origin.host}:{origin.port}"
        try:
            async with asyncio.timeout(seconds):
                _, connection = await self._loop.create_connection(
                    make,
                    origin.host,
                    origin.port,
                    ssl=self._tls if origin.tls else None,
                    server_hostname=origin.host if origin.tls else None,
                )
        except TimeoutError:
            raise ProtocolError(f"no connection to {where} within {seconds:g} s", status=504) from None
        except ssl.SSLError as error:
            raise ProtocolError(f"TLS with {where} failed: {error.reason or error}", status=502) from error
        except OSError as error:
            raise ProtocolError(
                f"cannot connect to {where}: {error.strerror or error}", status=502
            ) from error
        self._counts.upstream_opened += 1
        return connection

    async def _connect(self, origin: Origin, exchange: Waiting, seconds: float) -> None:
        try:
            exchange.on_connected(await self.open(origin, lambda: UpstreamConnection(self, origin), seconds))
        except ProtocolError as error:
            exchange.on_unreachable(error)
        except Exception as error:  # noqa: BLE001 - a bug of ours must leave no client waiting
            exchange.on_bug(error)
