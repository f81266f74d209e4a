"""Sentences whose words are each a string of its own: whoever reads a result reads them one behind the other.

What a sentence says is the detectors' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentsh_net.core.inspect.strings import Text

FEWEST: Final = 4  # strings; no order that detectors know has fewer words
LONGEST: Final = 40  # characters of one: a few words, and no sentence


def sentences(texts: Sequence[Text]) -> Iterator[Text]:
    """Yield each run of short values as one text; keys may stand between them."""
    run: list[Text] = []
    for text in texts:
        if text.key:
            continue
        if len(text.raw) <= LONGEST:
            run.append(text)
            continue
        yield from _joined(run)
        run = []
    yield from _joined(run)


def _joined(run: Sequence[Text]) -> Iterator[Text]:
    if len(run) >= FEWEST:
        yield Text(run[0].steps, " ".join(text.raw for text in run), " ".join(text.plain for text in run))
