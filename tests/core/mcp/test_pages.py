"""A tools/list ends: at its last page, or with an error that says why it never would."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.pages import PageLimits, Pages


def page(*names: str, cursor: Any = None, **more: Any) -> dict[str, Any]:
    return {"tools": [{"name": n} for n in names], "nextCursor": cursor} | more


def test_pages_are_joined_in_order_with_every_field_of_a_tool() -> None:
    pages = Pages(PageLimits())
    assert pages.add(page("a", cursor="2"), 10) == "2"
    assert pages.add({"tools": [{"name": "b", "x-vendor": {"k": [1]}}]}, 10) is None
    assert pages.tools == [{"name": "a"}, {"name": "b", "x-vendor": {"k": [1]}}]


def test_the_empty_string_is_a_cursor_like_any_other() -> None:
    pages = Pages(PageLimits())
    assert pages.add(page("a", cursor=""), 1) == ""
    with pytest.raises(ProtocolError, match="repeats a cursor after 2 pages"):
        pages.add(page("b", cursor=""), 1)


def test_a_cursor_that_comes_again_later_ends_it() -> None:
    pages = Pages(PageLimits())
    pages.add(page(cursor="x"), 1)
    pages.add(page(cursor="y"), 1)
    with pytest.raises(ProtocolError, match="never end"):
        pages.add(page(cursor="x"), 1)


def test_a_listing_is_bounded_in_pages_tools_and_bytes() -> None:
    limits = PageLimits(pages=3, tools=5, size=100)
    pages = Pages(limits)
    for cursor in "ab":
        pages.add(page(cursor=cursor), 1)
    with pytest.raises(ProtocolError, match="more than 3 pages"):
        pages.add(page(cursor="c"), 1)
    with pytest.raises(ProtocolError, match="more than 5 tools"):
        Pages(limits).add(page(*"abcdef"), 1)
    with pytest.raises(ProtocolError, match="longer than 100 bytes"):
        Pages(limits).add(page("a"), 101)


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        {},
        {"tools": {}},
        {"tools": [1]},
        {"tools": [{"title": "no name"}]},
        {"tools": [{"name": 1}]},
        {"tools": [], "nextCursor": 2},
        {"tools": [], "nextCursor": False},
        {"tools": [], "resultType": "input_required", "inputRequests": {}},
    ],
)
def test_what_is_no_page_is_an_error(result: Any) -> None:
    with pytest.raises(ProtocolError):
        Pages(PageLimits()).add(result, 1)


def test_the_same_tool_twice_is_kept_twice() -> None:
    pages = Pages(PageLimits())
    pages.add(page("a", "a"), 1)
    assert [t["name"] for t in pages.tools] == ["a", "a"]


def test_definitions_of_more_values_than_any_server_has_end_the_listing() -> None:
    limits = PageLimits(values=100)
    schema = {"type": "object", "properties": {"a": {"enum": [[]] * 40}}}
    pages = Pages(limits)
    pages.add({"tools": [{"name": "a", "inputSchema": schema}], "nextCursor": "1"}, 10)
    with pytest.raises(ProtocolError, match="more than 100 values"):
        pages.add({"tools": [{"name": "b", "inputSchema": [schema] * 3}]}, 10)
    deep: Any = []
    for _ in range(90):
        deep = [deep]
    assert Pages(limits).add({"tools": [{"name": "c", "inputSchema": deep}]}, 10) is None
    with pytest.raises(ProtocolError, match="more than 100 values"):
        Pages(limits).add({"tools": [{"name": "c", "inputSchema": [deep, deep]}]}, 10)


@pytest.mark.parametrize("key", ["Name", "NAME"])
def test_a_tool_that_some_readers_know_by_another_name_is_none(key: str) -> None:
    with pytest.raises(ProtocolError, match="tool 1 of a page has its name twice"):
        Pages(PageLimits()).add({"tools": [{"name": "a"}, {"name": "b", key: "a"}]}, 1)
