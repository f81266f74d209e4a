"""The thread that answers the workers' questions about calls: rates and session rules are exact over all workers.

A thread of its own, because a worker waits for the answer: it must not queue behind the daemon's other work.
Policy is not its business; workers are not trusted, so every question is checked and bounded.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, BinaryIO, Protocol

import orjson

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import TCP
from agentsh_net.core.audit.events import ToolCallIntercepted
from agentsh_net.core.audit.joining import Intent, Intents
from agentsh_net.core.configuration.settings import CrossServer, ProviderLimits
from agentsh_net.core.flows.refused_calls import RefusedCalls
from agentsh_net.core.flows.session_ledger import ProposedCall, SessionLedger
from agentsh_net.core.limits.api_limits import ApiLimits
from agentsh_net.core.links.link import MAX_CHARGE, MAX_CHARGE_NAME, MAX_TOKENS, MAX_TOLD
from agentsh_net.core.model import Crossing
from agentsh_net.core.network.addresses import unmapped
from agentsh_net.core.registry import Registry
from agentsh_net.core.web.urls import MAX_PORT
from agentsh_net.workers.shared_flag import SharedFlag
from agentsh_net.workers.sockets import WorkerSockets

MAX_SERVERS = 4096


class Buckets(Protocol):
    """Token buckets (`core.limits.ratelimit.Buckets`)."""

    def take(self, server_id: str, call_key: str, now: float) -> bool:
        """Charge a call once and say whether it is within the rate."""
        ...


class Arbiter:
    """Answers `[number, server, call key, tool, session, turn, call id]` on every socket it was given.

    Of a provider's limits `[number, {"admit": [provider, tokens]}]`, answered by the seconds to wait, and `settle` likewise.
    The answer is `[number, within]`, or `[number, {rule, severity, reason, related}]` where a session rule is against the call.
    To `[number, {"whose": [host, port, host, port]}]`, a connection's two ends, it is the session of the first, empty where that is
    none, null where nobody can say; `contradicts: [session, session]` tells of one that shows the other's token.
    `refuses: [place, text]` is remembered, `refused: [place, n]` answered by the n-th text of the place, `forgets: [place, n]` ends n.
    To `[number, server, tool, session, mark]`, a call on the wire, it is the intent that the call carries out, or nothing.
    """

    def __init__(self, buckets: Buckets, clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self._intents = Intents()
        self._clock = clock
        self._charging = threading.Lock()  # the daemon's own thread charges too, for shims
        self._ledger = SessionLedger()
        self._api = ApiLimits({})
        self._workers = WorkerSockets(lambda: None, socket.SOCK_SEQPACKET)
        self._servers: set[str] = set()
        self.whose: Callable[[Packet], str | None] = lambda _: ""
        self.contradicted: Callable[[str, str], None] = lambda *_: None
        self.placed: Callable[[], Collection[str]] = tuple  # the sessions that have a cgroup
        self._refused = RefusedCalls()
        self._refusing = SharedFlag("agentsh-net-refusing")
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="agentsh-net-arbiter", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def replace(self, buckets: Buckets) -> None:
        """Charge these buckets from now on (a reload; what they inherit is the caller's business)."""
        self._buckets = buckets

    def limit(self, providers: Mapping[str, ProviderLimits]) -> None:
        """Let requests be within these limits from now on; what was used stays used."""
        with self._charging:
            self._api = self._api.with_limits(providers)

    def follow(self, settings: CrossServer, registry: Registry, *, audit: bool) -> None:
        """Judge sessions by these rules and definitions from now on."""
        with self._charging:
            self._ledger.follow(settings, registry, audit=audit)

    def charge(self, server_id: str, tool: str = "", session_id: str = "") -> bool | Crossing:
        """Charge one call to a server, from any thread: within the rate, or what a session rule has against it."""
        return self._take(ProposedCall(server_id, tool, session_id))

    def _take(self, asked: ProposedCall) -> bool | Crossing:
        with self._charging:
            now = self._clock()
            return self._ledger.take(asked, now, lambda: self._buckets.take(asked.server_id, asked.key, now))

    def note(self, event: Mapping[str, Any]) -> None:
        """Remember an event (as JSON) that may be a call which is still to be made."""
        if event.get("type") == ToolCallIntercepted.type:
            with self._charging:
                self._intents.note(event, self._clock())

    def awaits(self, server_id: str, tool: str) -> bool:
        """Say whether a call of this tool may carry out one in a model's answer, until the next one is noted."""
        with self._charging:
            return self._intents.awaits(server_id, tool)

    def claim(self, server_id: str, tool: str, marked: Callable[[], str], session_id: str) -> Intent | None:
        """Return the call in a model's answer that a call on the wire carries out, from any thread; each once."""
        with self._charging:
            return self._intents.claim(server_id, tool, marked, session_id, self._clock(), self.placed)

    def attach(self) -> socket.socket:
        """Return a new socket for a worker to ask on."""
        return self._workers.attach()

    def refusing(self) -> BinaryIO:
        """Return a file of which the first byte says whether any refused call is remembered."""
        return self._refusing.shown()

    def stop(self) -> None:
        """Stop the thread and close every socket."""
        self._stopping = True
        self._workers.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._workers.close()
        self._refusing.close()

    def _run(self) -> None:
        while not self._stopping:
            for connection, _ in self._workers.wait():
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        """Answer one question; a worker that is gone or talks nonsense is not listened to any more."""
        try:
            question = connection.recv(MAX_CHARGE + 1)
            match orjson.loads(question) if 0 < len(question) <= MAX_CHARGE else None:
                case [int(number), dict(about)]:
                    connection.send(orjson.dumps([number, self._about(about)]))
                case [int(number), *names]:
                    connection.send(orjson.dumps([number, self._answer(names)]))
                case _:
                    self._workers.drop(connection)
        except BlockingIOError:
            return  # the worker does not read its answers; it will time out on its own
        except (OSError, ValueError):  # gone, or no JSON, or no question
            self._workers.drop(connection)

    def _about(self, about: dict[str, object]) -> float | str | None:
        """Charge or settle a request, say whose a connection is, or what was refused. Raises ValueError for what a sound worker cannot say."""
        match about:
            case {"admit": [str(provider), int(tokens)]} if 0 <= tokens <= MAX_TOKENS:
                with self._charging:
                    return self._api.admit(provider, tokens, self._clock())
            case {"settle": [str(provider), int(tokens)]} if abs(tokens) <= MAX_TOKENS:
                with self._charging:
                    self._api.settle(provider, tokens, self._clock())
                return 0.0
            case {"whose": [str(client), int(port), str(server), int(server_port)]}:
                return self.whose(_packet(client, port, server, server_port))
            case {"contradicts": [str(here), str(shown)]} if max(len(here), len(shown)) <= MAX_CHARGE_NAME:
                self.contradicted(here, shown)
                return 0.0
            case {"refuses": [str(place), str(told)]} if (
                len(place) <= MAX_CHARGE_NAME and len(told) <= MAX_TOLD
            ):
                self._refused.note(place, told)
                self._refusing.set()
                return 0.0
            case {"refused": [str(place), int(number)]} if number >= 0:
                return self._refused.told(place, number)
            case {"forgets": [str(place), int(count)]} if count >= 0:
                self._refused.forget(place, count)
                return 0.0
        raise ValueError("no question about a request")

    def _answer(self, names: list[object]) -> bool | Crossing | dict[str, str] | None:
        """Answer a question. Raises ValueError for what a sound worker cannot ask."""
        match names:
            case [str(server_id), str(tool), str(session_id), str(mark)]:
                intent = self.claim(server_id, tool, lambda: mark, session_id)
                if intent is None:
                    return None
                return {
                    "event_id": intent.event_id,
                    "session_id": intent.session_id,
                    "tool_call_id": intent.tool_call_id,
                }
            case _:
                return self._take(self._asked(*names))

    def _asked(self, *names: object) -> ProposedCall:
        """Return what is asked about. Raises ValueError for what a sound worker cannot say."""
        match names:
            case [str(server_id), str(key), *rest] if len(rest) in (0, 4):
                named = [
                    n for n in (server_id, key, *rest) if isinstance(n, str) and len(n) <= MAX_CHARGE_NAME
                ]
                # One that makes up names may cost itself its answers, and nobody else theirs.
                known = server_id in self._servers or len(self._servers) < MAX_SERVERS
                if known and len(named) == len(names):
                    self._servers.add(server_id)
                    tool, session_id, turn, call_id = named[2:] or [""] * 4
                    return ProposedCall(server_id, tool, session_id, turn, call_id, key)
        raise ValueError("no question about a call of a declared server")


def _packet(client: str, port: int, server: str, server_port: int) -> Packet:
    """Return what the client of a connection sends. Raises ValueError."""
    if not (0 < port <= MAX_PORT and 0 < server_port <= MAX_PORT):
        raise ValueError("no port")
    return Packet(_address(client), _address(server), TCP, port, server_port)


def _address(host: str) -> IPv4Address | IPv6Address:
    return unmapped(ip_address(host.partition("%")[0]))
