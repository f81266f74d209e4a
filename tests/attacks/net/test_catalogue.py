"""README.md's table has all 36 rows of the attack catalogue, names real tests for each, and says what each plane alone does."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks import catalogue

TABLE = Path(__file__).parent / "README.md"
ROWS = [*catalogue.ALL, 36]  # the design's, and default-deny for sessions


def test_the_table_has_all_36_rows() -> None:
    assert sorted(catalogue.rows(TABLE)) == ROWS


@pytest.mark.parametrize("row", ROWS)
def test_every_test_that_a_row_names_is_there(row: int) -> None:
    assert catalogue.missing(catalogue.rows(TABLE)[row]) == []


@pytest.mark.parametrize("row", ROWS)
def test_every_row_says_what_each_plane_does(row: int) -> None:
    says = catalogue.rows(TABLE)[row].split("|")[3]
    assert any(word in says for word in ("both", "neither", "eBPF", "as row", "each"))


def test_a_test_that_nobody_wrote_is_missed() -> None:
    row = "| 1 | `attacks/net/test_catalogue.py::test_the_table_has_all_36_rows` `attacks/net/test_catalogue.py::test_x` |"
    assert catalogue.missing(row) == ["attacks/net/test_catalogue.py::test_x"]
    assert catalogue.missing("| 1 | nothing |") == ["any test at all"]
