"""The same rows as table, array and lines; nothing untrusted reaches the terminal raw; a pipe gets one row a line."""

import io
import json
import re
import sys

import pytest

from agentsh_net.cli import output
from agentsh_net.cli.output import Column, Format, session, show, table

COLUMNS = (Column("NAME", lambda row: row["name"]), Column("TEXT", lambda row: row["text"], fold=True))
EVIL = "\x1b]0;owned\x07\x9b31m\u202egnp.exe\u200b\U000e0041\x7f\ud800\r\n"


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": 1}, {"b": [None, "é"]}]])
def test_json_is_one_array_and_jsonl_one_object_a_line(capsys, rows):
    show(iter(rows), Format.JSON, COLUMNS)
    assert json.loads(capsys.readouterr().out) == rows
    show(iter(rows), Format.JSONL, COLUMNS)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows


@pytest.mark.parametrize("text", [EVIL, EVIL.replace("\ud800", ""), "\u00a0\u2028\u3164\U000e0100"])
def test_json_escapes_what_does_not_show_and_keeps_the_value(capsys, text):
    show([{"text": text}], Format.JSONL, COLUMNS)
    line = capsys.readouterr().out
    assert json.loads(line) == {"text": text}
    assert line.rstrip("\n").isascii() and line.rstrip("\n").isprintable()


def test_json_keeps_what_people_read(capsys):
    show([{"text": "naïve 日本 🙂"}], Format.JSONL, COLUMNS)
    assert capsys.readouterr().out == '{"text":"naïve 日本 🙂"}\n'


def test_a_table_shows_escapes_and_invisible_characters(capsys):
    show([{"name": "x", "text": EVIL}], Format.TABLE, COLUMNS)
    out = capsys.readouterr().out
    assert all(char.isprintable() for char in out.replace("\n", ""))
    assert "<U+001B>]0;owned" in out
    assert "<U+202E>" in out
    assert len(out.splitlines()) == 2


def test_markup_in_a_value_is_only_text(capsys):
    show([{"name": "[red]x[/red]", "text": ":smile: [link=http://evil]y[/link]"}], Format.TABLE, COLUMNS)
    assert "[red]x[/red]  :smile: [link=http://evil]y[/link]" in capsys.readouterr().out


def test_a_pipe_gets_a_row_a_line_without_trailing_space(capsys):
    show([{"name": "n", "text": "word " * 50}, {"name": "long-name", "text": "t"}], Format.TABLE, COLUMNS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines == [line.rstrip() for line in lines]


def test_a_row_for_a_pipe_is_whole_however_long():
    columns = [Column(str(at), lambda row: row["text"]) for at in range(50)]
    assert table([{"text": "x" * 300}], columns).splitlines()[1] == "  ".join(["x" * 300] * 50)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_lines_that_fit(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    show([{"name": "n", "text": "word " * 50}], Format.TABLE, COLUMNS)
    lines = screen.getvalue().splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


def test_an_empty_table_says_so_aside(capsys):
    show([], Format.TABLE, COLUMNS, empty="no calls found")
    assert capsys.readouterr() == ("", "no calls found\n")


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), ("", "-"), (0, "0"), ({"a": [1]}, '{"a":[1]}'), ("a\tb", "a<U+0009>b")]
)
def test_a_cell_is_text(value, text):
    assert output.shown(value) == text


def test_a_long_cell_is_cut_and_says_so():
    assert output.shown("x" * 1000).endswith("(700 more characters)")


def test_times_decisions_and_hashes_are_short():
    assert output.moment("2025-01-31T12:00:00.123456Z") == "2025-01-31 12:00:00"
    assert output.moment(None) == "-"
    assert output.decision({"action": "allow", "would": "block"}) == "would block"
    assert output.decision({"action": "block"}) == "block"
    assert output.decision({"action": "allow", "type": "policy_reloaded"}) == "-"
    assert output.decision({"action": "allow", "type": "http"}) == "allow"
    assert output.short_hash("sha256:0123456789abcdef") == "0123456789ab"


def test_a_narrow_terminal_gets_every_column(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    show([{"name": "a-name-of-30-characters-at-least", "text": "the whole text"}], Format.TABLE, COLUMNS)
    assert (
        re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
        == "NAME\na-name-of-30-characters-at-least\n    the whole text\n"
    )


def test_a_spare_column_is_there_where_a_row_has_a_word_for_it():
    columns = (Column("NAME", lambda row: row["name"]), Column("SESSION", session, spare=True))
    nobodys, mine = {"name": "a", "session_id": "default"}, {"name": "b", "session_id": "mine"}
    assert table([nobodys], columns) == "NAME\na\n"
    assert table([nobodys, mine], columns) == "NAME  SESSION\na     -\nb     mine\n"
