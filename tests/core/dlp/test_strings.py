"""Every string of a JSON text is found with its key, and edits change nothing but what they are of."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh_net.core.dlp.strings import Cut, Text, edited, texts, unescaped
from agentsh_net.core.errors import ProtocolError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def same(outer: int, key: str, is_object: bool) -> int:
    return outer


def strings_in(value: object) -> list[tuple[str, bool]]:
    if isinstance(value, str):
        return [(value, False)]
    if isinstance(value, dict):
        return [found for k, v in value.items() for found in [(k, True), *strings_in(v)]]
    return [found for item in value for found in strings_in(item)] if isinstance(value, list) else []


@settings(deadline=None)  # a busy machine is no failure
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_string_is_found_once_in_order(value: object, ascii_only: bool, indent: int | None) -> None:
    document = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = list(texts(document, same))
    assert [(text.value, text.is_key) for text in found] == strings_in(value)
    assert all(json.loads(document[t.start : t.end]) == t.value for t in found)


def test_a_string_knows_its_key_its_zone_and_the_type_of_its_object() -> None:
    def zone(outer: int, key: str, is_object: bool) -> int:
        return 7 if key == "input" and is_object else outer

    document = '{"a": [{"data": "x", "type": "t"}, "y"], "input": {"k": [["z"]]}}'
    found: list[Text] = [t for t in texts(document, zone) if not t.is_key]
    assert [(t.key, t.frame.zone, t.frame.type) for t in found] == [
        ("data", 0, "t"),
        ("type", 0, "t"),
        ("a", 0, ""),
        ("k", 7, ""),
    ]


@pytest.mark.parametrize("document", ['{"a', '{"a": "\\x"}', "[}", "]", "[", "[" * 5000 + '"a"' + "]" * 5000])
def test_what_is_no_json_is_refused(document: str) -> None:
    with pytest.raises(ProtocolError):
        list(texts(document, same))


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(), st.booleans(), st.data())
def test_an_edit_changes_what_it_is_of_and_nothing_else(
    value: str, ascii_only: bool, data: st.DataObject
) -> None:
    literal = json.dumps(value, ensure_ascii=ascii_only)
    plain, _ = unescaped(literal)
    start = data.draw(st.integers(0, len(plain)))
    end = data.draw(st.integers(start, len(plain)))
    after = edited(literal, [Cut(start, end, 'n"\n')])
    assert unescaped(after)[0] == plain[:start] + 'n"\n' + plain[end:]
    kept = json.dumps(plain[:start], ensure_ascii=ascii_only)[:-1]
    assert not plain[:start].isprintable() or after.startswith(kept)


def test_other_spellings_of_an_escape_survive_an_edit_beside_them() -> None:
    assert edited('"\\u0041\\/b\\u00e9 X"', [Cut(5, 6, "Y")]) == '"\\u0041\\/b\\u00e9 Y"'
