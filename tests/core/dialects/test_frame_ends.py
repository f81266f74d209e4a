"""The ends of frames are found where the decoder of events cuts them, from either side, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.frame_ends import end_of_last, end_of_next
from agentsh_net.core.framing.sse import Decoder

LINES = st.lists(st.sampled_from([b"data: x", b"\n", b"\r\n", b"event: y"]), max_size=12).map(b"".join)


@pytest.mark.parametrize(
    ("data", "last", "following"),
    [
        (b"data: a\n\n", 9, 9),
        (b"data: a\r\n\r\n", 11, 11),
        (b"data: a\n\ndata: b\n\ndata: c", 18, 9),
        (b"data: a\n\r\ndata: b\n", 10, 10),
        (b"data: a\n", 0, 8),
        (b"", 0, 0),
    ],
)
def test_the_last_end_and_the_next_one_are_found(data: bytes, last: int, following: int) -> None:
    assert end_of_last(data, 0, len(data)) == last
    assert end_of_next(data, 0) == following


def test_only_what_is_between_the_two_places_counts() -> None:
    data = b"a\n\nb\n\nc\n\n"
    assert end_of_last(data, 3, 8) == 6
    assert end_of_last(data, 6, 7) == 6


@given(LINES)
def test_up_to_the_last_end_the_decoder_holds_nothing_back(data: bytes) -> None:
    end = end_of_last(data, 0, len(data))
    cut = Decoder(1 << 16).feed(data[:end])
    assert b"".join(frame.raw for frame in cut) == data[:end]
