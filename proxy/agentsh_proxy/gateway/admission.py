"""Who may ask the MCP gateway, and which server is meant: what a request's head says of that.

The body is not looked at here; what becomes of a request that is let in is the gateway's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import gateway_http, jsonrpc
from agentsh_net.core.model import Verdict
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy.callers import caller
from agentsh_proxy.gateway.connection import JSON, GatewayConnection
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.view import GatewayView, Place

METHODS: Final = ("GET", "POST", "DELETE")
MAX_NAMED: Final = 20  # servers in an answer: a policy may declare thousands


@dataclass(frozen=True, slots=True)
class Admitted:
    """Whom a head lets in, and where to: so does the same head on the same connection while these are in force.

    `denied` is the verdict on the server itself, where it is a block.
    """

    view: GatewayView
    sessions: Mapping[str, str]
    head: RequestHead
    place: Place
    session_id: str
    denied: Verdict | None
    shown: str  # another session, whose token the path has

    @property
    def max_request(self) -> int:
        """Bytes that a message of the client may have."""
        return self.view.gateway.max_request

    @property
    def max_response(self) -> int:
        """Bytes that an answer of the server may have."""
        return self.view.gateway.max_response

    def holds(self, view: GatewayView, sessions: Mapping[str, str], asked: HttpRequest) -> bool:
        """Say whether a request has that head, and nothing changed since."""
        return self.view is view and self.sessions is sessions and self.head is asked.head


def admit(
    asked: HttpRequest, client: GatewayConnection, view: GatewayView, sessions: Mapping[str, str]
) -> Admitted | None:
    """Return who asks which server by its head; None where that was the end of it. Raises ProtocolError."""
    gateway = view.gateway
    if not gateway_http.host_ok(asked.head.host, gateway):
        raise ProtocolError(
            "the Host of the request is not this gateway's: reach it as localhost or by its IP address",
            status=421,
        )
    if not gateway_http.origin_ok(asked.head.origin, gateway):
        raise ProtocolError(
            "requests from web pages of this origin are not taken (gateway.allowed_origins)", status=403
        )
    client.cors = gateway_http.cors(asked.head.origin)
    if asked.method == "OPTIONS" and asked.head.origin is not None:
        client.answer(204, b"", gateway_http.preflight(asked.fields))
        return None
    if asked.head.target in (b"/", b"/healthz"):
        client.answer(200, b'{"name":"agentsh-net","status":"ok"}')
        return None
    route = gateway_http.route(asked.head.target)
    if route is None:
        raise ProtocolError(f"the path is /mcp/<server-id>; {_usable(asked, '', view)}", status=404)
    session_id, shown = caller(client.here, route.token, sessions)
    place = view.places.get(fold(route.server_id))
    if place is None or not _let_in(place, asked, route.query):
        _turn_away(asked, client, route, view)
        return None
    if asked.method not in METHODS:
        client.note_refused(405, f"no {asked.method} here")
        body = jsonrpc.error(None, mcp_gate.UNREADABLE, f"agentsh-net: no {asked.method} here")
        client.answer(405, body, (*JSON, ("Allow", ", ".join(METHODS))))
        return None
    if unread := gateway_http.unread(asked.fields):
        raise ProtocolError(unread, status=415)
    judged = view.snapshot.judge_server(place.server.id)
    denied = judged if judged.blocked else None
    return Admitted(view, sessions, asked.head, place, session_id, denied, shown)


def _let_in(place: Place, asked: HttpRequest, query: str) -> bool:
    """Say whether a request has the credential that a server's clients show here."""
    return place.downstream is None or gateway_http.authorized(place.downstream, asked.fields, query)


def _turn_away(
    asked: HttpRequest, client: GatewayConnection, route: gateway_http.Route, view: GatewayView
) -> None:
    """Refuse a request for a server that is not declared, or wants a credential: no answer says which, and so who is there.

    Raises ProtocolError where there is no credential that the client has not shown.
    """
    named, usable = visible(route.server_id), _usable(asked, route.query, view)
    wanted = [
        place.downstream
        for place in view.places.values()
        if place.downstream is not None and not _let_in(place, asked, route.query)
    ]
    if not wanted:
        raise ProtocolError(f"server {named!r} is not declared; {usable}", status=404)
    why = f"server {named!r} is not declared, or wants a credential that the request has not; {usable}"
    challenges = dict.fromkeys(field for scheme in wanted for field in gateway_http.challenge(scheme))
    client.note_refused(401, why)
    body = jsonrpc.error(None, mcp_gate.UNREADABLE, f"agentsh-net: {why}")
    client.answer(401, body, (*JSON, *challenges))


def _usable(asked: HttpRequest, query: str, view: GatewayView) -> str:
    """Say which servers this very client may use: others are none of its business."""
    usable = (
        visible(place.server.id)
        for place in view.places.values()
        if _let_in(place, asked, query) and not view.snapshot.judge_server(place.server.id).blocked
    )
    named = list(islice(usable, MAX_NAMED + 1))
    if len(named) > MAX_NAMED:
        named[-1] = "..."
    return f"servers that this client may use: {', '.join(named) or 'none'}"
