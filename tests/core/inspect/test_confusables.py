"""Names that look the same have one skeleton; names that are merely similar have not."""

from __future__ import annotations

import unicodedata

import pytest

from agentsh_net.core.inspect.confusables import LATIN, skeleton


@pytest.mark.parametrize(
    "alike",
    [
        ("filesystem", "fi1esystem"),
        ("filesystem", "f\u0456lesystem"),
        ("github", "g\u0456thub"),
        ("read_file", "read-file"),
        ("read_file", "ReadFile"),
        ("modern", "rnodern"),
        ("slack", "5lack"),
        ("tool", "t00l"),
        ("paypal", "paypa\u217c"),
    ],
)
def test_names_that_look_the_same_have_one_skeleton(alike: tuple[str, str]) -> None:
    assert skeleton(alike[0]) == skeleton(alike[1])


@pytest.mark.parametrize("apart", [("github", "gitlab"), ("read_file", "write_file"), ("list", "lists")])
def test_other_names_have_others(apart: tuple[str, str]) -> None:
    assert skeleton(apart[0]) != skeleton(apart[1])


def test_look_alikes_are_single_letters_outside_ascii_for_one_inside() -> None:
    assert all(code > 127 and len(letter) == 1 and letter.isascii() for code, letter in LATIN.items())
    assert all(unicodedata.category(chr(code))[0] in "LNS" for code in LATIN)
