"""The supervisor's side of the metrics page: a process of its own answers HTTP, unprivileged, and is told numbers.

What is told is `metrics`' business, how it is served the process's (`agentsh_proxy.page`); nothing is ever read from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final

import orjson

from agentsh_net.core.configuration.settings import Metrics
from agentsh_net.core.links import link
from agentsh_net.workers import listening, unprivileged

EVERY: Final = 1.0  # seconds between two tellings; a scrape is every few seconds at most
BACKLOG: Final = 64
PAUSE: Final = (0.5, 30.0)  # seconds before the process is replaced: the first, and the most
_MAX_UNREAD: Final = 1 << 20  # a process that does not read is not told more


class MetricsPage:
    """Keeps the process running and tells it `gather()`, which returns the text, the state and what is not well.

    `warn` is told, once, why there is no page.
    """

    def __init__(
        self, metrics: Metrics, gather: Callable[[], dict[str, Any]], warn: Callable[[str], None]
    ) -> None:
        self._listen = metrics.listen
        self._gather = gather
        self._warn = warn
        self._listener = listening.bind(metrics, section="metrics")[0]
        self._listener.listen(BACKLOG)
        self._keeper: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where the page is."""
        return listening.url(self._listener)

    def start(self) -> None:
        """Start the process, soon."""
        self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End it."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self._listener.close()

    async def _keep(self) -> None:
        pause, longest = PAUSE
        told = ""
        while True:
            try:
                await self._run()
                told = ""
            except (OSError, RuntimeError) as error:  # the host has no processes, threads or descriptors left
                if str(error) != told:
                    told = str(error)
                    self._warn(f"there is no metrics page: {told}; it is tried again")
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)

    async def _run(self) -> None:
        """Run one process to its end, telling it what is new."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await unprivileged.start(
                "page", "--listen", self._listen, passing={"--link-fd": theirs, "--listen-fd": self._listener}
            )
        _, writer = await asyncio.open_connection(sock=ours)
        telling, ended = asyncio.create_task(self._tell(writer)), asyncio.create_task(process.wait())
        try:
            await asyncio.wait((telling, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            writer.close()  # the process ends with its link; without CAP_KILL over its user there is no other way
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await telling
            await ended

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            if writer.transport.get_write_buffer_size() < _MAX_UNREAD:
                writer.write(link.frame(orjson.dumps(self._gather())))
            await asyncio.sleep(EVERY)
