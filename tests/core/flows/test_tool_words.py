"""Identifiers come apart into words in every style, without what clients put before them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentsh_net.core.flows.tool_words import without_prefix, words


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("read_file", ("read", "file")),
        ("readFile", ("read", "file")),
        ("ReadFile", ("read", "file")),
        ("read-file", ("read", "file")),
        ("fs.readFile/v2", ("fs", "read", "file", "v", "2")),
        ("HTTPServerGET", ("http", "server", "get")),
        ("parseJSONBody", ("parse", "json", "body")),
        ("READ_FILE", ("read", "file")),
        ("", ()),
        ("löschen_Datei", ("löschen", "datei")),
        ("___", ()),
    ],
)
def test_a_name_falls_into_its_words(name: str, parts: tuple[str, ...]) -> None:
    assert words(name) == parts


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("mcp__mail__send_email", "send_email"),
        ("mcp_send_email", "send_email"),
        ("mail__send_email", "send_email"),
        ("functions.read", "read"),
        ("functions:read", "read"),
        ("send_email", "send_email"),
        ("mcp__", "mcp__"),
        ("mcp__mail__", "mcp__mail__"),
        ("_private", "_private"),
    ],
)
def test_prefixes_of_clients_come_off(name: str, bare: str) -> None:
    assert without_prefix(name) == bare


@given(st.text())
@example("Ꭰ")  # Cherokee folds to its capitals
def test_any_text_is_taken_apart_into_folded_words(name: str) -> None:
    assert all(word and word == word.casefold() for word in words(name))
    without_prefix(name)
