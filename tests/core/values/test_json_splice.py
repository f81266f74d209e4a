"""Splicing changes nothing of a text but what it was told to."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values.json_splice import DELETE, Raw, splice
from agentsh_net.core.values.strict_json import Path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def paths(value: Any, prefix: Path = ()) -> list[Path]:
    found = [prefix] if prefix else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += paths(inner, (*prefix, key))
    return found


def edited(value: Any, edits: dict[Path, Any]) -> Any:
    value = copy.deepcopy(value)
    for path, new in sorted(edits.items(), key=lambda e: [str(p).zfill(9) for p in e[0]], reverse=True):
        node = value
        for key in path[:-1]:
            node = node[key]
        if new is DELETE:
            del node[path[-1]]
        else:
            node[path[-1]] = new
    return value


@given(st.data(), VALUES, st.sampled_from([None, 1, 3]))
def test_splicing_is_editing_the_value(data: st.DataObject, value: Any, indent: int | None) -> None:
    assume(isinstance(value, dict | list) and value)
    chosen = data.draw(st.lists(st.sampled_from(paths(value)), max_size=4, unique=True))
    chosen = [p for p in chosen if not any(q != p and p[: len(q)] == q for q in chosen)]
    edits = {p: data.draw(st.just(DELETE) | VALUES) for p in chosen}
    text = json.dumps(value, indent=indent).encode()
    assert json.loads(splice(text, edits)) == edited(value, edits)


def test_everything_else_keeps_its_bytes() -> None:
    text = b'{ "id" : 1.0, "big":12345678901234567890 ,"e": 1e400, "a":[ 1 ,{"x":"\xff"}, 3 ] , "z":null}'
    assert splice(text, {("a", 0): Raw("[]")}) == text.replace(b"[ 1 ,", b"[ [] ,")
    assert splice(text, {("a", 1): DELETE}) == text.replace(b' ,{"x":"\xff"}', b"")
    assert splice(text, {("a", 0): DELETE}) == text.replace(b"1 ,", b"")
    assert (
        splice(text, {("z",): DELETE, ("id",): DELETE})
        == b'{ "big":12345678901234567890 ,"e": 1e400, "a":[ 1 ,{"x":"\xff"}, 3 ]}'
    )


def test_a_missing_member_is_appended() -> None:
    assert splice(b'{"a":1 }', {("b",): "n"}) == b'{"a":1,"b":"n" }'
    assert splice(b"{ }", {("b",): 2}) == b'{"b":2 }'
    assert splice(b'{"a":1}', {("a",): DELETE, ("b",): 2}) == b'{"b":2}'


def test_every_occurrence_of_a_duplicate_key_is_edited() -> None:
    assert splice(b'{"a":1,"\\u0061":2}', {("a",): 3}) == b'{"a":3,"\\u0061":3}'


@pytest.mark.parametrize("path", [("a", "b"), ("l", 3), ("n", 0, "x")])
def test_a_path_that_leads_nowhere_is_an_error(path: Path) -> None:
    with pytest.raises(ProtocolError):
        splice(b'{"a":1,"l":[],"n":[]}', {path: 1})


def test_a_byte_order_mark_is_kept() -> None:
    assert splice(b'\xef\xbb\xbf{"a":1, "b":2}', {("a",): 3}) == b'\xef\xbb\xbf{"a":3, "b":2}'


@pytest.mark.parametrize("first", [("a",), ("a", 0, "b")])
@pytest.mark.parametrize("edit", [DELETE, "n"])
def test_an_edit_below_another_is_moot_in_any_order(first: tuple[str | int, ...], edit: object) -> None:
    edits = {("a",): edit, ("a", 0, "b"): 1, ("a", 0, "c", "d"): DELETE, ("e",): 2}
    turned = {first: edits[first]} | edits
    assert splice(b'{"a":[{"b":0,"c":{"d":1}}],"e":1}', turned) == (
        b'{"e":2}' if edit is DELETE else b'{"a":"n","e":2}'
    )
