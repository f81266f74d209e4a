"""A URL that a client fills in tells its host, unless that is what the client fills in."""

from __future__ import annotations

import pytest

from agentsh_net.mcp_clients.placeholders import PLACEHOLDER, known_url


@pytest.mark.parametrize("text", ["${VAR}", "${env:VAR}", "${input:x}", "$VAR", "{env:VAR}", "{file:x}"])
def test_a_clients_placeholders_are_known_as_such(text: str) -> None:
    assert PLACEHOLDER.search(f"Bearer {text}")
    assert not PLACEHOLDER.search("costs 5$, {braces}")


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("https://x.example/mcp?a=1", "https://x.example/mcp?a=1"),
        ("https://x.example/mcp?key=${KEY}", "https://x.example/mcp"),
        ("https://x.example/mcp?a=b/c&key=$KEY", "https://x.example/mcp"),
        ("https://x.example?key={env:KEY}", "https://x.example"),
        ("https://x.example/a/${TENANT}/mcp", "https://x.example/a/"),
        ("https://x.example/a-${input:team}", "https://x.example/"),
        ("${BASE:-https://x.example:8443}/mcp", "https://x.example:8443/mcp"),
        ("${BASE:-https://x.example}/${TENANT}/mcp", "https://x.example/"),
    ],
)
def test_what_stands_before_the_first_unknown_value_is_known(url: str, known: str) -> None:
    assert known_url(url) == known


@pytest.mark.parametrize(
    "url",
    ["${BASE}/mcp", "https://${HOST}/mcp", "https://x.${ZONE:-${Z}}/mcp", "https://x.example:${PORT}/mcp"],
)
def test_a_host_that_the_client_fills_in_is_not_known(url: str) -> None:
    assert known_url(url) == ""
