"""Credentials stay at their origin: endpoints, redirects and headers that would carry them elsewhere are refused."""

from __future__ import annotations

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp.http_rules import address

SSE = "https://mcp.example.com:8443/base/sse?key=1"


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("/messages/?session_id=1", "https://mcp.example.com:8443/messages/?session_id=1"),
        ("messages", "https://mcp.example.com:8443/base/messages"),
        ("?s=1", "https://mcp.example.com:8443/base/sse?s=1"),
        ("https://mcp.example.com:8443/m", "https://mcp.example.com:8443/m"),
        ("HTTPS://MCP.Example.com:8443/m", "https://MCP.Example.com:8443/m"),
    ],
)
def test_an_endpoint_is_resolved_against_the_stream(reference: str, url: str) -> None:
    assert mcp_http.resolve(SSE, reference, "endpoint") == url


@pytest.mark.parametrize(
    "reference",
    [
        "https://evil.example/m",
        "//evil.example/m",
        "https://mcp.example.com/m",
        "http://mcp.example.com:8443/m",
        "https://mcp.example.com:8443@evil.example/m",
        "https://mcp.example.com.evil.example:8443/m",
        "\\\\evil.example\\m",
        "ht\ttps://evil.example/m",
        "/m\r\nX-Injected: 1",
        "ftp://mcp.example.com/m",
        "javascript:alert(1)",
        "https://[::1",
        " /m",
        "",
    ],
)
def test_an_endpoint_of_another_origin_is_refused(reference: str) -> None:
    with pytest.raises(ProtocolError):
        mcp_http.resolve(SSE, reference, "endpoint")


def test_the_default_port_is_the_same_origin_written_or_not() -> None:
    assert mcp_http.resolve("https://a.example/sse", "https://a.example:443/m", "endpoint")
    assert address("http://a.example:80/").authority == "a.example"
    assert address("http://[2001:db8::1]:8080/x").authority == "[2001:db8::1]:8080"


def test_a_target_keeps_its_query_and_is_ascii() -> None:
    assert (
        address("http://a.example/caf\u00e9/%2e%2e?q=a%20b&c=[1]").target
        == "/caf%C3%A9/%2e%2e?q=a%20b&c=%5B1%5D"
    )
    assert address("http://a.example").target == "/"


def test_an_address_is_shown_without_its_query() -> None:
    assert str(address("https://a.example/mcp?api_key=secret")) == "https://a.example/mcp"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp",
        "/mcp",
        "ftp://a/",
        "http://",
        "http://user:secret@a.example/",
        "http://a b/",
        "http://a.example:99999/",
        "http://a.example/" + "x" * 9000,
    ],
)
def test_what_is_no_usable_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        address(url)
    assert "secret" not in str(refused.value)


def test_redirects_are_followed_inside_the_origin_only() -> None:
    assert mcp_http.redirection("POST", SSE, 200, "") is None
    assert mcp_http.redirection("POST", SSE, 304, "/x") is None
    assert mcp_http.redirection("POST", SSE, 307, "/base/sse/") == "https://mcp.example.com:8443/base/sse/"
    assert mcp_http.redirection("GET", SSE, 302, "/x") == "https://mcp.example.com:8443/x"
    for method, status, location in [
        ("POST", 308, "https://evil.example/"),
        ("GET", 302, "//evil.example/"),
        ("GET", 301, ""),
        ("GET", 301, "http://mcp.example.com:8443/base/sse"),
    ]:
        with pytest.raises(ProtocolError) as refused:
            mcp_http.redirection(method, SSE, status, location)
        assert refused.value.status == 502


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_post_that_would_become_a_get_is_not_followed(status: int) -> None:
    with pytest.raises(
        ProtocolError, match=f"redirects a POST with {status} to https://mcp.example.com:8443/x"
    ) as refused:
        mcp_http.redirection("POST", SSE, status, "/x")
    assert refused.value.status == 502


def test_declared_headers_cannot_write_the_structure_of_a_request() -> None:
    assert mcp_http.declared({"Authorization": "Bearer a b"}) == (("Authorization", "Bearer a b"),)
    for name, value in [
        ("Host", "evil.example"),
        ("Transfer-Encoding", "chunked"),
        ("content-length", "0"),
        ("X Y", "1"),
        ("X:Y", "1"),
        ("X-Token", "secret\r\nX-Injected: 1"),
        ("X-Token", "secret\n"),
        ("X-Token", "secret\0"),
        ("X-Token", "secret\u2028"),
    ]:
        with pytest.raises(ProtocolError) as refused:
            mcp_http.declared({name: value})
        assert "secret" not in str(refused.value)


def test_the_protocols_headers_win_over_declared_ones() -> None:
    merged = mcp_http.merged((("Accept", "a/b"),), (("ACCEPT", "x/y"), ("X-Key", "k")))
    assert merged == (("Accept", "a/b"), ("X-Key", "k"))


def names(headers: mcp_http.Headers) -> set[str]:
    return {name for name, _ in headers}


def test_each_revision_gets_the_headers_it_knows() -> None:
    assert names(mcp_http.post_headers("", "initialize", "")) == {"Accept", "Content-Type"}
    assert "MCP-Protocol-Version" not in names(mcp_http.post_headers("2025-03-26", "tools/list", "s"))
    assert "MCP-Protocol-Version" in names(mcp_http.post_headers("2025-06-18", "tools/list", "s"))
    assert "MCP-Protocol-Version" in names(mcp_http.stream_headers("2025-06-18", "s", ""))
    assert "MCP-Protocol-Version" not in names(mcp_http.stream_headers("2025-03-26", "s", ""))
    legacy = dict(mcp_http.post_headers("2025-11-25", "tools/list", "s"))
    assert (legacy["MCP-Protocol-Version"], legacy["Mcp-Session-Id"]) == ("2025-11-25", "s")
    assert "Mcp-Method" not in legacy
    modern = dict(mcp_http.post_headers("2026-07-28", "tools/list", "s"))
    assert (modern["MCP-Protocol-Version"], modern["Mcp-Method"]) == ("2026-07-28", "tools/list")
    assert "Mcp-Session-Id" not in modern


def test_a_stream_is_resumed_with_its_session_and_last_event() -> None:
    headers = dict(mcp_http.stream_headers("2025-11-25", "s", "e7"))
    assert (headers["Mcp-Session-Id"], headers["Last-Event-ID"]) == ("s", "e7")
    assert names(mcp_http.stream_headers("", "", "")) == {"Accept", "Cache-Control"}


def test_a_media_type_is_read_without_parameters_and_case() -> None:
    assert mcp_http.media_type("Text/Event-Stream; charset=utf-8") == "text/event-stream"
    assert mcp_http.media_type("") == ""
