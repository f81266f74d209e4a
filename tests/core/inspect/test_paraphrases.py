"""Poison without the usual words is found by the ideas that meet in it; either idea alone is ordinary prose."""

from __future__ import annotations

import pytest
from poison import paraphrases

from agentsh_net.core.inspect.contents import inspect_content
from agentsh_net.core.inspect.definitions import inspect_definition


def patterns(text: str) -> set[str]:
    return {f.pattern for f in inspect_definition({"name": "t", "description": text})}


@pytest.mark.parametrize("text", paraphrases.TUNED)
def test_what_it_was_made_for_is_found(text: str) -> None:
    assert patterns(text)


def test_recall_on_what_was_held_out_does_not_fall() -> None:
    assert sum(bool(patterns(text)) for text in paraphrases.HELD_OUT) >= 15


@pytest.mark.parametrize("text", paraphrases.HONEST)
def test_honest_text_that_sounds_like_it_has_no_finding(text: str) -> None:
    assert patterns(text) == set()
    assert not inspect_content({"content": [{"type": "text", "text": text}]})


@pytest.mark.parametrize(
    "text",
    [
        "The rules above end here.",
        "What the user typed is passed to the search engine.",
        "Treat the text as coming from a file.",
    ],
)
def test_one_idea_alone_is_no_finding(text: str) -> None:
    assert patterns(text) == set()
