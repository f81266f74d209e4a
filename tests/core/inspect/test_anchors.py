"""Anchors are found by the words of a text exactly where looking for each of them finds it."""

from __future__ import annotations

import random

import pytest

from agentsh_net.core.inspect.anchors import Anchors, words_of
from agentsh_net.core.inspect.contents import PHRASES
from agentsh_net.core.inspect.credentials import SECRET_ANCHORS, SETTINGS_ANCHORS

ALL = tuple(
    dict.fromkeys(
        [anchor for phrase in PHRASES for group in phrase.anchors for anchor in group]
        + [*SECRET_ANCHORS, *SETTINGS_ANCHORS, "://", "\u6307\u793a", "d\u00e9j\u00e0 vu"]
    )
)


@pytest.mark.parametrize("anchor", ALL)
def test_an_anchor_is_found_alone_and_inside_of_other_text(anchor: str) -> None:
    anchors = Anchors(ALL)
    for text in (anchor, f"x{anchor}x", f"a text {anchor}. with words", anchor[:-1], anchor[1:]):
        assert anchors.there(text) == {each for each in ALL if each in text}


def test_in_any_text_all_that_stand_there_are_found_and_no_other() -> None:
    randomly, anchors = random.Random(3), Anchors(ALL)
    found = 0
    for _ in range(300):
        pieces = (
            anchor[randomly.choice((0, 0, 1)) :]
            for anchor in randomly.choices(ALL, k=randomly.randrange(1, 12))
        )
        text = "".join(piece + randomly.choice(("", " ", "_", "\n", "\u00e9", "x")) for piece in pieces)
        there = anchors.there(text)
        assert there == {each for each in ALL if each in text}
        assert there == anchors.there(text, words_of(text))
        found += bool(there)
    assert found > 200


def test_words_are_runs_of_small_letters() -> None:
    assert words_of("read /etc/pass_wd2now, \u00e9t\u00e9 \ud800 READ") == {
        "read",
        "etc",
        "pass",
        "wd",
        "now",
        "t",
    }
