"""Sessions of agents that `exec` started: from the process that asked for one until nothing runs in its cgroup any more.

What holds a session is the cgroup, not this object: a restart finds those that run. Callers hold the lock of what is in force.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentsh_net.clock import now_rfc3339
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer
from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.agent_environment import base_urls, gateway_url
from agentsh_net.core.audit.events import DEFAULT_SESSION
from agentsh_net.core.errors import KernelError, StoreError
from agentsh_net.core.network.plane import Cgroups
from agentsh_net.current import Current, Means
from agentsh_net.sessions import Sessions
from agentsh_net.store import records

# Pairs of sessions, one of which showed the other's token: more than a person reads, and the log is not flooded.
MAX_TOLD = 256


class AgentSessions:
    """Opens sessions, puts processes into them, and clears away after them."""

    def __init__(self, sessions: Sessions, current: Current, means: Means, log: logging.Logger) -> None:
        """Know the parts. From now on new workers of the proxy are told to the planes as ours."""
        self._sessions = sessions
        self._current = current
        self._writer = means.writer
        self._pool = means.pool
        self._cgroups = means.kernel.cgroups
        self._log = log
        self._told: set[tuple[str, str]] = set()  # of whose session and token: once each
        self._refused = ""  # why the kernel does not follow the sessions
        means.arbiter.whose, means.arbiter.contradicted = self._of_sender, self._contradicted
        if self._cgroups is not None:
            means.arbiter.placed = self._cgroups.live
        if self._pool is not None:
            self._pool.employ = self._employ

    async def open(self, wanted: str, proxy_url: str) -> dict[str, Any]:
        """Open a session by name (empty: one is made) and return its id, its token and its agent's variables.

        Raises ProtocolError for an id that is none, StoreError with the sessions as they were.
        """
        session_id = wanted or f"s-{secrets.token_hex(6)}"
        token, record = self._sessions.new(session_id, now_rfc3339())
        await asyncio.wrap_future(self._writer.change(records.save_session(record)))
        self._sessions.add(record)
        env = {"AGENTSH_NET_SESSION": token}  # what shims name the session by
        await self.publish()
        if self._pool is not None:
            providers = self._current.snapshot.config.proxy.providers
            env |= base_urls(f"{proxy_url}/s/{token}", providers) if proxy_url else {}
            env |= gateway_url(self._pool.gateway_url, token)
        return {"session_id": session_id, "token": token, "env": env}

    async def start(self, wanted: str, peer: Peer, proxy_url: str) -> dict[str, Any]:
        """Open a session and move the process that asked into it. Raises KernelError, ControlError and what `open` raises."""
        session_id = wanted or f"s-{secrets.token_hex(6)}"
        self._sessions.check(session_id)
        network, cgroups, warnings = self._current.snapshot.config.network, self._cgroups, []
        if cgroups is not None:
            await self._enter(cgroups, session_id, peer)
        elif network.mode != "off":
            why = "the daemon can make no cgroup (see: agentsh-net status)"
            if network.scope == "sessions":
                raise KernelError(
                    f"the agent would not be policed: {why}", layer="cgroups", remedy="run the daemon as root"
                )
            warnings.append(f"no cgroup of its own: {why}; its connections are told as nobody's session")
        if not proxy_url:
            warnings.append("the LLM proxy is off: what models answer this agent is not seen")
        return await self.open(session_id, proxy_url) | {"warnings": warnings}

    def of(self, token: str, peer: Peer) -> str:
        """Return the session of who asks: that of its cgroup, which it cannot leave, before that of the token it shows."""
        here = self._cgroups.session_of_process(peer.pid) if self._cgroups is not None else ""
        shown = self._sessions.of(token)
        if here and shown not in {here, DEFAULT_SESSION}:
            self._contradicted(here, shown)
        return here or shown

    def _of_sender(self, packet: Packet) -> str | None:
        """Return whose a connection to the proxy is, by its client's packets; empty: as its token says, None: nobody can say."""
        try:
            return self._cgroups.session_of_sender(packet) if self._cgroups is not None else ""
        except KernelError:
            return None

    def _contradicted(self, here: str, shown: str) -> None:
        """Tell of a process that shows another session's token; a worker that says so is believed no more than that both exist."""
        known = {*self._sessions.ids()}
        if (here, shown) not in self._told and {here, shown} <= known and len(self._told) < MAX_TOLD:
            self._told.add((here, shown))
            self._log.warning(
                "session %s shows the token of session %s: what it does is told, and held to, as %s",
                here,
                shown,
                here,
            )

    async def clear(self) -> None:
        """End the sessions in which nothing runs any more: their tokens are void from now on."""
        cgroups = self._cgroups
        ended = [s for s in cgroups.ended() if self._end(cgroups, s)] if cgroups is not None else []
        if ended:
            stored = self._writer.change(records.delete_sessions(ended))
            await self.publish()
            try:
                await asyncio.wrap_future(stored)
            except StoreError as error:  # it is told of the sessions when it is well again
                self._log.error("the end of %s is not stored yet: %s", ", ".join(ended), error)
        if ended or self._refused:
            await self._follow()

    async def _follow(self) -> None:
        """Let the planes tell apart no session that has ended; where the kernel refuses, the next look tries it again."""
        try:
            await self._current.follow_sessions()
        except KernelError as error:
            if str(error) != self._refused:  # every further try fails the same way
                self._log.error("the planes still know sessions that have ended: %s", error)
            self._refused = str(error)
        else:
            self._refused = ""

    def _end(self, cgroups: Cgroups, session_id: str) -> bool:
        try:
            cgroups.end(session_id)
        except KernelError as error:
            # Something came to life in it: the next look tells.
            self._log.warning("session %s: %s", session_id, error)
            return False
        self._forget(session_id)
        return True

    async def void(self, session_id: str) -> None:
        """End a session that is not an agent's cgroup: its token is void. Raises ProtocolError, ControlError, StoreError."""
        self._sessions.check(session_id)
        if self._cgroups is not None and session_id in self._cgroups.live():
            told, remedy = f"an agent runs in session {session_id}", "end the agent: its session ends with it"
            raise ControlError(told, kind="request", remedy=remedy)
        if session_id not in self._sessions.ids():
            told, remedy = (
                f"there is no session {session_id}",
                "agentsh-net session list names those there are",
            )
            raise ControlError(told, kind="request", remedy=remedy)
        self._forget(session_id)
        stored = self._writer.change(records.delete_sessions([session_id]))
        await self.publish()
        await asyncio.wrap_future(stored)

    def _forget(self, session_id: str) -> None:
        self._sessions.forget(session_id)
        self._told = {pair for pair in self._told if session_id not in pair}

    async def store_again(self) -> None:
        """Write the sessions to a database that may be a new one, or may not have heard of an end. Raises StoreError."""
        await asyncio.wrap_future(self._writer.change(records.only_sessions(self._sessions.records())))

    async def publish(self) -> None:
        """Let the workers know the sessions there are."""
        if self._pool is not None:
            placed = self._cgroups is not None and bool(self._cgroups.live())
            await self._pool.publish_sessions(self._sessions.digests(), placed=placed)

    def describe(self) -> list[Mapping[str, Any]]:
        """Return the sessions, for `status` and `session list`; `running`: its agent has not ended."""
        cgroups = self._cgroups
        running = {*cgroups.live()} - {*cgroups.ended()} if cgroups is not None else set()
        return [{"session_id": s, "running": s in running} for s in sorted({*self._sessions.ids(), *running})]

    def _employ(self, pid: int) -> None:
        """Put a worker where the planes know it as ours."""
        if self._cgroups is None:
            return  # `status` says what that costs
        try:
            self._cgroups.employ(pid)
        except KernelError as error:
            self._log.error("worker %d is nobody's to the kernel: %s (%s)", pid, error, error.remedy)

    async def _enter(self, cgroups: Cgroups, session_id: str, peer: Peer) -> None:
        """Make the cgroup, let the planes know it, move the process. Raises KernelError, ControlError."""
        if not _is_there(peer):
            raise ControlError(
                "the daemon does not see the process that asks",
                kind="request",
                remedy="run exec where the daemon runs: in the same pid namespace",
            )
        cgroups.begin(session_id)
        try:
            await self._current.follow_sessions()
            cgroups.enter(session_id, peer.pid)
        except KernelError:
            cgroups.end(session_id)
            raise


def _is_there(peer: Peer) -> bool:
    """Say whether the process still is who it was when it connected."""
    try:
        return Path(f"/proc/{peer.pid}").stat().st_uid in {peer.uid, 0}
    except OSError:
        return False
