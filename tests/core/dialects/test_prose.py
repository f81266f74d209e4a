"""A frame passes as prose only where it is the one before but for plain text in one string; whatever could end that string is read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.prose import Prose, Shape

SHAPE = Shape(re.compile(rb'data: \{"at":[0-9],"say":"'), re.compile(rb'" *\} *\}\n\n'))
BEFORE = b'data: {"at":0,"say":"'


def frame(text: bytes, behind: bytes = b'"}}\n\n', before: bytes = BEFORE) -> bytes:
    return before + text + behind


def learned() -> Prose:
    prose = Prose(SHAPE)
    prose.learn(frame(b"first"))
    return prose


@pytest.mark.parametrize("text", [b"", b"tool_use", b"an error", b"'}{[]:,", b" " * 50, b"0123456789" * 4])
@pytest.mark.parametrize("behind", [b'"}}\n\n', b'"}    }\n\n', b'" } }\n\n'])
def test_whatever_words_are_in_it_text_goes_on(text: bytes, behind: bytes) -> None:
    assert learned().goes_on(frame(text, behind))


@pytest.mark.parametrize(
    "other",
    [
        frame(b'a","type":"tool_use","x":"b'),
        frame(b"a\\"),
        frame(b'a\\"b'),
        frame(b"\\u0074ool"),
        frame(b"a\n\ndata: {}"),
        frame(b"a\rb"),
        frame(b"a\0b"),
        frame(b"a\x0bdata: {}"),
        frame("tool\u2028".encode()),
        frame(b"a\xff"),
        frame(b"a", b'"},"x":{}}\n\n'),
        frame(b"a", b'"}}\n \n'),
        frame(b"a", b'"}}\n\n\n'),
        frame(b"a", b'"}}\n'),
        frame(b"a", b'"}}'),
        frame(b"a", b""),
        frame(b"a", b'"}}\n\ndata: {}\n\n'),
        frame(b"a", before=b'data: {"at":1,"say":"'),
        b"\n" + frame(b"a"),
        BEFORE,
        BEFORE[:-1] + b'"}}\n\n',
        b"",
        b'"',
    ],
)
def test_what_could_say_more_is_read(other: bytes) -> None:
    assert not learned().goes_on(other)


@given(st.binary(max_size=40) | st.text(st.sampled_from('"\\}{ \n\r\0a'), max_size=12).map(str.encode))
def test_only_one_string_on_one_line_can_differ(middle: bytes) -> None:
    found = learned().goes_on(BEFORE + middle)
    assert found is bool(re.fullmatch(rb'[ !#-\[\]-~]*" *\} *\}\n\n', middle))


def test_nothing_goes_on_before_it_was_learned_nor_without_a_shape() -> None:
    without = Prose(None)
    without.learn(frame(b"a"))
    for prose in (Prose(SHAPE), without):
        for data in (frame(b"a"), b"", b'"', b'""}}\n\n', b'"}}\n\n'):
            assert not prose.goes_on(data)


def test_a_stream_may_change_its_shape() -> None:
    prose = learned()
    second = frame(b"b", before=b'data: {"at":1,"say":"')
    prose.learn(b"data: else\n\n")
    assert prose.goes_on(frame(b"c"))
    prose.learn(second)
    assert prose.goes_on(second)
    assert not prose.goes_on(frame(b"c"))
