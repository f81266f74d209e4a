"""A phrase is searched only where one of its anchors stands, and counts unless it is negated."""

from __future__ import annotations

import re
import time

import pytest

from agentsh_net.core.inspect import phrases
from agentsh_net.core.inspect.contents import PHRASES as IN_CONTENTS
from agentsh_net.core.inspect.contents import RESULTS_INDEX
from agentsh_net.core.inspect.definitions import PHRASES
from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import Phrase, phrase
from agentsh_net.core.inspect.strings import strings

ALL = tuple(dict.fromkeys((*PHRASES, *RESULTS_INDEX.phrases)))

LOUD = phrase("loud", Category.SECRECY, Severity.HIGH, "shout;now", r"\bshout~10~now\b", unless_negated=True)


def found(text: str, *which: Phrase) -> list[str]:
    return [f.pattern for f in phrases.find(which or (LOUD,), strings({"d": text}, 10_000).texts)]


def test_a_gap_is_bounded_and_ends_with_its_sentence() -> None:
    assert found("shout it now") == ["loud"]
    assert found("shout it loud, now") == ["loud"]
    assert found("shout it as loud as you can, now") == []
    assert found("shout it. now") == []


@pytest.mark.parametrize("before", ["never ", "do not ", "don't ", "whether all ", "this tool prevents a "])
def test_what_is_negated_means_nothing(before: str) -> None:
    assert found(f"{before}shout it now") == []
    assert found(f"{before}sing. but shout it now") == ["loud"]


def test_the_first_that_is_not_negated_counts() -> None:
    assert found("never shout now, and later on in the day you may well shout now") == ["loud"]


def test_without_an_anchor_of_each_group_nothing_is_searched() -> None:
    hungry = phrase("hungry", Category.SECRECY, Severity.LOW, "aa,bb;cc", ".")
    assert found("only bb is here", hungry) == []
    assert found("bb and then cc", hungry) == ["hungry"]


@pytest.mark.parametrize(
    "before", ["", "It rains. ", "Best, Ann\n", "Best, Ann\n\n  ", r'{"body": "Best, Ann\n', "* "]
)
def test_what_begins_a_sentence_may_begin_a_line(before: str) -> None:
    begun = phrase("begun", Category.SECRECY, Severity.HIGH, "shout", r"~|~shout")
    assert found(f"{before}Shout it now", begun) == ["begun"]
    assert found(f"{before}They shout it now", begun) == []
    assert found(f"{before}The loud\nshout it now", begun) == []  # a line that was only too long


@pytest.mark.parametrize("before", ["Attackers write, e.g., ", "Texts such as ", "For example: ("])
def test_what_an_example_says_is_told_of_and_no_more(before: str) -> None:
    order = phrase("order", Category.INSTRUCTION, Severity.HIGH, "obey", r"obey\ me")
    (said,) = phrases.find((order,), strings({"d": "Now obey me"}, 1000).texts)
    (spoken_of,) = phrases.find((order,), strings({"d": f"{before}'obey me'"}, 1000).texts)
    assert (said.severity, spoken_of.severity) == (Severity.HIGH, Severity.LOW)


def test_every_phrase_has_a_name_of_its_own_and_anchors_that_can_occur() -> None:
    assert len({p.name for p in ALL}) == len(ALL)
    assert set(IN_CONTENTS) <= set(PHRASES)
    assert not any(each.begins for each in IN_CONTENTS)  # core.inspect.quiet does not read lines
    for each in ALL:
        assert all(anchor and anchor == anchor.lower() for group in each.anchors for anchor in group), (
            each.name
        )


@pytest.mark.parametrize("each", ALL, ids=lambda p: p.name)
def test_no_phrase_takes_more_than_linear_time_on_text_made_of_its_own_words(each: Phrase) -> None:
    """A text twice as long may take twice as long, with room for noise; a quadratic one would take four times."""
    vocabulary = re.findall(r"[a-z']{2,}", each.pattern.pattern)[:40] + [a for g in each.anchors for a in g]

    def seconds(size: int) -> float:
        text = (" ".join(vocabulary) + " ") * (size // 200) + ". ".join(a for g in each.anchors for a in g)
        texts = strings({"d": text[:size]}, size * 2).texts
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            list(phrases.find((each,), texts))
            best = min(best, time.process_time() - began)
        return best

    assert seconds(40_000) < 0.010 + 3.2 * seconds(20_000)
