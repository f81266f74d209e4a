"""A chunked body is read strictly in any cutting, and its end is never mistaken."""

from __future__ import annotations

import gc
import weakref

import pytest
from agentsh_proxy.chunks import LAST_CHUNK, ChunkedReader, chunk
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


@pytest.mark.parametrize("rest", [b"POST / HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n", b"x"])
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
