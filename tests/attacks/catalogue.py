"""Reads the tables of the catalogues (README.md beside the tests): their rows, and the tests that a row names and nobody wrote."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent.parent
ALL = list(range(1, 36))  # both catalogues of the design have 35 rows


def rows(table: Path) -> dict[int, str]:
    """Return the rows of a table by their number. A number that stands twice is no table."""
    lines = [line for line in table.read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    found = {int(line.split("|")[1]): line for line in lines}
    assert len(found) == len(lines), f"a row of {table} stands twice"
    return found


def missing(row: str) -> list[str]:
    """Return the tests that a row names (`file.py::name`) and that are not there; that it names none is missing too."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row)
    if not named:
        return ["any test at all"]
    return [f"{path}::{test}" for path, test in named if test not in _functions(path)]


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text())
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
