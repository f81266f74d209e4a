"""How rows are printed: a table for people, one JSON array, or one JSON object a line. Every reading command prints through here.

What agents and servers wrote never reaches a terminal raw: control and invisible characters are shown as `<U+XXXX>`, in JSON as escapes.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import click

from agentsh_net.cli.layout import GAP, Heading, Line, cramped, plain, stacked
from agentsh_net.core.audit.events import DEFAULT_SESSION
from agentsh_net.core.naming.folding import visible

Row = Mapping[str, Any]

MAX_CELL: Final = 300  # characters of a cell: four lines of a terminal; the whole is in --json

# Types of events that tell of the daemon itself: nothing was allowed or blocked.
_UNDECIDED: Final = ("policy_", "daemon_", "layer_", "events_lost", "worker_")

# What JSON may hold but a terminal should not get: everything that is neither ASCII nor plainly visible, and DEL.
_SUSPECT: Final = re.compile(r"[^\x00-\x7e]")


class Format(StrEnum):
    """A way to print rows."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `fold` columns give way when the terminal is narrow; `spare` ones are left out where no row has a word for them."""

    title: str
    cell: Callable[[Row], str]
    fold: bool = False
    spare: bool = False


def show(
    rows: Iterable[Row], form: Format, columns: Sequence[Column], *, empty: str = "nothing found"
) -> None:
    """Print rows; `empty` is said on standard error instead of a table without rows."""
    match form:
        case Format.JSONL:
            for row in rows:
                click.echo(json_text(row))
        case Format.JSON:
            _show_array(rows)
        case Format.TABLE:
            kept = list(rows)
            if kept:
                click.echo(table(kept, columns), nl=False)
            else:
                click.echo(empty, err=True)


def json_text(value: Any) -> str:
    """Return a value as JSON on one line, with everything that does not show as an escape; JSON is UTF-8 or ASCII (RFC 8259 8.1)."""
    from agentsh_net.core.values import jsontext

    utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    return _SUSPECT.sub(_escaped_unless_plain if utf8 else _escaped, jsontext.dumps(value).decode())


def table(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """Return rows as a table, as wide as the terminal, or as wide as the rows where there is none."""
    columns = [column for column in columns if not column.spare or any(map(column.cell, rows))]
    headings = [Heading(column.title, column.fold) for column in columns]
    lines = [Line([shown(column.cell(row)) for column in columns], _style(row)) for row in rows]
    made = _for_terminal(headings, lines) if sys.stdout.isatty() else plain(headings, lines)
    return "".join(f"{line.rstrip()}\n" for line in made)


def _for_terminal(headings: Sequence[Heading], lines: Sequence[Line]) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    text = io.StringIO()
    console = Console(file=text, force_terminal=True, highlight=False, emoji=False, markup=False)
    if cramped(headings, lines, console.width):
        stacked(headings, lines, console)
    else:
        made = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
        for heading in headings:
            made.add_column(heading.title, overflow="fold", no_wrap=not heading.fold)
        for line in lines:
            made.add_row(*(Text(cell, style=line.style) for cell in line.cells))
        console.print(made)
    return text.getvalue().splitlines()


def shown(value: Any) -> str:
    """Return a value as text that is safe to print, cut to a cell's length; absent values are a dash."""
    if value is None or value == "":
        return "-"
    return visible(value if isinstance(value, str) else json_text(value), MAX_CELL)


def moment(timestamp: Any) -> str:
    """Return a timestamp as people read it: to the second, in UTC."""
    return str(timestamp or "-")[:19].replace("T", " ")


def session(row: Row) -> str:
    """Return the session that an event is of; nothing for the default one."""
    named = str(row.get("session_id") or "")
    return named if named != DEFAULT_SESSION else ""


def short_hash(value: Any) -> str:
    """Return the first digits of a hash: enough to tell two apart by eye."""
    return str(value or "-").removeprefix("sha256:")[:12]


def decision(row: Row) -> str:
    """Return what was done with it: allow, block, or what audit mode let pass; a dash where nothing was decided."""
    if str(row.get("type")).startswith(_UNDECIDED):
        return "-"
    return "would block" if row.get("would") == "block" else str(row.get("action") or "-")


def _show_array(rows: Iterable[Row]) -> None:
    before = "[\n"
    for row in rows:
        click.echo(before + json_text(row), nl=False)
        before = ",\n"
    click.echo("[]" if before == "[\n" else "\n]")


def _style(row: Row) -> str:
    if row.get("action") == "block":
        return "red"
    return "yellow" if row.get("would") == "block" else ""


def _escaped_unless_plain(match: re.Match[str]) -> str:
    char = match[0]
    return char if char != "\x7f" and visible(char) == char else _escaped(match)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))
