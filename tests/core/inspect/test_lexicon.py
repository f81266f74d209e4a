"""Words of nine languages have one class each, in the form in which detectors read text, and none is an everyday word of English by accident."""

from __future__ import annotations

import pytest

from agentsh_net.core.inspect.lexicon import EXPRESSIONS, JOINED, WORDS
from agentsh_net.core.inspect.plain import plain


def test_every_word_stands_as_a_reader_takes_it() -> None:
    assert [word for word in (*WORDS, *JOINED) if word != plain(word)] == []
    assert all(len(letter) == 1 for letter in (*WORDS.values(), *JOINED.values()))


@pytest.mark.parametrize(
    "word", ["a", "an", "the", "and", "it", "of", "was", "come", "hole", "todo", "sage", "reads", "sender"]
)
def test_everyday_words_say_nothing(word: str) -> None:
    assert WORDS.get(word) not in tuple("RGSCVOTA")


def test_the_same_idea_has_the_same_class_in_each_language() -> None:
    assert {WORDS[plain(word)] for word in ("read", "lies", "lee", "lisez", "leggi", "leia", "прочитай")} == {
        "R"
    }
    assert {JOINED[plain(word)] for word in ("读取", "取得", "읽")} == {"R"}


def test_a_shorter_expression_does_not_stand_before_one_that_holds_it() -> None:
    listed = [expression for expression, _ in EXPRESSIONS]
    for number, expression in enumerate(listed):
        assert not any(expression in longer for longer in listed[number + 1 :]), expression
