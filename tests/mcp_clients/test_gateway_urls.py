"""A network server goes through the gateway by words before its URL, and taking them away restores every byte."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from agentsh_net.mcp_clients import editing, gateway_urls
from agentsh_net.mcp_clients.editing import UneditableError
from agentsh_net.mcp_clients.gateway_urls import Behind, Change, Spelling, direct, prefix, redirected

GATEWAY = "http://127.0.0.1:8485"
OWN = "https://mcp.example.com/mcp?key=1#x"
KEYS = ("mcpServers", "weather")

JSON = (
    '{"mcpServers": {"weather": {"url": "https://mcp.example.com/mcp?key=1#x"}}}',
    '{\n  // mine\n  "mcpServers": {\n    "weather": { "type":"http",\t"url" : "https:\\/\\/mcp.example.com/mcp?key=1#x", },\n  },\n}\n',
    '{"mcpServers":{"weather":{"httpUrl":"https://mcp.example.com/mcp?key=1#x","url":5}}}',
)
TOML = (
    '[mcpServers.weather]\nurl = "https://mcp.example.com/mcp?key=1#x" # mine\n',
    "x = 1\n[mcpServers.\"weather\"]\n  url='https://mcp.example.com/mcp?key=1#x'\n[other]\nurl = 'no'\n",
)


@pytest.mark.parametrize(("text", "kind"), [*((t, "json") for t in JSON), *((t, "toml") for t in TOML)])
def test_there_and_back_every_byte_is_as_it_was(text: str, kind: str) -> None:
    there = gateway_urls.install(text, kind, {KEYS: Behind("weather api/1")}, GATEWAY)
    entry = editing.entry(there, kind, KEYS)
    url = entry.get("httpUrl", entry["url"])
    assert url == f"{GATEWAY}/mcp/weather%20api%2F1#agentsh-net:{OWN}"
    assert gateway_urls.install(there, kind, {KEYS: Behind("weather api/1")}, GATEWAY) == there
    assert gateway_urls.uninstall(there, kind, [KEYS]) == text
    assert gateway_urls.uninstall(text, kind, [KEYS]) == text


def test_what_the_user_changed_meanwhile_stays_changed() -> None:
    there = gateway_urls.install(JSON[0], "json", {KEYS: Behind("w")}, GATEWAY)
    changed = there.replace("key=1", "key=2")
    assert gateway_urls.uninstall(changed, "json", [KEYS]) == JSON[0].replace("key=1", "key=2")


def test_what_is_behind_a_url_is_known_by_it() -> None:
    found = redirected(prefix(GATEWAY + "/", "a b") + OWN)
    assert found is not None and (found.server_id, found.url) == ("a b", OWN)
    assert redirected("https://mcp.example.com/mcp/x") is None
    assert redirected(None) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"mcpServers":{"weather":{"url":5}}}', "json"),
        ('{"mcpServers":{"weather":{"url":"https://a","url":"https://b"}}}', "json"),
        ('mcpServers = {weather = {url = "https://a"}}\n', "toml"),
        ("not json", "json"),
    ],
)
def test_what_cannot_be_edited_safely_is_left(text: str, kind: str) -> None:
    with pytest.raises(UneditableError):
        gateway_urls.install(text, kind, {KEYS: Behind("w")}, GATEWAY)


def test_other_entries_keep_their_meaning() -> None:
    there: Any = json.loads(gateway_urls.install(JSON[2], "json", {KEYS: Behind("w")}, GATEWAY))
    assert there["mcpServers"]["weather"]["url"] == 5
    toml = tomllib.loads(gateway_urls.install(TOML[1], "toml", {KEYS: Behind("w")}, GATEWAY))
    assert toml["other"]["url"] == "no"


HTTP, CLINE, GEMINI = Spelling(), Spelling("streamableHttp", typed=True), Spelling(key="httpUrl")
ROO = Spelling("streamable-http", typed=True)


@pytest.mark.parametrize(
    ("text", "kind", "spelling", "there"),
    [
        ('{"mcpServers":{"weather":{"type":"sse","url":"https://a/sse"}}}', "json", HTTP, {"type": "http"}),
        ('{"mcpServers":{"weather":{"url":"https://a/sse", // it is old\n "transport" : "sse",}}}', "json", HTTP, {"transport": "http"}),
        ('{"mcpServers":{"weather":{"url":"https://a/sse","type":"http"}}}', "json", HTTP, {"type": "http"}),
        ('{"mcpServers":{"weather":{"url":"https://a/x","type":"sse"}}}', "json", CLINE, {"type": "streamableHttp"}),
        ('{"mcpServers":{"weather":{"url":"https://a/x" /* 1 */ , "timeout": 60}}}', "json", CLINE, {"type": "streamableHttp", "timeout": 60}),
        ('{"mcpServers":{"weather":{"url":"https://a/x","type":"sse"}}}', "json", ROO, {"type": "streamable-http"}),
        ('{"mcpServers":{"weather":{"url":"https://a/x"}}}', "json", ROO, {"type": "streamable-http"}),
        ('{"mcpServers":{"weather":{"url" : "https://a/sse"}}}', "json", GEMINI, {}),
        ('{"mcpServers":{"weather":{"url":"https://a/sse","type":"sse"}}}', "json", GEMINI, {"type": "http"}),
        ("[mcpServers.weather]\nurl = 'https://a/sse'\ntype = 'sse'\n", "toml", HTTP, {"type": "http"}),
    ],
)  # fmt: skip
def test_an_entry_of_http_sse_says_streamable_http_in_its_clients_words_and_is_restored_to_the_byte(
    text: str, kind: str, spelling: Spelling, there: dict[str, Any]
) -> None:
    edited = gateway_urls.install(text, kind, {KEYS: Behind("old", spelling)}, GATEWAY)
    entry: Any = editing.entry(edited, kind, KEYS)
    key = "httpUrl" if spelling is GEMINI and "type" not in there else "url"
    own = editing.entry(text, kind, KEYS)
    assert entry.pop(key).startswith(f"{GATEWAY}/mcp/old#agentsh-net")
    assert entry == there
    assert direct("x", editing.entry(edited, kind, KEYS)) == ("old", own)
    assert gateway_urls.install(edited, kind, {KEYS: Behind("old", spelling)}, GATEWAY) == edited
    assert gateway_urls.uninstall(edited, kind, [KEYS]) == text


def test_a_type_that_was_added_goes_again_where_the_client_wrote_its_file_anew() -> None:
    text = '{"mcpServers": {"weather": {"url": "https://a/x"}}}'
    there = gateway_urls.install(text, "json", {KEYS: Behind("w", CLINE)}, GATEWAY)
    anew = json.dumps(json.loads(there), indent=2)
    assert json.loads(gateway_urls.uninstall(anew, "json", [KEYS])) == json.loads(text)
    first = json.dumps(json.loads(anew), sort_keys=True)  # and now it stands before the URL
    assert json.loads(gateway_urls.uninstall(first, "json", [KEYS])) == json.loads(text)


def test_a_type_that_the_user_changed_meanwhile_is_the_users() -> None:
    text = '{"mcpServers": {"weather": {"url": "https://a/x", "type": "sse"}}}'
    there = gateway_urls.install(text, "json", {KEYS: Behind("w")}, GATEWAY)
    for value in ('"stdio"', "[]"):
        changed = there.replace('"http"', value)
        assert gateway_urls.uninstall(changed, "json", [KEYS]) == text.replace('"sse"', value)


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers":{"weather":{"url":"https://a","type":"\\u0073se"}}}',
        '{"mcpServers":{"weather":{"u\\u0072l":"https://a"}}}',
        '{"mcpServers":{"weather":{"url":"https://a","httpUrl":null}}}',
    ],
)
def test_what_says_http_sse_in_a_way_that_cannot_be_restored_is_left(text: str) -> None:
    with pytest.raises(UneditableError):
        gateway_urls.install(text, "json", {KEYS: Behind("w", GEMINI)}, GATEWAY)


def test_what_else_was_changed_stands_beside_the_url() -> None:
    found = redirected(prefix(GATEWAY, "a", [Change.WORD, Change.KEY]) + OWN)
    assert found is not None and (found.url, found.changes) == (OWN, ("type", "key"))
