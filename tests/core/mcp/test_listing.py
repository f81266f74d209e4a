"""Pages of one listing add up, a broken page changes nothing, and a definition that is not the pinned one is a block."""

from __future__ import annotations

from typing import Any

import pytest
from situations import situation

from agentsh_net.core.configuration.settings import Mcp, VersionPinning
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.jsonrpc import Response
from agentsh_net.core.mcp.listing import Listing, refused
from agentsh_net.core.mcp.pages import RepeatedCursorError
from agentsh_net.core.model import Action
from agentsh_net.core.trust.pins import Pins, tool_of, trust


def page(*names: str, **more: Any) -> Response:
    return Response(1, {"tools": [{"name": name} for name in names], **more})


def test_pages_add_up_until_the_last() -> None:
    listing = Listing("fs")
    listing.add(page("a", nextCursor="2"), 10, continues=False)
    assert listing.partial
    assert [d["name"] for d in listing.add(page("b"), 10, continues=True)] == ["a", "b"]
    assert not listing.partial
    assert set(listing.hashes) == {"a", "b"}
    assert (listing._pages.tools, listing._tools) == ([], [])  # nothing follows that would need them


@pytest.mark.parametrize("lean", [False, True])
def test_a_listing_from_the_start_begins_anew(lean: bool) -> None:
    listing = Listing("fs")
    listing.lean = lean
    listing.add(page("a", nextCursor="2"), 10, continues=False)
    assert [d["name"] for d in listing.add(page("c"), 10, continues=False)] == ["c"]
    assert set(listing.hashes) == {"c"}
    assert listing._shown[1] == {"c": ["c"]}


def test_what_is_on_a_page_that_repeats_a_cursor_is_known_all_the_same() -> None:
    listing = Listing("fs")
    listing.add(page("a", nextCursor="x"), 10, continues=False)
    with pytest.raises(RepeatedCursorError, match="repeats"):
        listing.add(page("b", nextCursor="x"), 10, continues=True)
    assert set(listing.hashes) == {"a", "b"}
    assert listing.partial
    listing.add(page("c"), 10, continues=True)
    assert set(listing.hashes) == {"a", "b", "c"}


def test_a_tool_without_a_name_is_refused() -> None:
    with pytest.raises(ProtocolError):
        Listing("fs").add(page(" "), 10, continues=False)


def test_pages_that_clients_take_turns_at_add_up_and_never_end() -> None:
    listing = Listing("fs")
    listing.mixed = True
    for name in ("a", "a", "b", "b"):  # two clients, page by page
        listing.add(page(name, nextCursor="2" if name == "a" else None), 10, continues=name == "b")
    assert (set(listing.hashes), listing.partial) == ({"a", "b"}, True)
    listing.add(page("c"), 10, continues=False)
    assert (set(listing.hashes), listing.partial) == ({"c"}, False)


def test_of_two_definitions_on_pages_that_clients_take_turns_at_neither_is_the_pinned_one() -> None:
    listing = Listing("fs")
    listing.mixed = True
    for text in ("evil", "kind"):
        tools = {"tools": [{"name": "a", "description": text}]}
        listing.add(Response(1, tools), 10, continues=text == "kind")
    assert listing.hashes["a"] != tool_of("fs", {"name": "a", "description": "kind"}).hash
    with pytest.raises(ProtocolError, match="more than 5000 tools"):
        listing.add(page(*map(str, range(5000))), 10, continues=True)


def test_what_was_shown_is_held_against_the_pin_and_not_against_the_registry() -> None:
    listing = Listing("fs")
    listing.add(page("a"), 10, continues=False)
    pinned = Pins.of([trust(tool_of("fs", {"name": "a", "description": "old"}), "now")])
    verdict = listing.verdict(situation(["fs"], pins=pinned), "a")
    assert verdict is not None and verdict.blocked
    assert verdict.candidates[0].tool_hash == listing.hashes["a"]
    assert listing.verdict(situation(["fs"], pins=pinned), "unseen") is None
    same = Pins.of([trust(tool_of("fs", {"name": "a"}), "now")])
    assert listing.verdict(situation(["fs"], pins=same), "a") is None


def test_what_everybody_else_was_shown_does_not_excuse_what_this_client_was() -> None:
    listing = Listing("fs")
    listing.add(page("a"), 10, continues=False)
    old = {"name": "a", "description": "old"}
    pinned = Pins.of([trust(tool_of("fs", old), "now")])
    verdict = listing.verdict(situation(["fs"], {"fs": [old]}, pins=pinned), "a")
    assert verdict is not None and verdict.blocked
    off = VersionPinning(enabled=False)
    assert listing.verdict(situation(["fs"], {"fs": [old]}, pins=pinned, version_pinning=off), "a") is None


def test_what_the_registry_has_too_is_left_to_the_policy() -> None:
    listing = Listing("fs")
    listing.add(page("a"), 10, continues=False)
    pinned = Pins.of([trust(tool_of("fs", {"name": "a", "description": "old"}), "now")])
    assert listing.verdict(situation(["fs"], {"fs": ["a"]}, pins=pinned), "a") is None


def test_a_refusal_is_let_pass_in_audit_mode() -> None:
    assert refused(Mcp(), "why", "rule").action is Action.BLOCK
    audit = refused(Mcp(enforce_policy=False), "why", "rule")
    assert (audit.action, audit.would, audit.reason, audit.rule) == (
        Action.ALLOW,
        Action.BLOCK,
        "why",
        "rule",
    )


@pytest.mark.parametrize("name", ["A", "ａ", "a ", "a\u200b"])
def test_a_name_in_another_spelling_is_the_tool_that_was_shown(name: str) -> None:
    listing = Listing("fs")
    listing.add(page("a"), 10, continues=False)
    pinned = Pins.of([trust(tool_of("fs", {"name": "a", "description": "old"}), "now")])
    verdict = listing.verdict(situation(["fs"], pins=pinned), name)
    assert verdict is not None and verdict.blocked


def test_a_spelling_of_two_tools_is_refused_where_one_of_them_is_not_the_pinned_one() -> None:
    listing = Listing("fs")
    listing.add(page("a", "A"), 10, continues=False)
    pinned = Pins.of(
        [
            trust(tool_of("fs", {"name": "a"}), "now"),
            trust(tool_of("fs", {"name": "A", "title": "old"}), "now"),
        ]
    )
    snapshot = situation(["fs"], pins=pinned)
    assert listing.verdict(snapshot, "a") is None
    verdict = listing.verdict(snapshot, "ａ")
    assert verdict is not None and verdict.blocked


def test_a_page_that_is_asked_for_after_the_last_forgets_nothing() -> None:
    listing = Listing("fs")
    listing.add(page("a", nextCursor="2"), 10, continues=False)
    listing.add(page("b"), 10, continues=True)
    listing.add(page("b"), 10, continues=True)
    assert (set(listing.hashes), listing.partial) == ({"a", "b"}, True)


@pytest.mark.parametrize("way", ["mixed", "lean"])
def test_of_pages_of_one_of_many_clients_nothing_is_kept_but_hashes(way: str) -> None:
    """A server that ends its only page with `nextCursor: ""` cost 300 KB a session, of which there may be 10,000."""
    listing = Listing("fs")
    setattr(listing, way, True)
    for name, cursor in (("a", ""), ("b", "2")):
        listing.add(page(name, nextCursor=cursor), 10, continues=name == "b")
        assert (listing._pages.tools, listing._tools) == ([], [])
    assert set(listing.hashes) == {"a", "b"}


def test_a_lean_listing_still_finds_a_cursor_that_repeats() -> None:
    listing = Listing("fs")
    listing.lean = True
    listing.add(page("a", nextCursor="x"), 10, continues=False)
    with pytest.raises(RepeatedCursorError, match="repeats"):
        listing.add(page("b", nextCursor="x"), 10, continues=True)
    assert set(listing.hashes) == {"a", "b"}
