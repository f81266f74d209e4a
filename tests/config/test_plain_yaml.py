"""What is read the quick way is what the long way reads, to the line and the order of expansions; the rest is left to it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.config import strict_yaml
from agentsh_net.config.plain_yaml import Elsewhere
from agentsh_net.config.strict_yaml import MAX_DEPTH, Document, _at_length, _quickly


def both(text: str) -> tuple[tuple[Document, Any], tuple[Document, Any]]:
    """Read both ways, and say what was expanded, in which order. Raises Elsewhere."""
    read = []
    for way in (_quickly, _at_length):
        seen: list[tuple[str, str]] = []

        def expand(text: str, path: str, seen: list[tuple[str, str]] = seen) -> str:
            seen.append((text, path))
            return text.upper()

        read.append((way(text, expand), seen))
    return read[0], read[1]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n  - x\n  -\n    c.d: 2\n",
        "a: {b: [1, 0x10, 0o7, -5, 010, 1.5, .inf, ~, null, true, False, off, '5', \"true\", ''], 'c d': }\n",
        "- - - x\n  - y\n-\n- {}\n- []\n",
        "# only\n---\nx: |\n  a\n  b\n...\n",
        "text",
        "'quoted'",
        "17",
        "{}",
        "a.b: {'': 1, x y: 2, ÿ: 3}",
    ],
)
def test_plain_text_is_read_the_same_either_way(text: str) -> None:
    quick, long = both(text)
    assert quick == long


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\nb: *x",
        "a: !!str 5",
        "a: !secret x",
        "a: !!map {}",
        "a: 1\na: 2",
        "1: x",
        "? [a]\n: x",
        "<<: {a: 1}",
        "'<<': 1",
        "a: " + "1" * 21,
        "a: [1",
        "a: 1\n---\nb: 2",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "",
        "# nothing",
        "a: \x01",
        "~: x",
    ],
)
def test_what_is_not_plain_is_left_to_the_long_way_before_anything_is_expanded(text: str) -> None:
    def expand(text: str, path: str) -> str:
        raise AssertionError(f"{path} was expanded")

    with pytest.raises(Elsewhere):
        _quickly(text, expand)


def test_depth_and_number_of_values_have_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert both(nested)[0] == both(nested)[1]
    monkeypatch.setattr(strict_yaml, "MAX_VALUES", 4)
    assert both("[1, 2, 3]")[0] == both("[1, 2, 3]")[1]
    with pytest.raises(Elsewhere):
        both("[1, 2, 3, 4]")


FRAGMENTS = st.lists(
    st.sampled_from(
        ["a: ", "b: ", "- ", "\n", "  ", "{", "}", "[", "]", ", ", ": ", "x", "1", "0x1", "~", "true", "'q'", '"r"', "&a ", "*a", "!!str ", "!t ", "<<", "? ", "#c\n", "---\n", "...\n", "|\n", ">-\n", "é", "\t", ".5", "1e3", "=", "-"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@given(FRAGMENTS)
def test_whatever_is_read_quickly_is_read_the_same_at_length(text: str) -> None:
    try:
        quick, long = both(text)
    except Elsewhere:
        return
    assert quick == long
    assert not long[0].problems


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(DATA, st.sampled_from([None, '"', "'"]), st.booleans())
def test_what_yaml_dumps_is_read_the_same_either_way(data: Any, style: str | None, flow: bool) -> None:
    text = yaml.safe_dump(data, default_style=style, default_flow_style=flow, allow_unicode=True)
    try:
        quick, long = both(text)
    except Elsewhere:
        return
    assert quick == long


def test_a_large_policy_goes_the_quick_way() -> None:
    servers = [{"id": f"s{n}", "type": "http", "url": f"http://10.0.0.{n}/mcp"} for n in range(200)]
    text = yaml.safe_dump({"version": 1, "sandbox": {"mcp": {"servers": servers}}})
    assert _quickly(text, strict_yaml.unexpanded).value["sandbox"]["mcp"]["servers"] == servers
