"""A text keeps what need not change, and what parsers read differently is written so that they read one thing."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.inline_edits import in_place, rewritten
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.json_splice import DELETE
from agentsh_net.core.values.strict_json import read

TWICE = b'{"a":[1, 2.50], "b":1,"b":2}'


def test_without_an_edit_the_text_stays() -> None:
    assert rewritten(TWICE, read(TWICE), {}, ambiguous=True, hidden=False) is None


def test_edits_touch_nothing_else() -> None:
    text = b'{ "a" : [1, 2.50] }'
    assert (
        rewritten(text, read(text), {("a", 0): DELETE}, ambiguous=False, hidden=False) == b'{ "a" : [2.50] }'
    )


@pytest.mark.parametrize(
    ("edits", "want"), [({}, b'{"a":[1,2.5],"b":2}'), ({("a",): "x"}, b'{"a":"x","b":2}')]
)
def test_what_hides_something_is_written_anew(edits: dict, want: bytes) -> None:
    assert rewritten(TWICE, read(TWICE), edits, ambiguous=True, hidden=True) == want


def test_a_frame_keeps_what_stands_around_its_data() -> None:
    assert in_place(Frame(b',\n{"a":1}', data=b'{"a":1}'), b"{}") == b",\n{}"
    assert in_place(Frame(b' {"a":1}\r\n', data=b'{"a":1}'), b"{}") == b" {}\r\n"
