"""A compressed body is read as the client would read it, or not at all; it never grows past its cap."""

from __future__ import annotations

import gzip
import zlib

import pytest
from agentsh_proxy.inflating import inflate_whole, inflater
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError

TEXT = b'{"content": [{"type": "text"}]}' * 20
RAW = zlib.compressobj(wbits=-15)
ENCODED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "identity": TEXT,
    "": TEXT,
}


@pytest.mark.parametrize("coding", ENCODED)
def test_every_known_coding_is_read(coding):
    assert inflate_whole(ENCODED[coding], coding, cap=1 << 20) == TEXT


def test_deflate_without_its_wrapper_is_read_as_browsers_do():
    assert inflate_whole(RAW.compress(TEXT) + RAW.flush(), "deflate", cap=1 << 20) == TEXT


@given(st.lists(st.integers(1, 30), max_size=20), st.sampled_from(["gzip", "deflate"]))
def test_any_cutting_decodes_to_the_same(cuts, coding):
    decoder, data, out = inflater(coding), ENCODED[coding], b""
    for cut in [*cuts, len(data)]:
        out += decoder.feed(data[:cut])
        data = data[cut:]
    decoder.finish()
    assert out == TEXT


def test_all_members_are_read_not_only_the_first():
    assert inflate_whole(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", cap=10) == b"ab"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress"])
def test_an_unknown_coding_is_not_guessed(coding):
    with pytest.raises(ProtocolError) as caught:
        inflater(coding)
    assert caught.value.status == 415


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
