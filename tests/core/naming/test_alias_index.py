"""A pair is found by its spellings and by no other name, and a cut name by the beginning it kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.model import Candidate
from agentsh_net.core.naming import aliases
from agentsh_net.core.naming.alias_index import AliasIndex, bare, stem
from agentsh_net.core.naming.folding import fold

LONG = "summarize_every_open_pull_request_of_the_organisation_and_its_forks"
A, B = Candidate("fs", "read.file", "sha256:1"), Candidate("fs", "read_file", "sha256:2")
C = Candidate("github", LONG, "sha256:3")
INDEX = AliasIndex([A, B, C])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__fs__read_file", (A, B)),
        ("mcp_fs_read.file", (A,)),
        ("fs-read-file", (A,)),
        ("read_file", (A, B)),
        ("readfile", ()),  # the same letters, but nobody writes it so
        ("mcp__fs_x_read_file", ()),
        ("s__read_file", ()),
        ("mcpfsread_file", ()),
        ("", ()),
    ],
)
def test_a_name_is_found_by_its_spelling(name, expected):
    assert set(INDEX.find(name)) == set(expected)


@pytest.mark.parametrize(
    "name",
    [
        f"mcp__github__{LONG}"[:64],
        f"mcp__github__{LONG}"[:51] + "_0123456789ab",
        f"github__{LONG}"[:55] + "_01234567",
        f"mcp__github__{LONG}"[:24] + "0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_a_cut_name_is_found_by_its_beginning(name):
    assert INDEX.find_cut(name) == (C,)


def test_a_short_name_was_not_cut():
    assert INDEX.find_cut("mcp__github__summarize") == ()
    assert INDEX.find_cut("x" * 64) == ()
    assert INDEX.find_cut("github_" + "0" * 57) == ()  # the stem is too short to mean anything


def test_a_renamed_pair_is_found_by_its_stem():
    assert set(INDEX.find(stem("read_file_0123456789ab"))) == {A, B}


@given(st.from_regex(aliases.CLEAN, fullmatch=True))
def test_every_style_writes_a_clean_name_alike(tool):
    assert {tail for style in aliases.STYLES for tail in aliases.tails(tool, style)} == {tool.lower()}


def test_an_index_of_nothing_says_so_and_finds_nothing():
    nothing = AliasIndex([])
    assert nothing.empty
    assert not INDEX.empty
    assert nothing.find("read_file") == nothing.find_alike("read_file") == ()


@given(st.text(st.characters(max_codepoint=0x250), max_size=20))
def test_letters_and_digits_are_what_is_left_without_all_else(name):
    folded = fold(name)
    assert bare(folded) == "".join(c for c in folded if c in "abcdefghijklmnopqrstuvwxyz0123456789")


def test_a_stem_is_what_stands_before_a_hash():
    assert stem("a_01234567") == "a"
    assert stem("a0123456789ab") == "a"
    assert stem("a_0123456") == ""
    assert stem("01234567") == ""
    assert stem("x" * 200 + "_01234567") == ""  # longer than any name on the wire


def test_ten_thousand_alike_pairs_are_told_apart():
    index = AliasIndex([Candidate("s", "_" * n + "a") for n in range(1, 2000)])
    assert index.find("mcp__s___a") == (Candidate("s", "_a"),)
