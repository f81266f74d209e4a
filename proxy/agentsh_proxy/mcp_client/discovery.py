"""Discovery: ask the declared network servers for their tools, and keep asking when they change, in time, and on reconnect.

It reports what servers say, as they say it. Registering, pinning and judging that is the supervisor's business.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from agentsh_net.core.configuration.settings import SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.limits.token_bucket import Bucket
from agentsh_net.core.mcp.exchange import Listing
from agentsh_net.core.model import Server, Transport
from agentsh_proxy.http_client import tls_context
from agentsh_proxy.mcp_client.session import Page, Session

TIMEOUT = 30.0  # seconds for one listing, the handshake included; a server in a cold container takes ten
TTL = 60.0  # seconds between listings where nothing was heard; a server's own ttlMs may not make us look away for longer
PAUSE = 1.0  # seconds between two listings of one server, however often it says that its tools changed
HURRIES = 10  # listings at that pace, for a server that says so again and again; then one in HURRY seconds
HURRY = 20.0


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a server offers. `tools` are the definitions as the server wrote them, unknown fields included."""

    server_info: Mapping[str, Any]
    instructions: str
    tools: tuple[Mapping[str, Any], ...]
    era: str  # legacy | modern
    protocol_version: str
    transport: str  # http | sse: how it is really spoken to
    tls_fingerprint: str  # sha256:<hex> of the certificate, empty without TLS
    tls_public_key: str  # likewise of its public key, which a renewal may keep
    unlisted: str  # why something besides tools could not be listed

    @classmethod
    def of(cls, session: Session, listing: Listing) -> Self:
        """Return what a server listed in a session."""
        return cls(
            server_info=listing.server_info,
            instructions=listing.instructions,
            tools=listing.tools,
            era=listing.era,
            protocol_version=listing.version,
            transport=session.transport.value,
            tls_fingerprint=session.certificate.certificate,
            tls_public_key=session.certificate.public_key,
            unlisted=session.unlisted,
        )


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds before the next try after so many failures: doubled each time, spread over the upper half."""

    first: float = 1.0
    most: float = 60.0

    def delay(self, failures: int, spread: float) -> float:
        """Return the delay after `failures` (1 or more) in a row; `spread` is a random number from 0 to 1."""
        whole: float = min(self.most, self.first * 2.0 ** min(failures - 1, 16))
        return whole * (1 + spread) / 2


Report = Callable[[dict[str, Any]], None]
Schemes = Mapping[str, SecurityScheme]  # server id -> the credential that the gateway sends it


class Watcher:
    """One task for each network server. `report` gets a dict whenever a server's tools are (or may be) others, or it fails."""

    def __init__(
        self,
        servers: Iterable[Server],
        report: Report,
        *,
        timeout: float = TIMEOUT,
        ttl: float = TTL,
        pause: float = PAUSE,
        hurry: float = HURRY,
        backoff: Backoff | None = None,
        tls: ssl.SSLContext | None = None,
        schemes: Schemes | None = None,
    ) -> None:
        self._servers = {s.id: s for s in servers if s.transport is not Transport.STDIO}
        self._schemes = schemes or {}
        self._report = report
        self._timeout = timeout
        self._ttl = ttl
        self._pause = pause
        self._hurry = hurry
        self._backoff = backoff or Backoff()
        self._tls = tls
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to watch; needs the running loop."""
        for server in self._servers.values():
            self._begin(server)

    def update(self, servers: Iterable[Server], schemes: Schemes | None = None) -> None:
        """Take the servers of a new policy: watch the new and the changed, stop for the others."""
        wanted, credentials = {s.id: s for s in servers if s.transport is not Transport.STDIO}, schemes or {}
        for server_id, server in self._servers.items():
            known = self._schemes.get(server_id) == credentials.get(server_id)
            if wanted.get(server_id) != server or not known:
                self._end(server_id)
        self._servers, self._schemes = wanted, credentials
        for server in wanted.values():
            if server.id not in self._tasks:
                self._begin(server)

    def again(self) -> None:
        """Ask every server now, in a new session, and report what it says though it may be what it said before."""
        for server in self._servers.values():
            self._end(server.id)
            self._begin(server)

    async def stop(self) -> None:
        """End every session and wait until it is done (about a second at most)."""
        for server_id in tuple(self._tasks):
            self._end(server_id)
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    def _begin(self, server: Server) -> None:
        if self._tls is None and server.url.lower().startswith("https:"):
            self._tls = tls_context()  # reads the whole trust store: once is enough
        task = asyncio.create_task(self._watch(server), name=f"discovery:{server.id}")
        task.add_done_callback(lambda done: self._ended(server.id, done))
        self._tasks[server.id] = task

    def _end(self, server_id: str) -> None:
        task = self._tasks.pop(server_id, None)
        if task is not None:
            self._ending.add(task)
            task.cancel()

    def _ended(self, server_id: str, task: asyncio.Task[None]) -> None:
        """Say so when a watch died of a bug of ours: the server's tools are not followed any more."""
        self._ending.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._report(_failed(server_id, f"internal error: {fault!r}", 0, 0.0))
            context = {"message": f"discovery of {server_id} ended", "exception": fault, "task": task}
            task.get_loop().call_exception_handler(context)

    async def _watch(self, server: Server) -> None:
        """Follow one server through its sessions; after a failure begin anew, later and later."""
        failures = 0
        said: dict[str, bytes] = {}
        hurry = Bucket.full(HURRIES, 1 / self._hurry, asyncio.get_running_loop().time())

        def tell(found: Discovered | Page, what: str = "tools") -> None:
            nonlocal failures
            failures = 0
            news = {"listed": found} if isinstance(found, dict) else _news(found)
            self._tell({"server_id": server.id, **news}, said, what)

        while True:
            session = Session(server, tls=self._tls, scheme=self._schemes.get(server.id))
            try:
                async with session:
                    await self._follow(session, tell, hurry)
            except ProtocolError as fault:
                failures += 1
                said.clear()
                delay = self._backoff.delay(failures, random.random())  # noqa: S311 - spreads load, guards nothing
                shown = session.certificate  # which may be why
                self._report(
                    _failed(server.id, str(fault), failures, delay)
                    | {"tls_fingerprint": shown.certificate, "tls_public_key": shown.public_key}
                )
                await asyncio.sleep(delay)

    async def _follow(self, session: Session, tell: Callable[..., None], hurry: Bucket) -> None:
        """List, wait until that is stale, list again, until the session is lost. Raises ProtocolError."""
        while not session.lost:
            tell(Discovered.of(session, await session.list(self._timeout)))
            session.listen()
            await session.others(self._timeout, tell)
            await self._until_stale(session, hurry)

    async def _until_stale(self, session: Session, hurry: Bucket) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._pause + min(hurry.wait(loop.time()), self._ttl))
        try:
            async with asyncio.timeout(self._ttl):
                await session.stale.wait()
        except TimeoutError:
            return  # as good as stale
        hurry.take(loop.time())

    def _tell(self, news: dict[str, Any], said: dict[str, bytes], what: str) -> None:
        """Report what is not what was reported last; `said` has the mark of that, for tools and each page of what else there is."""
        # compared as text: to Python, 1, 1.0 and true are equal, to a model they are not
        mark = hashlib.sha256(json.dumps(news).encode()).digest()
        if mark != said.get(what):
            self._report(news)
        said[what] = mark


def _news(found: Discovered) -> dict[str, Any]:
    """Return the report of what a server offers."""
    return {
        "ok": True,
        "error": "",
        "tools": [dict(tool) for tool in found.tools],
        "instructions": found.instructions,
        "server_info": dict(found.server_info),
        "era": found.era,
        "protocol_version": found.protocol_version,
        "transport": found.transport,
        "tls_fingerprint": found.tls_fingerprint,
        "tls_public_key": found.tls_public_key,
        "unlisted": found.unlisted,
    }


def _failed(server_id: str, error: str, attempts: int, retry_in: float) -> dict[str, Any]:
    """Return the report of a failure: there are no tools to tell of, which does not mean that there are none."""
    return {"server_id": server_id, "ok": False, "error": error, "attempts": attempts, "retry_in": retry_in}
