"""On a terminal every column is there to be read: side by side where there is room, below its row where there is not."""

import io

import pytest
from rich.console import Console

from agentsh_net.cli.layout import Heading, Line, cramped, plain, stacked

HEADINGS = [Heading("TIME", fold=False), Heading("SERVER", fold=False), Heading("TOOL", fold=True), Heading("REASON", fold=True)]  # fmt: skip
ROW = Line(["2025-01-31", "weather", "delete_city", "denied by denied_tools[0] " * 3])


def printed(headings, lines, width):
    text = io.StringIO()
    stacked(headings, lines, Console(file=text, width=width, highlight=False, emoji=False, markup=False))
    return text.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "answer"),
    [
        (200, False),  # all of it fits
        (80, False),  # a short column takes its own width, the long one the rest
        (50, True),  # slivers
        (10, True),
    ],
)
def test_what_would_be_slivers_is_cramped(width, answer):
    assert cramped(HEADINGS, [ROW], width) is answer


def test_a_tower_is_cramped_too():
    assert cramped(HEADINGS, [Line([*ROW.cells[:3], "word " * 60])], 80)


def test_columns_that_keep_their_width_are_cramped_where_they_do_not_fit():
    assert cramped([Heading("A", fold=False)] * 2, [Line(["x" * 30, "y" * 30])], 50)


def test_long_texts_stand_below_their_row():
    shown = printed(HEADINGS, [ROW, Line(["2025-02-01", "fs", "-", "allowed"])], 40)
    assert [line.rstrip() for line in shown] == [
        "TIME        SERVER   TOOL",
        "2025-01-31  weather  delete_city",
        "    denied by denied_tools[0] denied by",
        "    denied_tools[0] denied by",
        "    denied_tools[0]",
        "2025-02-01  fs       -",
        "    allowed",
    ]


def test_what_does_not_fit_beside_has_its_title_below():
    shown = printed(HEADINGS, [ROW, Line(["2025-02-01", "fs", "-", "allowed"])], 30)
    assert [line.rstrip() for line in shown] == [
        "TIME        SERVER",
        "2025-01-31  weather",
        "    TOOL: delete_city",
        "    REASON: denied by",
        "    denied_tools[0] denied by",
        "    denied_tools[0] denied by",
        "    denied_tools[0]",
        "2025-02-01  fs",
        "    REASON: allowed",
    ]


def test_a_column_that_is_alone_below_needs_no_title():
    [_, _, detail] = printed([HEADINGS[0], HEADINGS[3]], [Line(["2025", "as it has to be"])], 20)
    assert detail.strip() == "as it has to be"


def test_what_keeps_its_width_goes_below_too_where_it_does_not_fit():
    shown = printed(HEADINGS[:2], [Line(["x" * 20, "y" * 20])], 30)
    assert [line.strip() for line in shown] == ["TIME", "x" * 20, "y" * 20]


def test_wide_letters_are_counted_as_terminals_do():
    assert printed([HEADINGS[0], HEADINGS[1]], [Line(["日本", "a"]), Line(["x", "b"])], 40) == [
        "TIME  SERVER", "日本  a", "x     b"
    ]  # fmt: skip


@pytest.mark.parametrize("width", [20, 40, 60])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_left_out(width):
    lines = printed(HEADINGS, [ROW], width)
    assert max(map(len, lines)) <= width
    text = "".join("".join(line.split()) for line in lines)
    assert all("".join(cell.split()) in text for cell in ROW.cells)


def test_a_pipe_gets_columns_as_wide_as_their_widest_cell():
    lines = [Line(["日本", "x", "end"]), Line(["abcdefg", "", "end"])]
    headings = [Heading(title, fold=True) for title in ("ONE", "TWO", "THREE")]
    assert list(plain(headings, lines)) == [
        "ONE      TWO  THREE",
        "日本     x    end",
        "abcdefg       end",
    ]
