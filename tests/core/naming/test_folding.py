"""Names that clients repair into each other fold to one form, look-alikes do not, and nothing invisible stays invisible."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.naming.folding import HIDDEN_CATEGORIES, fold, normal, visible


@pytest.mark.parametrize(
    "variant",
    [
        "read_file",
        "READ_File",
        "  read_file\n",
        "ｒｅａｄ＿ｆｉｌｅ",  # full width
        "read\u200b_file",  # zero-width space
        "read\u00ad_file",  # soft hyphen
        "\u202eread_file",  # right-to-left override
        "read_file\ufe0f",  # variation selector
        "read\U000e0041_file",  # tag character
        "read\u3164_file",  # Hangul filler
        "read\x00_file",
        "\ufeffread_file",
    ],
)
def test_repaired_spellings_fold_to_one(variant):
    assert fold(variant) == "read_file"


@pytest.mark.parametrize("lookalike", ["rеad_file", "read_fi1e", "read-file", "read_file_", "reаd_file"])
def test_lookalikes_stay_different(lookalike):
    assert fold(lookalike) != "read_file"


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_ascii_path_agrees_with_the_general_one(text):
    general = normal(text + "é")
    assert general == normal(text) + "é"


@given(st.text())
def test_visible_text_has_no_character_that_does_not_show(text):
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in HIDDEN_CATEGORIES]


def test_hidden_characters_are_shown_by_their_code_points():
    assert visible("a\u200bb\u202ec\U000e0041") == "a<U+200B>b<U+202E>c<U+E0041>"
    assert visible("tab\tnbsp\u00a0") == "tab<U+0009>nbsp<U+00A0>"


def test_long_text_says_how_much_is_left_out():
    assert visible("x" * 12, 10) == "x" * 10 + "… (2 more characters)"
    assert visible("x" * 10, 10) == "x" * 10
