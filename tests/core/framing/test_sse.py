"""The decoder follows the WHATWG rules on bytes, whatever the chunking, and loses no byte."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentsh_net.core.framing.sse import Decoder, Frame, parse

PIECES = [
    b"data: x", b"data:x", b"data:  two", b"data", b"event: a", b": c", b"id: 1", b"retry: 5", b"\n", b"\r", b"\r\n", b"\n\n",
    b"\r\n\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"data: \xe2\x82\xac", b"datax: no",
]  # fmt: skip
STREAMS = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)


def reference(stream: bytes) -> list[tuple[str, bytes]]:
    """The standard's algorithm on whole lines, written as naively as it reads."""
    if stream.startswith(b"\xef\xbb\xbf"):
        stream = stream[3:]
    lines, line, at = [], b"", 0
    while at < len(stream):
        byte = stream[at : at + 1]
        if byte in {b"\r", b"\n"}:
            at += 2 if stream[at : at + 2] == b"\r\n" else 1
            lines.append(line)
            line = b""
        else:
            line += byte
            at += 1
    events, event, data = [], "", []
    for line in lines:
        if not line:
            if data:
                events.append((event, b"\n".join(data)))
            event, data = "", []
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ") if b":" in line else b""
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode()
    return events


def decode(stream: bytes, cuts: list[int], max_frame: int = 1 << 20) -> list[Frame]:
    decoder = Decoder(max_frame)
    frames, at = [], 0
    for cut in [*sorted(c % (len(stream) + 1) for c in cuts), len(stream)]:
        frames += decoder.feed(stream[at:cut])
        at = cut
    rest = decoder.finish()
    return frames + ([rest] if rest else [])


@given(STREAMS, st.lists(st.integers(0, 500)))
@example(b"data: x\r\n\r\n", [9, 10])
@example(b"data: x\r\r\ndata: y\n\n", [9])
def test_no_byte_is_lost_and_frames_are_those_of_the_standard(stream: bytes, cuts: list[int]) -> None:
    frames = decode(stream, cuts)
    assert b"".join(f.raw for f in frames) == stream
    # An unfinished last event is given out too; the standard would drop it.
    dispatched = [(f.event, f.data) for f in frames if f.data is not None and f.raw[-1:] in b"\r\n"]
    expected = reference(stream)
    assert dispatched[: len(expected)] == expected
    assert len(dispatched) <= len(expected) + 1


@given(STREAMS, st.lists(st.integers(0, 500)), st.lists(st.integers(0, 500)))
def test_chunking_changes_no_event(stream: bytes, one: list[int], other: list[int]) -> None:
    def events(cuts: list[int]) -> list[tuple[str, bytes]]:
        return [(f.event, f.data) for f in decode(stream, cuts) if f.data is not None]

    assert events(one) == events(other)


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"event: m\ndata: x\n\n", b"x"),
        (b"event: m\ndata: \n\n", b""),
        (b"event: m\nid: 1\ndata: x\n\n", b"x"),
        (b"event: m\nid: 1: 2\ndata: x\n\n", b"x"),
        (b"event: m\ndata: x\ndata: y\n\n", b"x\ny"),
        (b"id: 1\nevent: m\ndata: x\n\n", b"x"),
        (b"event: m\nmyata: z\ndata: x\n\n", b"x"),
        (b"data: x\nevent: m\n\n", b"x"),
        (b"event: m\ndata\n\n", b""),
        (b"data: x\nevent: m\ndata\n\n", b"x\n"),
        (b"event: m\r\ndata: x\r\n\r\n", b"x"),
        (b"event: m\r\ndata: \r\n\r\n", b""),
        (b"event: m\r\nid: 1\r\ndata: x\r\n\r\n", b"x"),
        (b"event: m\ndata: x\r\n\r\n", b"x"),
        (b"event: m\r\ndata: x\ry\r\n\r\n", b"x"),
        (b"event: m\r\ndata: x\r\ndata: y\r\n\r\n", b"x\ny"),
        (b"event: m\ndata: x\ry\n\n", b"x"),
        (b"event: m\r\ndata: x\n\r\n", b"x"),
    ],
)
def test_an_event_in_one_read_is_what_it_is_byte_by_byte_whatever_ends_its_lines(
    stream: bytes, data: bytes
) -> None:
    whole, cut = Decoder(100), Decoder(100)
    assert whole.feed(stream) == [Frame(stream, "m", data)]
    pieces = [frame for i in range(len(stream)) for frame in cut.feed(stream[i : i + 1])]
    assert [(frame.event, frame.data) for frame in pieces if frame.data is not None] == [("m", data)]


def test_line_separators_of_unicode_do_not_end_a_line() -> None:
    assert parse("data: a\u2028b\u0085c\n\n".encode()).data == "a\u2028b\u0085c".encode()


def test_several_data_lines_are_one_value() -> None:
    assert parse(b"event: e\ndata: {\ndata: }\n\n") == Frame(b"event: e\ndata: {\ndata: }\n\n", "e", b"{\n}")


def test_a_bom_is_skipped_at_the_beginning_only() -> None:
    first, second = decode(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [])
    assert first.data == b"a"
    assert second.data is None


def test_comments_and_blank_lines_dispatch_nothing() -> None:
    assert [f.data for f in decode(b": hi\n\n\n\ndata: x\n\n", [])] == [None, None, None, b"x"]


@given(st.integers(16, 64), st.lists(st.integers(0, 500)))
@example(16, list(range(330)))
def test_an_event_above_the_bound_comes_out_in_marked_pieces_and_the_next_is_whole(
    bound: int, cuts: list[int]
) -> None:
    long = b"data: " + b"x" * 300 + b"\n\n"
    *pieces, last = decode(long + b"data: y\n\n", cuts, max_frame=bound)
    assert b"".join(f.raw for f in pieces) == long
    assert all(f.oversize for f in pieces)
    assert last == Frame(b"data: y\n\n", "", b"y")


@pytest.mark.parametrize("cut", [0, 5, 99])
def test_an_event_of_just_the_bound_is_whole(cut: int) -> None:
    event = b"data: " + b"x" * 92 + b"\n\n"
    assert [f.oversize for f in decode(event, [cut], 100)] == [False]
    assert all(f.oversize for f in decode(event, [cut], 99))


def test_what_waits_is_handed_over_and_taken_back_and_nothing_is_in_the_middle_of_an_oversize_event() -> None:
    decoder = Decoder(20)
    assert not decoder.aligned  # the first frame may begin with a BOM
    assert decoder.take() == b""
    decoder.feed(b"data: x\n")
    assert (decoder.pending, decoder.aligned) == (8, False)
    assert decoder.take() == b"data: x\n"
    assert (decoder.pending, decoder.take()) == (0, b"")
    decoder.skip()
    assert decoder.aligned
    assert decoder.feed(b"\xef\xbb\xbfdata: x\n\n") == [Frame(b"\xef\xbb\xbfdata: x\n\n")]
    decoder.feed(b"x" * 30)
    assert (decoder.take(), decoder.aligned) == (None, False)
    assert [f.oversize for f in decoder.feed(b"\n\ndata: y\n\n")] == [True, False]
    assert (decoder.take(), decoder.aligned) == (b"", True)


def test_what_is_held_never_passes_the_bound() -> None:
    decoder = Decoder(100)
    for _ in range(1000):
        decoder.feed(b"x" * 10)
        assert decoder.pending <= 100


@pytest.mark.parametrize("tail", [b"data: x", b"data: x\n", b"data: x\r"])
def test_an_unfinished_event_is_given_out_at_the_end(tail: bytes) -> None:
    decoder = Decoder(100)
    assert decoder.feed(tail) == []
    assert decoder.finish() == Frame(tail, "", b"x")
    assert decoder.finish() is None
