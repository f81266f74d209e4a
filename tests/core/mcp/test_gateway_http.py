"""Who may ask the gateway, and which field and credential travels where: one side's never reaches the other by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentsh_net.core.configuration.settings import Gateway, SecurityScheme
from agentsh_net.core.mcp import gateway_http
from agentsh_net.core.mcp.gateway_http import Route

BEARER = SecurityScheme("b", "http", "s3cret", scheme="bearer")
BASIC = SecurityScheme("a", "http", "user:pw", scheme="basic")
HEADER = SecurityScheme("h", "apiKey", "k3y", location="header", name="X-Key")
QUERY = SecurityScheme("q", "apiKey", "a&b", location="query", name="key")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"/mcp/fs", Route("", "fs", "")),
        (b"/mcp/fs/", Route("", "fs", "")),
        (b"/mcp/a%20b?key=1", Route("", "a b", "key=1")),
        (b"/s/tok_1/mcp/fs", Route("tok_1", "fs", "")),
        (b"/mcp/", None),
        (b"/mcp/fs/more", None),
        (b"/mcp/../fs", None),
        (b"/s//mcp/fs", None),
        (b"/", None),
    ],
)
def test_a_target_names_a_server_or_nothing(target: bytes, expected: Route | None) -> None:
    assert gateway_http.route(target) == expected


@pytest.mark.parametrize(
    ("scheme", "fields", "query"),
    [
        (BEARER, {"authorization": "Bearer s3cret"}, ""),
        (BEARER, {"authorization": "bearer  s3cret"}, ""),
        (BASIC, {"authorization": "Basic dXNlcjpwdw=="}, ""),
        (HEADER, {"x-key": "k3y"}, ""),
        (QUERY, {}, "x=1&key=a%26b"),
    ],
)
def test_the_right_credential_is_accepted_and_no_other(
    scheme: SecurityScheme, fields: dict[str, str], query: str
) -> None:
    assert gateway_http.authorized(scheme, fields, query)
    assert not gateway_http.authorized(scheme, {}, "")
    assert not gateway_http.authorized(scheme, {n: v + "x" for n, v in fields.items()}, query + "x")
    assert not gateway_http.authorized(scheme, {n: v[:-1] for n, v in fields.items()}, query[:-1])


def test_a_credential_is_put_where_the_server_wants_it_in_place_of_any_other() -> None:
    headers = (("authorization", "Bearer theirs"), ("Accept", "x"))
    assert gateway_http.with_credential(BEARER, headers, "/mcp") == (
        (("Accept", "x"), ("Authorization", "Bearer s3cret")),
        "/mcp",
    )
    assert gateway_http.with_credential(QUERY, (), "/mcp") == ((), "/mcp?key=a%26b")
    assert gateway_http.with_credential(QUERY, (), "/mcp?a=1") == ((), "/mcp?a=1&key=a%26b")
    assert gateway_http.with_credential(None, headers, "/mcp") == (headers, "/mcp")


def names(*fields: str) -> dict[str, str]:
    return {name.lower(): name for name in fields}


GIVEN = {
    "authorization": "Bearer theirs", "cookie": "c", "x-api-key": "theirs", "x-key": "k3y", "mcp-session-id": "s", "mcp-param-x": "1",
    "content-type": "application/json", "accept": "x", "host": "h", "accept-encoding": "gzip", "origin": "o", "connection": "mcp-param-x",
}  # fmt: skip


def test_no_credential_of_a_client_travels_on_by_itself() -> None:
    kept = dict(gateway_http.forwarded(GIVEN, {n: n for n in GIVEN}, None, passthrough=False))
    assert kept.keys() == {"mcp-session-id", "content-type", "accept"}


def test_passthrough_forwards_the_clients_credential_but_never_the_gateways_own() -> None:
    kept = dict(gateway_http.forwarded(GIVEN, {n: n for n in GIVEN}, HEADER, passthrough=True))
    assert kept["authorization"] == "Bearer theirs" and kept["x-api-key"] == "theirs"
    assert not kept.keys() & {"x-key", "host", "accept-encoding", "origin", "connection"}


@pytest.mark.parametrize("scheme", [HEADER, SecurityScheme("b", "http", "theirs", scheme="bearer")])
def test_what_a_client_shows_at_the_gateway_for_another_server_stays_there(scheme: SecurityScheme) -> None:
    kept = dict(gateway_http.forwarded(GIVEN, {n: n for n in GIVEN}, None, passthrough=True, keys=(scheme,)))
    shown = "x-key" if scheme is HEADER else "authorization"
    assert shown not in kept and "x-api-key" in kept
    other = replace(scheme, credential="another")
    assert shown in dict(
        gateway_http.forwarded(GIVEN, {n: n for n in GIVEN}, None, passthrough=True, keys=(other,))
    )


@pytest.mark.parametrize(
    ("cookie", "kept"),
    [
        ("a=b", "a=b; Path=/mcp/x"),
        ("a=b; Path=/; HttpOnly", "a=b; HttpOnly; Path=/mcp/x"),
        ("a=b;path = / ;Max-Age=1;DOMAIN=127.0.0.1", "a=b;Max-Age=1; Path=/mcp/x"),
    ],
)
def test_a_cookie_is_for_its_server_alone(cookie: str, kept: str) -> None:
    fields = gateway_http.answered([("set-cookie", cookie)], passthrough=True, path="/mcp/x")
    assert fields == (("set-cookie", kept),)


def test_no_credential_of_a_server_travels_back_by_itself() -> None:
    headers = [
        ("set-cookie", "c"),
        ("www-authenticate", "Bearer"),
        ("mcp-session-id", "s"),
        ("content-length", "3"),
        ("access-control-allow-origin", "*"),
    ]
    assert gateway_http.answered(headers, passthrough=False) == (("mcp-session-id", "s"),)
    assert len(gateway_http.answered(headers, passthrough=True)) == 3


def message(method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    ("fields", "body", "named"),
    [
        ({"mcp-method": "tools/list"}, message(name="x"), "Mcp-Method"),
        ({"mcp-name": "y"}, message(name="x"), "Mcp-Name"),
        ({"mcp-name": "=?base64?eQ==?="}, message(name="x"), "Mcp-Name"),
        ({"mcp-name": "file:///a"}, message("resources/read", uri="file:///b"), "Mcp-Name"),
        ({"mcp-protocol-version": "2025-06-18"}, message(_meta={gateway_http.VERSION_KEY: "2026-07-28"}), "MCP-Protocol-Version"),
    ],
)  # fmt: skip
def test_headers_that_tell_another_story_than_the_body_are_found(
    fields: dict[str, str], body: dict[str, Any], named: str
) -> None:
    assert named in gateway_http.disagreement(fields, (), body)


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, message(name="x")),
        ({"mcp-method": "tools/call", "mcp-name": "x"}, message(name="x")),
        ({"mcp-name": "=?base64?w6k=?="}, message(name="é")),
        ({"mcp-method": "ping"}, {"jsonrpc": "2.0", "id": 1, "result": {}}),
        ({"mcp-name": "x"}, message()),
        ({"mcp-name": "x"}, message("ping")),
        ({"mcp-protocol-version": "2026-07-28"}, message(_meta={gateway_http.VERSION_KEY: "2026-07-28"})),
        ({"mcp-protocol-version": "2026-07-28"}, message(_meta={gateway_http.VERSION_KEY: 2026})),
    ],
)
def test_headers_that_agree_or_are_not_there_are_none_of_our_business(
    fields: dict[str, str], body: dict[str, Any]
) -> None:
    assert gateway_http.disagreement(fields, (), body) == ""


def test_a_routing_header_that_stands_twice_is_refused() -> None:
    assert "twice" in gateway_http.disagreement({"mcp-name": "x, x"}, {"mcp-name"}, message(name="x"))


def test_what_a_request_of_the_new_revision_lacks_is_named() -> None:
    whole = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "x"}
    assert gateway_http.missing(whole, message(name="x")) == ""
    for name in whole:
        lacking = {n: v for n, v in whole.items() if n != name}
        assert name in gateway_http.missing(lacking, message(name="x")).lower()
    del whole["mcp-name"]
    assert gateway_http.missing(whole, message("tools/list")) == ""
    assert gateway_http.missing(whole, message() | {"params": ["x"]}) == ""


def test_only_pages_of_this_machine_and_those_named_may_ask() -> None:
    gateway = Gateway(allowed_origins=("https://console.corp",))
    assert all(
        gateway_http.origin_ok(o, gateway) for o in (None, b"http://localhost:6274", b"https://console.corp")
    )
    assert not gateway_http.origin_ok(b"https://evil.example", gateway)
    assert gateway_http.host_ok(b"127.0.0.1:8485", gateway)
    assert not gateway_http.host_ok(b"evil.example", gateway)


def test_a_page_that_may_ask_may_read_the_answer_and_the_session() -> None:
    assert ("Access-Control-Allow-Origin", "http://localhost") in gateway_http.cors(b"http://localhost")
    assert gateway_http.cors(None) == ()
    asked = {"access-control-request-headers": "mcp-session-id"}
    assert ("Access-Control-Allow-Headers", "mcp-session-id") in gateway_http.preflight(asked)


def test_a_challenge_names_the_scheme() -> None:
    assert gateway_http.challenge(BEARER)[0][1].startswith("Bearer")
    assert gateway_http.challenge(HEADER)[0][1].startswith("ApiKey")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"content-type": "application/json"}, ""),
        ({"content-type": 'application/json; charset="UTF-8"'}, ""),
        ({"content-encoding": "identity", "content-type": "application/json;charset=utf-8"}, ""),
        ({"content-encoding": "gzip"}, "Content-Encoding"),
        ({"content-encoding": "identity, br"}, "Content-Encoding"),
        ({"content-type": "application/json; charset=utf-7"}, "charset"),
        ({"content-type": "application/json; charset = UTF-16LE"}, "charset"),
        ({"content-type": "application/json; charset=utf-8; charset='utf-7'"}, "charset"),
        ({"content-type": "application/json; charset*=utf-7"}, "charset"),
        ({"content-type": "application/json, application/json;charset=cp037"}, "charset"),
    ],
)
def test_a_body_that_a_server_would_decode_otherwise_is_not_judged_as_it_looks(
    fields: dict[str, str], why: str
) -> None:
    found = gateway_http.unread(fields)
    assert why in found and bool(found) is bool(why)


def test_who_sends_another_credential_is_somebody_else_whatever_the_credential_is_called() -> None:
    def seen(**fields: str) -> str:
        return gateway_http.passed_through({k.replace("_", "-"): v for k, v in fields.items()}, HEADER)

    plain = seen(content_type="application/json", user_agent="a", mcp_name="x", host="h")
    assert plain == seen(content_type="text/x", user_agent="b", mcp_name="y", host="g") == ""
    assert seen(authorization="Bearer a") != seen(authorization="Bearer b") != plain
    assert seen(x_team="a") != seen(x_team="b")
    assert seen(cookie="a=1") != seen(cookie="a=2")
    assert seen(x_request_id="1", x_b3_traceid="2", sec_fetch_mode="cors", traceparent="3") == plain
    assert seen(x_key="the gateway's own") == plain


def test_credentials_are_what_tells_who_a_client_is() -> None:
    fields = {
        "authorization": "a", "cookie": "c", "x-api-key": "k", "x-team-key": "t", "x-auth-token": "o", "apikey": "p",
        "accept": "x", "mcp-session-id": "s", "mcp-param-key": "q", "sec-websocket-key": "w", "x-request-id": "r", "x-keyboard": "y",
    }  # fmt: skip
    assert gateway_http.credentials(fields).split("\n") == [
        "apikey: p", "authorization: a", "cookie: c", "x-api-key: k", "x-auth-token: o", "x-team-key: t",
    ]  # fmt: skip
    assert gateway_http.credentials({"accept": "x"}) == ""


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("application/json", "application/json", "application/json"),
        ('Application/JSON; charset="UTF-8"', "application/json", 'Application/JSON; charset="UTF-8"'),
        ("text/event-stream;charset=utf-8", "text/event-stream", "text/event-stream;charset=utf-8"),
        ("text/plain", "application/json", "text/plain"),
        ("application/json; x=text/event-stream", "application/json", "application/json"),
        ("text/event-stream, application/json", "text/event-stream", "text/event-stream"),
        ("text/event-streams", "application/json", "application/json"),
        ("TEXT/JSON", "application/json", "application/json"),
    ],
)
def test_an_answer_is_called_what_it_was_read_as_where_it_could_be_taken_for_another(
    value: str, kind: str, expected: str
) -> None:
    fields = (("X-A", "json, event-stream"), ("content-Type", value))
    assert gateway_http.described(fields, kind) == (fields[0], ("content-Type", expected))


@pytest.mark.parametrize(
    ("headers", "wants"),
    [
        ([("WWW-Authenticate", 'Bearer Resource_Metadata="https://s.example/.well-known"')], True),
        ([("WWW-Authenticate", 'Bearer realm="s"')], False),
        ([("link", "resource_metadata")], False),
    ],
)
def test_a_server_wants_a_login_where_its_challenge_says_so(
    headers: list[tuple[str, str]], wants: bool
) -> None:
    assert gateway_http.wants_login(headers) == wants
