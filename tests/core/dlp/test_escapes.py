"""A text reads as its escapes say, and every character of what it reads has its place in what is written."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dlp.escapes import places, undone


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        (r"a\nb\u0040c\x41\"\\n", 'a\nb@cA"\\n'),
        ("a%20b%40c", "a b@c"),
        ("\x1b[01;31m\x1b[Ksk-\x1b[m\x1b[Krest", "sk-rest"),
        (r"C:\Users\d 100% \q", r"C:\Users\d 100% \q"),
    ],
)
def test_escapes_of_json_urls_and_terminals_are_undone(text: str, reads: str) -> None:
    assert undone(text) == reads


@given(st.text(st.characters(max_codepoint=0xD7FF, exclude_characters="\\%\x1b")))
def test_json_reads_as_what_it_was_made_of(text: str) -> None:
    assert undone(json.dumps(text)[1:-1]) == text


@given(st.text(st.characters(max_codepoint=0x7F, exclude_characters="\\%\x1b")))
def test_urls_read_as_what_they_were_made_of(text: str) -> None:
    assert undone(quote(text)) == text


@given(st.lists(st.sampled_from([r"\n", r"\u0041", "%40", "\x1b[1m", "x", "\\", "%", "0041"])).map("".join))
def test_what_is_read_at_a_place_is_written_there(text: str) -> None:
    read, at = undone(text), places(text)
    for position, char in enumerate(read):
        start, end = at.written(position), at.written(position + 1)
        assert undone(text[start:end]).startswith(char) or text[start:end] == char
    assert [at.outside(start + 1) for start, end in at.spans] == [end for _, end in at.spans]
