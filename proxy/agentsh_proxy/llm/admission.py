"""What happens to a request before a byte of it leaves: refused with a reason, answered here, or admitted with its route.

Pure: a head, the view and the sessions go in, a decision comes out. Bodies and sockets are not its business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

import orjson

from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.dialects.openai_responses import dialect as openai_responses
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web import urls
from agentsh_net.core.web.http_access import host_allowed, origin_allowed
from agentsh_net.core.web.http_head import RequestHead
from agentsh_net.core.web.http_route import api_path, canonical, locate, split_target, unread, upstream_path
from agentsh_proxy.callers import Caller, caller
from agentsh_proxy.llm.signing import REMEDY, brings_key
from agentsh_proxy.llm.view import ProviderView, View
from agentsh_proxy.refused_requests import RefusedRequest, refused_request

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
MAX_WAYS = 1024  # remembered per policy; an agent uses a handful
_ALLOW = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"


class RefusalError(Exception):
    """The request goes no further: `status`, a message for the client, and the dialect to say it in, if one is known.

    `unread` is set where it would have been admitted, had policy allowed what nobody reads; `request` where its head was enough;
    `told` where an event of its own says so already.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        dialect: Dialect | None = None,
        fields: bytes = b"",
        unread: Admitted | None = None,
        told: bool = False,
    ) -> None:
        self.status = status
        self.dialect = dialect
        self.fields = fields
        self.unread = unread
        self.told = told
        self.request: RefusedRequest | None = None
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may go on. `inspected` is None where no dialect has an opinion on its path."""

    session_id: str
    provider: ProviderView
    inspected: Dialect | None
    target: bytes  # for the upstream: path and query
    unread: str  # why calls may pass unseen at this endpoint; empty where that is not known of it
    websocket: bool = False
    here: str = ""  # the session in which its client's socket was made
    shown: str = ""  # another one, whose token it had
    beside: str = ""  # the declared MCP server that it goes to, as policy is not enforced

    @property
    def dialect(self) -> Dialect:
        """The dialect in which the client expects errors."""
        return self.inspected or self.provider.dialect


class Answered(NamedTuple):
    """A request for the proxy itself."""

    body: bytes


class Way(NamedTuple):
    """What a request's method, path and authority alone decide: remembered, since agents ask for the same few."""

    token: str
    provider: ProviderView
    inspected: Dialect | None
    path: bytes
    unread: str
    websocket: bool = False
    beside: str = ""


def admit(head: RequestHead, view: View, sessions: Mapping[str, str], here: str = "") -> Admitted | Answered:
    """Decide about a request by its head; `here` is the session in which its client's socket was made. Raises RefusalError."""
    try:
        return _admit(head, view, sessions, here)
    except RefusalError as refused:
        refused.request = refused_request(head, sessions, here)
        raise


def _admit(head: RequestHead, view: View, sessions: Mapping[str, str], here: str) -> Admitted | Answered:
    bare, mark, query = head.target.partition(b"?")
    asked = (head.method, bare, head.host, head.origin, head.websocket)
    way = view.ways.get(asked)
    if way is None:
        try:
            way = _way(head, bare, view)
        except ProtocolError as error:
            raise RefusalError(error.status, str(error)) from error
        if isinstance(way, Answered):
            return way
        if len(view.ways) >= MAX_WAYS:
            view.ways.clear()
        view.ways[asked] = way
    if way.provider.wants_key and not brings_key(head):
        raise RefusalError(401, REMEDY.replace("<name>", way.provider.name), dialect=way.provider.dialect)
    session_id, shown = _caller(here, way, sessions)
    admitted = Admitted(
        session_id,
        way.provider,
        way.inspected,
        way.path + mark + query,
        way.unread,
        way.websocket,
        here,
        shown,
        way.beside,
    )
    if way.unread and view.closed:
        told = f"{bare.decode('ascii', 'replace')} {way.unread}, and fail_closed is set"
        raise RefusalError(404, told, dialect=way.provider.dialect, unread=admitted)
    return admitted


def _way(head: RequestHead, bare: bytes, view: View) -> Way | Answered:
    """Decide what does not depend on the session. Raises RefusalError, ProtocolError."""
    path = _path(head, bare, view)
    if path in (b"/", b"/healthz"):
        return Answered(_health(view))
    canonical(path)
    route = locate(path, view.dialect_names)
    provider = view.providers[route.provider]
    upstream = upstream_path(provider.base_path, route.rest)
    inspected = _inspecting(head.method, canonical(route.rest), canonical(upstream), provider)
    if head.websocket:
        spoken = _inspecting("POST", canonical(route.rest), canonical(upstream), provider)
        # Limits and storage read HTTP.
        relayed = view.proxy.websockets == "inspect" and not (provider.limited or view.stores)
        if relayed and head.method == "GET" and spoken is openai_responses.DIALECT:
            return Way(route.token, provider, spoken, upstream, unread="", websocket=True)
        raise RefusalError(
            426,
            "WebSocket upgrades are not relayed; use HTTP with server-sent events",
            dialect=provider.dialect,
            fields=b"Upgrade: HTTP/1.1\r\n",
        )
    if inspected is not None:
        return Way(route.token, provider, inspected, upstream, unread="")
    why = unread(head.method, canonical(api_path(provider.base_path, route.rest)))
    if server_id := _server_at(provider, canonical(upstream), view):
        why = (
            f"is the MCP server {server_id!r}, whose calls are judged at the gateway alone (/mcp/{server_id})"
        )
        if view.enforce:
            raise RefusalError(403, f"{upstream.decode('ascii', 'replace')} {why}", dialect=provider.dialect)
    return Way(route.token, provider, None, upstream, why, beside=server_id)


def _server_at(provider: ProviderView, path: str, view: View) -> str:
    """Return the declared MCP server that lies at a path of the provider's, or above it; empty where none does."""
    for server in view.snapshot.registry.servers_at(provider.origin.host, provider.origin.port):
        try:
            own = canonical(quote(urls.parse(server.url).path, safe="/%").encode())
        except ProtocolError:
            continue  # nor is anything at such a path relayed
        if path == own or (own and path.startswith(f"{own}/")):
            return server.id
    return ""


def _path(head: RequestHead, bare: bytes, view: View) -> bytes:
    """Return the path asked for. Raises RefusalError where who asks, or how, is not allowed, and ProtocolError."""
    if head.method not in _METHODS:
        raise RefusalError(405, f"the method {head.method} is not relayed", fields=_ALLOW)
    target = split_target(bare)
    listen = view.proxy.listen
    authorities = [a for a in (head.host, target.authority) if a]
    if not all(host_allowed(authority, listen) for authority in authorities):
        raise RefusalError(
            421, "the Host of the request is not this proxy's: reach it as localhost or by its IP address"
        )
    if head.origin is not None and not origin_allowed(head.origin):
        raise RefusalError(403, "requests from web pages of other origins are not relayed")
    return target.path


def _caller(here: str, way: Way, sessions: Mapping[str, str]) -> Caller:
    try:
        return caller(here, way.token, sessions)
    except ProtocolError as error:
        raise RefusalError(error.status, str(error), dialect=way.provider.dialect) from error


def _inspecting(method: str, rest: str, whole: str, provider: ProviderView) -> Dialect | None:
    """Return the dialect that reads answers at this path, whichever of the two ways of naming it the dialect knows."""
    for dialect in provider.dialects:
        if dialect.inspects(method, rest) or dialect.inspects(method, whole):
            return dialect
    return None


def _health(view: View) -> bytes:
    return orjson.dumps({"name": "agentsh-net", "status": "ok", "generation": view.snapshot.generation})
