"""A line is what stands before LF, however the stream is cut, and the raws of all frames, joined, are the input."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from transcripts.playing import framed

from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.framing.sse import Frame


def frames(data: bytes, cuts: Iterable[int] = (), max_frame: int = 1 << 20) -> list[Frame]:
    return framed(LineDecoder(max_frame), data, cuts)


@given(st.text(alphabet='a{}\r\n" ', max_size=40).map(str.encode), st.lists(st.integers(0, 40)))
def test_no_byte_is_lost_or_made_and_chunks_decide_nothing(data: bytes, cuts: list[int]) -> None:
    assert b"".join(f.raw for f in frames(data, cuts)) == data
    assert frames(data, cuts) == frames(data)


def test_a_line_says_what_is_in_it_without_the_space_around_it() -> None:
    assert frames(b'{"a":1}\r\n\n {"b":2} \nrest') == [
        Frame(b'{"a":1}\r\n', data=b'{"a":1}'),
        Frame(b"\n"),
        Frame(b' {"b":2} \n', data=b'{"b":2}'),
        Frame(b"rest", data=b"rest"),
    ]


def test_no_other_line_end_is_one() -> None:
    data = '"a\u2028b\x0bc\rd\x85"\n'.encode()
    assert [f.raw for f in frames(data)] == [data]


def test_what_is_too_long_comes_in_oversize_pieces_and_the_next_line_whole() -> None:
    data = b"x" * 100 + b'\n{"a":1}\n'
    for cuts in ([], list(range(0, 110, 7))):
        found = frames(data, cuts, max_frame=50)
        assert b"".join(f.raw for f in found) == data
        assert [f.data for f in found if not f.oversize] == [b'{"a":1}']
        assert any(f.oversize for f in found)


def test_what_is_kept_is_bounded() -> None:
    decoder = LineDecoder(100)
    for _ in range(50):
        decoder.feed(b"x" * 30)
        assert len(decoder._buffer) <= 130
