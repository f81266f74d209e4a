"""A snapshot's gateway is looked up once: schemes by their ids, tools by their patterns, servers whatever their case."""

from __future__ import annotations

from agentsh_proxy.gateway.view import called, unfold, upstream_schemes
from gateway_front import snapshot

SCHEMES = [
    {"id": "A", "type": "http", "scheme": "bearer", "credential": "a"},
    {"id": "b", "type": "http", "scheme": "bearer", "credential": "b"},
]
PEER = {"id": "Peer", "type": "http", "url": "http://127.0.0.1:1/mcp"}
OWN = {
    "downstream_security": "a",
    "upstream_security": "b",
    "allow_tools": ["get_*"],
    "tools": {"pay": {"upstream_security": "A"}},
}


def test_what_a_server_is_set_to_is_found() -> None:
    view = unfold(snapshot([PEER], gateway={"security_schemes": SCHEMES, "servers": {"peer": OWN}}))
    place = view.places["peer"]
    assert place.downstream is not None and place.downstream.credential == "a"
    assert [place.scheme(tool) and place.scheme(tool).credential for tool in ("pay", "get_x", "")] == [
        "a",
        "b",
        "b",
    ]  # type: ignore[union-attr] # asked first
    assert place.offers("GET_x") and not place.offers("pay")


def test_a_server_without_settings_has_the_defaults() -> None:
    place = unfold(snapshot([PEER])).places["peer"]
    assert (place.settings.timeout, place.downstream, place.scheme("x"), place.offers("x")) == (
        60.0,
        None,
        None,
        True,
    )


def test_who_lists_tools_has_the_credentials_of_a_gateway_that_is_on() -> None:
    settings = {"security_schemes": SCHEMES, "servers": {"peer": OWN}}
    other = {**PEER, "id": "other"}
    found = upstream_schemes(snapshot([PEER, other], gateway=settings))
    assert {server: scheme.credential for server, scheme in found.items()} == {"Peer": "b"}
    assert upstream_schemes(snapshot([PEER], gateway={**settings, "enabled": False})) == {}


def test_the_tool_of_a_message_is_that_of_a_lone_call() -> None:
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}'
    assert called(call) == "pay"
    for other in (b"", b"nonsense", b"[" + call + b"]", call.replace(b"tools/call", b"tools/list")):
        assert called(other) == ""
