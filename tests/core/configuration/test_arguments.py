"""A rule's `args` are read with every problem at its path, and nothing unbounded is taken."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration import arguments as config_arguments
from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.schema import At, Refused
from agentsh_net.core.errors import ConfigError


def read(args):
    config = parse({"sandbox": {"mcp": {"denied_tools": [{"server": "fs", "tool": "write", "args": args}]}}})
    return config.sandbox.mcp.denied_tools[0].args


def problems(args):
    with pytest.raises(ConfigError) as caught:
        read(args)
    return [problem.path for problem in caught.value.problems]


def test_every_matcher_is_read():
    assert read(
        {"path": {"glob": "/etc/*", "regex": "x{1,3}"}, "$.n": {"equals": None}, "m": {"in": [1, "a", True]}}
    ) == (
        settings.ArgumentMatch("$.path", "glob", "/etc/*"),
        settings.ArgumentMatch("$.path", "regex", "x{1,3}"),
        settings.ArgumentMatch("$.n", "equals", None),
        settings.ArgumentMatch("$.m", "in", (1, "a", True)),
    )


HERE = "sandbox.mcp.denied_tools[0].args"


@pytest.mark.parametrize(
    ("args", "where"),
    [
        ({}, HERE),
        ([], HERE),
        ({"path": {}}, f"{HERE}.path"),
        ({"path": {"globs": "x"}}, f"{HERE}.path.globs"),
        ({"path": {"glob": "[x"}}, f"{HERE}.path.glob"),
        ({"path": {"regex": "(a*)*"}}, f"{HERE}.path.regex"),
        ({"path": {"regex": "("}}, f"{HERE}.path.regex"),
        ({"path": {"equals": [1]}}, f"{HERE}.path.equals"),
        ({"path": {"in": []}}, f"{HERE}.path.in"),
        ({"path": {"in": [{}]}}, f"{HERE}.path.in[0]"),
        ({"a..": {"equals": 1}}, f"{HERE}['a..']"),
        ({f"a{n}": {"equals": 1} for n in range(40)}, HERE),
    ],
)  # fmt: skip
def test_a_problem_names_its_path(args, where):
    assert set(problems(args)) == {where}


def test_a_rule_of_arguments_alone_is_refused():
    with pytest.raises(ConfigError) as caught:
        parse({"sandbox": {"mcp": {"denied_tools": [{"args": {"path": {"equals": 1}}}]}}})
    assert [p.path for p in caught.value.problems] == ["sandbox.mcp.denied_tools[0]"]


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["equals", "in", "glob", "regex", "a"]) | st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(TREES)
def test_anything_is_read_or_a_printable_problem(tree):
    problems = []
    with suppress(Refused):
        config_arguments.arguments(At("here", problems), tree)
    assert all(str(problem).isprintable() for problem in problems)
