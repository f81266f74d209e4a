"""A chunked body is read strictly in any cutting, and its end is never mistaken."""

from __future__ import annotations

import gc
import weakref

import pytest
from agentsh_proxy.chunks import LAST_CHUNK, ChunkedReader, chunk, only_chunk
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.lists(st.integers(1, 20), max_size=40))
def test_any_chunks_in_any_cutting_are_the_same_body(pieces, cuts):
    wire = b"".join(map(chunk, pieces)) + LAST_CHUNK
    reader, body = ChunkedReader(), b""
    for cut in [*cuts, len(wire)]:
        body += reader.feed(wire[:cut]) if wire[:cut] else b""
        wire = wire[cut:]
        assert reader.complete is (not wire)
    assert body == b"".join(pieces)
    assert not reader.overrun


CHUNKS = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=20) | st.just(b"\r\n") | st.just(b"1\r\nx\r\n"),
        st.sampled_from([b"%x\r\n", b"%X\r\n", b"00%x\r\n", b"%x;a=b\r\n"]),
    ),
    max_size=6,
)


@given(CHUNKS, st.lists(st.integers(1, 8), max_size=60))
def test_a_reader_is_between_two_chunks_only_where_the_next_byte_begins_one(chunks, cuts):
    wire, ends = b"", {0}
    for body, head in chunks:
        wire += head % len(body) + body + b"\r\n"
        ends.add(len(wire))
    reader, at = ChunkedReader(), 0
    assert reader.between
    for cut in cuts:
        if at < len(wire):
            cut = min(cut, len(wire) - at)  # noqa: PLW2901 - what there is
            reader.feed(wire[at : at + cut])
            at += cut
            assert not reader.between or at in ends
            # Of a line end cut in two nothing is concluded.
            assert reader.between or at not in ends or cut == 1


@given(CHUNKS, st.integers(0, 6), st.integers(1, 9))
def test_a_whole_chunk_between_two_need_not_be_told_to_the_reader(chunks, few, size):
    pieces = [head % len(body) + body + b"\r\n" for body, head in chunks]
    first = b"".join(pieces[:few])
    cut = [first[at : at + size] for at in range(0, len(first), size)]
    reader, read = ChunkedReader(), b""
    for piece in [*cut, *pieces[few:], LAST_CHUNK]:
        read += (reader.between and only_chunk(piece)) or reader.feed(piece)
    assert read == b"".join(body for body, _ in chunks)
    assert reader.complete
    assert not reader.overrun


@given(st.binary(min_size=1, max_size=1023) | st.integers(1, 1023).map(lambda size: b"x" * size))
def test_only_a_chunk_as_it_is_written_here_is_known_for_one(body):
    assert only_chunk(chunk(body)) == body
    for other in (
        body,
        chunk(body)[:-1],
        chunk(body) + b"x",
        b"0" + chunk(body),
        chunk(body)[:-2] + b"\n\n",
        chunk(body) * 2,
    ):
        found = only_chunk(other)
        assert not found or chunk(found) == other


def test_what_is_no_chunk_or_a_large_one_is_left_to_the_reader():
    for data in (
        b"",
        b"\r\n",
        LAST_CHUNK,
        b"1\r\n\r\n",
        b"A\r\n0123456789\r\n",
        b"a \r\n012345678\r\n",
        chunk(b"x" * 1024),
    ):
        assert only_chunk(data) == b""


@pytest.mark.parametrize(
    "wire",
    [b"5\nhello\r\n", b"5 \r\nhello\r\n", b"0x5\r\nhello\r\n", b"+5\r\nhello\r\n", b"-5\r\n", b"5\r\nhello!\r\n", b"5\r\nhello\n", b"\r\n", b"f" * 17 + b"\r\n", b"g\r\n"],
)  # fmt: skip
def test_a_malformed_coding_is_refused(wire):
    with pytest.raises(ProtocolError, match="chunked"):
        ChunkedReader().feed(wire)


def test_extensions_and_trailers_are_read_over():
    reader = ChunkedReader()
    assert reader.feed(b"2;a=b\r\nhi\r\n0\r\nX-Trailer: y\r\n\r\n") == b"hi"
    assert reader.complete


@pytest.mark.parametrize(
    "rest",
    [
        b"POST / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nevil" * 2,
        b"HTTP/1.1 200 OK\r\n",
        b"x",
    ],
)
def test_what_follows_the_body_is_noted_and_not_read(rest):
    reader = ChunkedReader()
    assert reader.feed(b"2\r\nhi\r\n0\r\n\r\n" + rest) == b"hi"
    assert reader.complete
    assert reader.overrun


@pytest.mark.parametrize("wire", [b"2\r\nhi\r\n0\r\n\r\n", b"2\r\nhi\r\n"])
def test_a_body_that_was_read_or_given_up_leaves_nothing_to_the_garbage_collector(wire):
    reader = ChunkedReader()
    reader.feed(wire)
    heard = weakref.ref(reader._heard)
    gc.disable()
    try:
        del reader
        assert heard() is None
    finally:
        gc.enable()


def test_nothing_is_no_chunk_because_an_empty_chunk_ends_the_body():
    assert chunk(b"") == b""
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"
