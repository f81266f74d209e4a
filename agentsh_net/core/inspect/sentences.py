"""Sentences whose words stand in several strings: whoever reads a result reads them one behind the other.

What a sentence says is the detectors' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from agentsh_net.core.inspect.strings import Text

FEWEST: Final = 4  # strings; no order that detectors know has fewer words
LONGEST: Final = 40  # characters of one: a few words, and no sentence
REACH: Final = 160  # characters on either side of a seam: more than an order that detectors know is long


def sentences(texts: Sequence[Text]) -> Iterator[Text]:
    """Yield each run of short values as one text; keys may stand between them, and between short blocks long ones."""
    run: list[Text] = []
    blocks = [text for text in texts if _is_block(text)]
    short = [text for text in blocks if len(text.raw) <= LONGEST]
    if len(short) < len(blocks):
        yield from _joined(short)
    for text in texts:
        if text.key:
            continue
        if len(text.raw) <= LONGEST:
            run.append(text)
            continue
        yield from _joined(run)
        run = []
    yield from _joined(run)


def seams(texts: Sequence[Text]) -> Iterator[Text]:
    """Yield what stands where one block of text ends and the next begins."""
    for one, other in pairwise(text for text in texts if _is_block(text)):
        if max(len(one.raw), len(other.raw)) > LONGEST:  # else they are read as a sentence
            raw, plain = (
                f"{a[-REACH:]} {b[:REACH]}" for a, b in ((one.raw, other.raw), (one.plain, other.plain))
            )
            yield Text(other.steps, raw, plain)


def _is_block(text: Text) -> bool:
    """Say whether a string is the text of one of several blocks (`content[1].text`), which clients put one behind the other."""
    return not text.key and text.steps[-1:] == ("text",) and isinstance(text.steps[-2:][0], int)


def _joined(run: Sequence[Text]) -> Iterator[Text]:
    if len(run) >= FEWEST:
        yield Text(run[0].steps, " ".join(text.raw for text in run), " ".join(text.plain for text in run))
