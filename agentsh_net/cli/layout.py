"""How a table stands on a terminal: side by side, or, where the columns that fold would be slivers, below each row.

A pipe gets a row a line, however long. What is in the cells is not its business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

GAP: Final = 2  # columns between two cells
NARROW: Final = 20  # columns: less than that cuts names and paths into pieces that nobody can read
LONG: Final = 40  # columns: a name that long may still stand in its row, a sentence reads better below it
TALL: Final = 5  # lines that one cell may take beside the others

_INDENT: Final = "    "


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a column, and whether it gives way."""

    title: str
    fold: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A row: its cells, and the style of all of them."""

    cells: Sequence[str]
    style: str = ""


def cramped(headings: Sequence[Heading], lines: Sequence[Line], width: int) -> bool:
    """Say whether side by side the columns would not fit, or those that fold would be slivers or towers."""
    widths = _widths(headings, lines)
    if sum(widths) + GAP * (len(widths) - 1) <= width:
        return False
    folding = [size for size, heading in zip(widths, headings, strict=True) if heading.fold]
    kept = sum(size for size, heading in zip(widths, headings, strict=True) if not heading.fold)
    room = width - kept - GAP * (len(widths) - 1)
    if not folding:
        return True
    # A short column needs no more than its own width; the others share what is left.
    for taken, size in enumerate(sorted(folding)):
        each = room // (len(folding) - taken)
        if size > each:
            return each < NARROW or max(folding) > each * TALL
        room -= size
    return False


def plain(headings: Sequence[Heading], lines: Sequence[Line]) -> Iterator[str]:
    """Yield a line for each row, as wide as it may be, with every column as wide as its widest cell: what a pipe gets."""
    widths = _widths(headings, lines)
    every = range(len(headings))
    yield _row([heading.title for heading in headings], widths, every)
    for line in lines:
        yield _row(line.cells, widths, every)


def stacked(headings: Sequence[Heading], lines: Sequence[Line], console: Console) -> None:
    """Print the columns side by side that fit so, and all others below each row."""
    from rich.padding import Padding
    from rich.text import Text

    widths = _widths(headings, lines)
    beside = _beside(headings, widths, console.width)
    below = [at for at in range(len(headings)) if at not in beside]

    titles = [heading.title for heading in headings]
    console.print(Text(_row(titles, widths, beside), style="bold", no_wrap=True))
    for line in lines:
        console.print(Text(_row(line.cells, widths, beside), style=line.style, no_wrap=True))
        for at in below:
            if line.cells[at] != "-":
                title = f"{headings[at].title}: " if len(below) > 1 else ""
                text = Text(f"{title}{line.cells[at]}", style=line.style, overflow="fold")
                console.print(Padding(text, (0, 0, 0, len(_INDENT))))


def _row(cells: Sequence[str], widths: Sequence[int], chosen: Sequence[int]) -> str:
    from rich.cells import set_cell_size

    return (" " * GAP).join(set_cell_size(cells[at], widths[at]) for at in chosen).rstrip()


def _beside(headings: Sequence[Heading], widths: Sequence[int], width: int) -> list[int]:
    """Return the columns that stand side by side: from the left, what fits, but for long texts; one at least."""
    taken: list[int] = []
    room = width
    for at, heading in enumerate(headings):
        needed = widths[at] + (GAP if taken else 0)
        if needed <= room and not (heading.fold and widths[at] > LONG):
            taken.append(at)
            room -= needed
    return taken or [0]


def _widths(headings: Sequence[Heading], lines: Sequence[Line]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in _columns(headings, lines)]


def _columns(headings: Sequence[Heading], lines: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    for at, heading in enumerate(headings):
        yield (heading.title, *(line.cells[at] for line in lines))
