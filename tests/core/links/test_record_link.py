"""Pieces of records survive the link however it cuts them, and what a sound worker cannot say is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links.record_link import MAX_PIECE, Kind, Piece, Reader, about, encode, read_about


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.lists(st.tuples(st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(max_size=40)), max_size=6),
    st.integers(1, 50),
)
def test_pieces_come_out_as_they_went_in_for_any_cut(sent: list[tuple[Kind, int, bytes]], size: int) -> None:
    data = b"".join(part for kind, number, payload in sent for part in encode(kind, number, payload))
    reader, found = Reader(), []
    for at in range(0, len(data), size):
        found += reader.feed(data[at : at + size])
    assert found == [Piece(*one) for one in sent]


def test_what_is_long_goes_in_several() -> None:
    payload = bytes(range(256)) * 1000
    pieces = Reader().feed(b"".join(encode(Kind.ANSWER, 7, payload)))
    assert b"".join(p.payload for p in pieces) == payload
    assert max(len(p.payload) for p in pieces) == MAX_PIECE


@pytest.mark.parametrize("data", [b"\x00" * 13, b"\x09" + b"\x00" * 12, b"\x02" + b"\x00" * 8 + b"\xff" * 4])
def test_what_is_no_piece_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Reader().feed(data)


def test_words_are_bounded_when_said_and_checked_when_heard() -> None:
    said = {"model": "m" * 5000, "path": "\ud800", "status": 200, "truncated": True}
    heard = read_about(about({k: v for k, v in said.items() if k != "path"}))
    assert (len(heard["model"]), heard["status"], heard["truncated"]) == (512, 200, True)
    assert read_about(about({"path": "\ud800"})) == {"path": "?"}
    assert read_about(b'{"status":0,"truncated":false}') == {"status": 0, "truncated": False}
    for payload in (
        b"[]",
        b"{",
        b'{"x":1}',
        b'{"status":-1}',
        b'{"status":true}',
        b'{"status":9007199254740992}',
        b'{"truncated":1}',
        b'{"note":"of a name that nobody knows"}',
        b'{"model":1}',
        b'{"model":"%s"}' % (b"m" * 600),
    ):
        with pytest.raises(ProtocolError):
            read_about(payload)
