"""The HTTP rules of the gateway: who may ask, which fields travel on, which credential goes where, and what must agree.

One side's credential never reaches the other unless `passthrough` says so. Sending is not its business.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote

from agentsh_net.core.configuration.settings import Gateway, SecurityScheme
from agentsh_net.core.mcp.http_rules import Headers
from agentsh_net.core.mcp.params import decoded
from agentsh_net.core.web.http_access import host_allowed, origin_allowed

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
# Method -> the parameter that Mcp-Name repeats (2026-07-28, Streamable HTTP, "standard headers").
NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

# What travels to the server without `passthrough`: MCP's own fields and what describes the message, no credential.
_TRAVELS: Final = frozenset(
    (
        "content-type", "accept", "accept-language", "last-event-id", "user-agent", "cache-control", "traceparent", "tracestate",
        "baggage",
    )
)  # fmt: skip
# What never does: it belongs to this hop, to the page that asked, or is written anew.
_ENDS: Final = frozenset(
    (
        "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
        "http2-settings", "host", "expect", "content-length", "accept-encoding", "origin", "referer", "forwarded", "x-forwarded-for",
        "x-forwarded-host", "x-forwarded-proto", "access-control-request-method", "access-control-request-headers",
    )
)  # fmt: skip
_ANSWER_ENDS: Final = frozenset(
    (
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade",
        "content-length", "content-encoding", "strict-transport-security",
        # They lead a client around the gateway; redirects inside the server's origin are followed here, and some clients take any 3xx for one.
        "alt-svc", "location", "refresh",
    )
)  # fmt: skip
_ANSWER_CREDENTIALS: Final = frozenset(("set-cookie", "www-authenticate"))
# Names of one request for whoever traces it (W3C's are among what travels anyway), and what browsers add.
_OF_A_REQUEST: Final = re.compile(
    r"(?:x-)?(?:request|correlation|trace|client-request)-id|x-amzn-trace-id|x-cloud-trace-context|sentry-trace|b3|x-b3-.*|sec-.*|priority|dnt|pragma"
)
_CREDENTIAL: Final = re.compile(
    r"(?!mcp-|sec-)(?:.*(?:authorization|cookie|token|secret)|(?:.*-)?(?:api)?key$)"
)
_CHARSET: Final = re.compile(r"charset\*?[ \t]*=[ \t]*[\"']?([^\"';, \t]*)", re.IGNORECASE)
_READ_BY: Final = re.compile("json|event-stream", re.IGNORECASE)  # what clients look for in a Content-Type
_DESCRIBED: Final = re.compile(
    r"(application/json|text/event-stream)(?:[ \t]*;[ \t]*charset=\"?utf-?8\"?)?", re.IGNORECASE
)
_PATH: Final = re.compile(r"(?:/s/([A-Za-z0-9_-]{1,256}))?/mcp/([^/?]{1,768})/?(?:\?(.*))?")


@dataclass(frozen=True, slots=True)
class Route:
    """What a request's target names: a session's token (empty: none), a server, and the query."""

    token: str
    server_id: str
    query: str


def route(target: bytes) -> Route | None:
    """Return what `/mcp/<server-id>` or `/s/<token>/mcp/<server-id>` names; None for any other target."""
    match = _PATH.fullmatch(target.decode("ascii", "replace"))
    if match is None:
        return None
    return Route(match[1] or "", unquote(match[2]), match[3] or "")


def host_ok(host: bytes, gateway: Gateway) -> bool:
    """Say whether a Host names this gateway; a web page that rebinds its own name to loopback cannot send one that does."""
    return host_allowed(host, gateway.listen)


def origin_ok(origin: bytes | None, gateway: Gateway) -> bool:
    """Say whether a page of this origin may ask: none at all, this machine's, and those that `allowed_origins` names."""
    if origin is None:
        return True
    return origin.decode("latin-1") in gateway.allowed_origins or origin_allowed(origin)


def cors(origin: bytes | None) -> Headers:
    """Return what lets the page that asked read the answer (Fetch, 3.2); nothing where no page did."""
    if origin is None:
        return ()
    return (
        ("Access-Control-Allow-Origin", origin.decode("latin-1")),
        ("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"),
        ("Vary", "Origin"),
    )


def preflight(fields: Mapping[str, str]) -> Headers:
    """Return the answer to a page that asks whether it may ask."""
    wanted = fields.get("access-control-request-headers", "")
    return (
        ("Access-Control-Allow-Methods", "GET, POST, DELETE"),
        *((("Access-Control-Allow-Headers", wanted),) if wanted else ()),
        ("Access-Control-Max-Age", "600"),
    )


def authorized(scheme: SecurityScheme, fields: Mapping[str, str], query: str) -> bool:
    """Say whether a request carries a scheme's credential, in time that does not depend on how much of it is right."""
    wanted, given = _wanted(scheme), ""
    if scheme.location == "query":
        given = dict(parse_qsl(query, keep_blank_values=True)).get(scheme.name, "")
    else:
        given = fields.get(_field(scheme).lower(), "")
        if scheme.type == "http":  # the scheme's name is case-insensitive (RFC 9110, section 11.1)
            name, _, rest = given.partition(" ")
            given = f"{name.capitalize()} {rest.strip()}"
    return hmac.compare_digest(wanted.encode("utf-8", "replace"), given.encode("utf-8", "replace"))


def challenge(scheme: SecurityScheme) -> Headers:
    """Return what a 401 says about the credential it wants (RFC 9110, section 11.6.1)."""
    if scheme.type == "http":
        return (("WWW-Authenticate", f'{scheme.scheme.capitalize()} realm="agentsh-net"'),)
    return (("WWW-Authenticate", 'ApiKey realm="agentsh-net"'),)


def with_credential(scheme: SecurityScheme | None, headers: Headers, target: str) -> tuple[Headers, str]:
    """Return headers and request target with a scheme's credential in them."""
    if scheme is None:
        return headers, target
    if scheme.location == "query":
        joint = "&" if "?" in target else "?"
        return headers, f"{target}{joint}{quote(scheme.name, safe='')}={quote(scheme.credential, safe='')}"
    field = _field(scheme)
    kept = tuple(h for h in headers if h[0].lower() != field.lower())
    return (*kept, (field, _wanted(scheme))), target


def _field(scheme: SecurityScheme) -> str:
    return "Authorization" if scheme.type == "http" else scheme.name


def _wanted(scheme: SecurityScheme) -> str:
    if scheme.type != "http":
        return scheme.credential
    if scheme.scheme == "basic":
        return "Basic " + base64.b64encode(scheme.credential.encode()).decode()
    return f"Bearer {scheme.credential}"


def forwarded(
    fields: Mapping[str, str],
    names: Mapping[str, str],
    downstream: SecurityScheme | None,
    *,
    passthrough: bool,
    keys: Iterable[SecurityScheme] = (),
) -> Headers:
    """Return the fields of a client's request that travel on, as they were spelt.

    `keys` are what clients show at this gateway, for whichever server: who shows one to all of them shows it to no server.
    """
    shown = {_field(key).lower() for key in keys if key.location != "query" and authorized(key, fields, "")}
    if downstream is not None and downstream.location != "query":
        shown.add(_field(downstream).lower())
    nominated = {token.strip().lower() for token in fields.get("connection", "").split(",")}
    return tuple(
        (names[name], value)
        for name, value in fields.items()
        if name not in _ENDS
        and name not in shown
        and name not in nominated
        and (passthrough or name in _TRAVELS or name.startswith("mcp-"))
    )


def passed_through(fields: Mapping[str, str], downstream: SecurityScheme | None) -> str:
    """Return what of a client's request goes on with `passthrough` alone, as text: who sends otherwise may be somebody else.

    Any field may be a credential, so all count but those that are new with every request.
    """
    names = {name: name for name in fields}
    ours = dict(forwarded(fields, names, downstream, passthrough=False))
    theirs = forwarded(fields, names, downstream, passthrough=True)
    return "\n".join(
        sorted(f"{n}: {v}" for n, v in theirs if n not in ours and not _OF_A_REQUEST.fullmatch(n))
    )


def credentials(fields: Mapping[str, str]) -> str:
    """Return the fields by which a client shows who it is, as text: empty for one that does not."""
    return "\n".join(sorted(f"{n}: {v}" for n, v in fields.items() if _CREDENTIAL.match(n)))


def answered(headers: Iterable[tuple[str, str]], *, passthrough: bool, path: str = "/") -> Headers:
    """Return the fields of a server's answer that travel on: what ends at this hop and what are its credentials do not.

    A cookie is for `path` alone: all servers have one host here, and a client with a jar would show it to the others.
    """
    return tuple(
        (name, _kept_to(path, value) if name == "set-cookie" else value)
        for name, value in headers
        if name not in _ANSWER_ENDS
        and (passthrough or name not in _ANSWER_CREDENTIALS)
        and not name.startswith("access-control-")
    )


def _kept_to(path: str, cookie: str) -> str:
    """Return a cookie for a path and whatever host gives it (RFC 6265, sections 5.2.3 and 5.2.4)."""
    pair, *attributes = cookie.split(";")
    kept = (a for a in attributes if a.partition("=")[0].strip().lower() not in {"path", "domain"})
    return ";".join((pair, *kept, f" Path={path}"))


def described(headers: Headers, kind: str) -> Headers:
    """Return the fields of an answer that was read as `kind`: what could be taken for another is called that alone.

    Some clients look for a type anywhere in the field.
    """
    return tuple(
        (name, kind)
        if name.lower() == "content-type" and _READ_BY.search(value) and not _DESCRIBED.fullmatch(value)
        else (name, value)
        for name, value in headers
    )


def unread(fields: Mapping[str, str]) -> str:
    """Say why a body is not the text that is judged here: compressed, or in another charset than JSON has (RFC 8259, section 8.1).

    Servers undo either by these fields: behind them stands another call than before them. Empty: it is what it seems.
    """
    if fields.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        return "a request with a Content-Encoding is not taken"
    charsets = _CHARSET.findall(fields.get("content-type", ""))
    if any(charset.lower() not in {"utf-8", "utf8", "us-ascii"} for charset in charsets):
        return "the charset of a request has to be UTF-8"
    return ""


def wants_login(headers: Iterable[tuple[str, str]]) -> bool:
    """Say whether a 401 sends its client to an authorization server (RFC 9728, section 5.1)."""
    return any(
        name.lower() == "www-authenticate" and "resource_metadata" in value.lower() for name, value in headers
    )


def disagreement(fields: Mapping[str, str], repeated: Iterable[str], message: Mapping[str, Any]) -> str:
    """Say where the header fields that repeat a message contradict it (2026-07-28); empty where they do not.

    A field that is missing is the server's business: who routes by headers must not be told another story than who reads.
    """
    doubled = sorted({"mcp-method", "mcp-name", "mcp-protocol-version"}.intersection(repeated))
    if doubled:
        return f"the header {doubled[0]} stands twice"
    method = message.get("method")
    if not isinstance(method, str):
        return ""
    if fields.get("mcp-method", method) != method:
        return "the header Mcp-Method is not the method of the request"
    params = message.get("params")
    params = params if isinstance(params, Mapping) else {}
    named = params.get(NAMED.get(method, ""))
    if isinstance(named, str) and "mcp-name" in fields and decoded(fields["mcp-name"]) != named:
        return f"the header Mcp-Name is not the `{NAMED[method]}` of the request"
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, Mapping) else None
    if isinstance(version, str) and fields.get("mcp-protocol-version", version) != version:
        return "the header MCP-Protocol-Version is not the revision that the request names"
    return ""


def missing(fields: Mapping[str, str], message: Mapping[str, Any]) -> str:
    """Say which header field a request of 2026-07-28 must have and has not; empty where none is missing."""
    method = str(message.get("method"))
    if "mcp-protocol-version" not in fields:
        return "the header MCP-Protocol-Version is missing"
    if "mcp-method" not in fields:
        return "the header Mcp-Method is missing"
    params = message.get("params")
    if method in NAMED and "mcp-name" not in fields and isinstance(params, Mapping):
        return "" if params.get(NAMED[method]) is None else "the header Mcp-Name is missing"
    return ""
