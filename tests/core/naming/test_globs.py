"""Patterns match whole strings without regard to case and width, bad ones are errors, and no pattern is slow."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ConfigError
from agentsh_net.core.naming import globs
from agentsh_net.core.naming.folding import fold


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("*", "", True),
        ("*", "anything/at:all", True),
        ("fs", "fs", True),
        ("fs", "fsx", False),
        ("delete_*", "delete_repo", True),
        ("delete_*", "undelete_repo", False),
        ("*_file", "read_file", True),
        ("*_file", "read_files", False),
        ("ns/*", "ns/a/b", True),  # `*` crosses `/`
        ("*delete*", "x_delete_y", True),
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "axxcyyb", False),
        ("a*a", "a", False),  # head and tail may not overlap
        ("ab*ba", "aba", False),
        ("?", "x", True),
        ("?", "", False),
        ("tool_?", "tool_12", False),
        ("[abc]x", "bx", True),
        ("[!abc]x", "bx", False),
        ("[^abc]x", "dx", True),
        ("[a-c]*", "b/anything", True),
        ("[]x]", "]", True),
        ("[*]", "*", True),
        ("[*]", "x", False),
        ("[A-C]", "b", True),
        ("DELETE_*", "Delete_Repo", True),
        ("ｄｅｌｅｔｅ_*", "delete_repo", True),
        ("  fs  ", "fs", True),
        ("straße*", "STRASSE_x", True),
    ],
)
def test_what_a_pattern_matches(pattern, text, matches):
    assert globs.parse(pattern).matches(fold(text)) is matches


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("\u200b", "empty"),
        ("a[bc", "`[` without"),
        ("[", "`[` without"),
        ("[]", "`[` without"),
        ("[!]", "`[` without"),
        ("[z-a]", "range"),
        ("[\u0000-\U0010ffff]", "range"),
        ("a\\*", "backslash"),
        ("[ß]", "no single character"),
        ("x" * 513, "513"),
    ],
)
def test_a_bad_pattern_is_an_error_with_its_place(pattern, says):
    assert says in globs.check(pattern)
    with pytest.raises(ConfigError) as raised:
        globs.parse(pattern, "sandbox.mcp.denied_tools[3].tool")
    assert raised.value.problems[0].path == "sandbox.mcp.denied_tools[3].tool"


def test_a_good_pattern_has_no_problem():
    assert globs.check("fs_[a-z]?*") is None


def test_a_full_width_star_is_no_wildcard():
    assert not globs.parse("a＊").matches("abc")
    assert globs.parse("a＊").matches(fold("a＊"))


def test_a_pattern_tells_whether_it_is_literal_or_everything():
    assert globs.parse(" Fs ").literal == "fs"
    assert globs.parse("fs*").literal is None
    assert globs.parse("*").every
    assert globs.parse("**").every
    assert not globs.parse("?*").every


patterns = st.text(alphabet="ab*?/", min_size=1, max_size=12)
texts = st.text(alphabet="ab/", max_size=16)


@given(patterns, texts)
def test_patterns_agree_with_the_shells(pattern, text):
    assert globs.parse(pattern).matches(text) is fnmatch.fnmatchcase(text, pattern)


@given(patterns, texts)
def test_every_match_begins_as_the_pattern_says(pattern, text):
    glob = globs.parse(pattern)
    assert not glob.matches(text) or text.startswith(glob.begins)


def test_many_stars_do_not_backtrack():
    # exponential matching would not end in the life of this test
    for pattern in ("a*" * 200 + "b", "[ab]*" * 80 + "c"):
        assert not globs.parse(pattern).matches("a" * 20_000)
