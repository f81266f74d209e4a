"""A compressed body is read as the client would read it, or not at all; it never grows past its cap."""

from __future__ import annotations

import contextlib
import gzip
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from agentsh_proxy.inflating import inflate_whole, inflater, partly_known
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError

TEXT = b'{"content": [{"type": "text"}]}' * 20
RAW = zlib.compressobj(wbits=-15)
ENCODED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "br": brotli.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
    "gzip, br": brotli.compress(gzip.compress(TEXT)),
    "zstd,identity,gzip": gzip.compress(zstandard.compress(TEXT)),
    "identity, identity": TEXT,
    "identity": TEXT,
    "": TEXT,
}


@pytest.mark.parametrize("coding", ENCODED)
def test_every_known_coding_is_read(coding):
    assert inflate_whole(ENCODED[coding], coding, cap=1 << 20) == TEXT


def test_deflate_without_its_wrapper_is_read_as_browsers_do():
    assert inflate_whole(RAW.compress(TEXT) + RAW.flush(), "deflate", cap=1 << 20) == TEXT


@given(
    st.lists(st.integers(1, 30), max_size=20), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"])
)
def test_any_cutting_decodes_to_the_same(cuts, coding):
    decoder, data, out = inflater(coding), ENCODED[coding], b""
    for cut in [*cuts, len(data)]:
        out += decoder.feed(data[:cut])
        data = data[cut:]
    decoder.finish()
    assert out == TEXT


def test_all_members_are_read_not_only_the_first():
    assert inflate_whole(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", cap=10) == b"ab"


@pytest.mark.parametrize("coding", ["compress", "gzip, compress", "br,br,br,br", "BR"])
def test_an_unknown_coding_is_not_guessed(coding):
    with pytest.raises(ProtocolError) as caught:
        inflater(coding)
    assert caught.value.status == 415


def test_all_frames_of_zstd_are_read_and_what_follows_brotli_is_refused():
    assert inflate_whole(zstandard.compress(b"a") + zstandard.compress(b"b"), "zstd", cap=10) == b"ab"
    for behind in (b"junk", brotli.compress(b"b")):
        decoder = inflater("br")
        decoder.feed(brotli.compress(b"a"))
        with pytest.raises(ProtocolError):
            decoder.feed(behind)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, br"])
def test_a_body_of_another_coding_that_is_corrupt_or_cut_is_refused(coding):
    whole = ENCODED[coding]
    for data in (b"junk" * 50, whole[:-5], whole[:10] + b"\xff" * 40):
        with pytest.raises(ProtocolError):
            inflate_whole(data, coding, cap=1 << 20)
    assert inflate_whole(b"", coding, cap=10) == b""


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip", "gzip, br"])
def test_what_comes_behind_what_was_corrupt_is_refused_and_so_is_its_end(coding):
    decoder = inflater(coding)
    with pytest.raises(ProtocolError):
        decoder.feed(b"junk" * 50)
    for step in (decoder.finish, lambda: decoder.feed(b"more")):
        with contextlib.suppress(ProtocolError):  # and nothing else
            step()


BOMB = b"\0" * (64 << 20)
BOMBS = {
    "br": brotli.compress(BOMB, quality=4),
    "zstd": zstandard.compress(BOMB),
    "gzip, zstd": zstandard.compress(gzip.compress(BOMB, 1)),
    "zstd, gzip": gzip.compress(zstandard.compress(BOMB)),
    "br, br": brotli.compress(brotli.compress(BOMB, quality=4), quality=4),
}


@pytest.mark.parametrize("coding", BOMBS)
def test_no_bomb_takes_more_memory_than_its_cap_and_a_piece(coding):
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError) as caught:
            inflate_whole(BOMBS[coding], coding, cap=1 << 20)
        assert caught.value.status == 413
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_window_larger_than_any_decoder_must_have_is_refused():
    params = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    packed = zstandard.ZstdCompressor(compression_params=params).compressobj()
    data = packed.compress(b"x") + packed.flush()
    with pytest.raises(ProtocolError):
        inflate_whole(data, "zstd", cap=1 << 20)


@pytest.mark.parametrize(
    "data",
    [
        b"junk",
        gzip.compress(TEXT)[:-9],
        gzip.compress(TEXT) + b"junk",
        gzip.compress(TEXT)[:12] + b"\xff" * 40,
    ],
)
def test_a_corrupt_body_is_refused(data):
    with pytest.raises(ProtocolError):
        inflate_whole(data, "gzip", cap=1 << 20)


def test_a_bomb_stops_at_the_cap():
    with pytest.raises(ProtocolError) as caught:
        inflate_whole(gzip.compress(b"\0" * (8 << 20)), "gzip", cap=1 << 20)
    assert caught.value.status == 413
    with pytest.raises(ProtocolError):
        inflater("gzip").feed(gzip.compress(b"\0" * (20 << 20)))


@pytest.mark.parametrize(
    ("encoding", "some"),
    [("bogus", False), ("identity, x", False), ("", False), ("bogus, gzip", True), ("br, br, br, br", True)],
)
def test_codings_of_which_a_client_may_undo_some_are_told_from_those_it_skips(encoding, some):
    assert partly_known(encoding) is some
