"""A path selects what its writer means, whatever the case of the keys, and what is no path is an error."""

from __future__ import annotations

import pytest

from agentsh_net.core.values import json_path
from agentsh_net.core.values.json_path import Node, PathError, TooMuchError

VALUE = {"path": "/a", "Path": "/b", "files": [{"url": 1}, {"url": 2}], "odd key": {"x": [None, True]}}


@pytest.mark.parametrize(
    ("path", "selected"),
    [
        ("files[0].url", [1]),
        ("$.files[*].url", [1, 2]),
        ("$..url", [1, 2]),
        ('$["odd key"].x[1]', [True]),
        ("$['odd key']['x'][0]", [None]),
        ("files[7]", []),
        ("nothing.there", []),
        ("path.deeper", []),
        ("$", [VALUE]),
        ("$.*[*].url", [1, 2]),
        ("$..*", [*VALUE.values(), *VALUE["files"], VALUE["odd key"]["x"], 1, 2, None, True]),
    ],
)
def test_a_path_selects_what_it_says(path, selected):
    found = [node.value for node in json_path.parse(path).select(VALUE)]
    assert sorted(map(repr, found)) == sorted(map(repr, selected))


def test_keys_in_another_case_are_found_and_marked():
    assert json_path.parse("path").select(VALUE) == [Node("/a", exact=True), Node("/b", exact=False)]


@pytest.mark.parametrize(
    "text", ["", "$x", "$[", "a b", "$.a*", "a..", "[-1]", "x" * 300, "a\n", ".".join("x" * 17)]
)
def test_what_is_no_path_is_an_error(text):
    with pytest.raises(PathError):
        json_path.parse(text)


def test_a_value_too_large_to_look_through_is_told_of():
    with pytest.raises(TooMuchError):
        json_path.parse("$..x").select({"list": list(range(json_path.MAX_VISITED + 1))})
