"""A network server goes through the gateway by words before its URL, and taking them away restores every byte."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from agentsh_net import client_urls
from agentsh_net.client_edit import UneditableError
from agentsh_net.client_urls import prefix, redirected

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
    there = client_urls.install(text, kind, {KEYS: "weather api/1"}, GATEWAY)
    ((url,),) = client_urls.urls(there, kind, [KEYS]).values()
    assert url == f"{GATEWAY}/mcp/weather%20api%2F1#agentsh-net:{OWN}"
    assert client_urls.install(there, kind, {KEYS: "weather api/1"}, GATEWAY) == there
    assert client_urls.uninstall(there, kind, [KEYS]) == text
    assert client_urls.uninstall(text, kind, [KEYS]) == text


def test_what_the_user_changed_meanwhile_stays_changed() -> None:
    there = client_urls.install(JSON[0], "json", {KEYS: "w"}, GATEWAY)
    changed = there.replace("key=1", "key=2")
    assert client_urls.uninstall(changed, "json", [KEYS]) == JSON[0].replace("key=1", "key=2")


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
        client_urls.install(text, kind, {KEYS: "w"}, GATEWAY)


def test_other_entries_keep_their_meaning() -> None:
    there: Any = json.loads(client_urls.install(JSON[2], "json", {KEYS: "w"}, GATEWAY))
    assert there["mcpServers"]["weather"]["url"] == 5
    toml = tomllib.loads(client_urls.install(TOML[1], "toml", {KEYS: "w"}, GATEWAY))
    assert toml["other"]["url"] == "no"
