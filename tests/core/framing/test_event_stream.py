"""What botocore reads is what was written, in any chunks; whatever fails a check or can be read in two ways is told as such."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st
from transcripts.playing import framed

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.event_stream import EventStreamDecoder, make, read, with_payload
from agentsh_net.core.framing.sse import Frame

HEADERS = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
ONE, TWO = make(HEADERS, b'{"a":1}'), make(HEADERS, b"")


def frames(data: bytes, cuts: Iterable[int] = (), max_frame: int = 1 << 20) -> list[Frame]:
    return framed(EventStreamDecoder(max_frame), data, cuts)


def by_botocore(data: bytes) -> list[tuple[dict, bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(message.headers, message.payload) for message in buffer]


NAMES = st.text(min_size=1, max_size=9)


@given(
    st.dictionaries(NAMES, st.text(max_size=20), max_size=4).filter(
        lambda h: len({k.casefold() for k in h}) == len(h)
    ),
    st.binary(max_size=60),
)
def test_botocore_reads_what_is_written_and_so_do_we(headers: dict[str, str], payload: bytes) -> None:
    raw = make(headers, payload)
    assert by_botocore(raw) == [(headers, payload)]
    assert (read(raw).headers, read(raw).payload) == (headers, payload)
    assert by_botocore(with_payload(raw, b"other")) == [(headers, b"other")]


@given(st.lists(st.sampled_from([ONE, TWO]), max_size=4), st.lists(st.integers(0, 500)), st.integers(0, 30))
def test_messages_are_cut_alike_whatever_the_chunks(
    messages: list[bytes], cuts: list[int], missing: int
) -> None:
    data = b"".join(messages)
    data = data[: max(0, len(data) - missing)]
    found = frames(data, cuts)
    assert b"".join(f.raw for f in found) == data
    assert found == frames(data)
    whole = frames(b"".join(messages))
    assert [f for f in found if not f.flaw] == whole[: len(found) - any(f.flaw for f in found)]


def test_a_frame_has_the_kind_and_the_payload_of_its_message() -> None:
    assert frames(ONE + TWO) == [Frame(ONE, "chunk", b'{"a":1}'), Frame(TWO, "chunk", None)]
    failed = make({":message-type": "exception", ":exception-type": "throttlingException"}, b"{}")
    assert frames(failed)[0].event == "!throttlingException"
    assert frames(make({":message-type": "error", ":error-code": "500"}, b"{}"))[0].event == "!500"


@pytest.mark.parametrize("kind", ["", "Event", "event ", "initial-response"])
def test_a_message_of_no_known_type_is_flawed_for_botocore_reads_it_as_an_event(kind: str) -> None:
    (frame,) = frames(make(HEADERS | {":message-type": kind}, b"{}"))
    assert frame.flaw == f"a message of the type {kind!r}"


def headers_of(block: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(block) + 2, len(block))
    message = prelude + struct.pack(">I", crc32(prelude)) + block + b"{}"
    return message + struct.pack(">I", crc32(message))


def test_headers_of_every_type_are_skipped_to_those_that_are_text() -> None:
    block = b"".join(
        b"\x01" + name + kind + value
        for name, kind, value in (
            (b"a", b"\0", b""), (b"b", b"\1", b""), (b"c", b"\2", b"x"), (b"d", b"\3", b"xx"), (b"e", b"\4", b"xxxx"),
            (b"f", b"\5", b"x" * 8), (b"g", b"\6", b"\0\3xyz"), (b"h", b"\7", b"\0\2hi"), (b"i", b"\x08", b"x" * 8), (b"j", b"\x09", b"x" * 16),
        )
    )  # fmt: skip
    raw = headers_of(block)
    assert read(raw).headers == {"h": "hi"}
    assert by_botocore(raw)[0][0]["h"] == "hi"


BAD_HEADERS = {
    "a length past the end": b"\x01a\x07\x00\x09hi",
    "a name past the end": b"\x09a",
    "an unknown type": b"\x01a\x0b",
    "the same twice": b"\x01a\x07\0\1x\x01a\x07\0\1y",
    "the same twice but for case": b"\x01a\x07\0\1x\x01A\x07\0\1y",
    "no UTF-8": b"\x01a\x07\0\1\xff",
    "a kind that is no text": b"\x0b:event-type\x06\0\5chunk",
}


@pytest.mark.parametrize("block", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_headers_that_can_be_read_in_two_ways_are_a_flaw(block: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(headers_of(block))
    (bad, good) = frames(headers_of(block) + ONE)
    assert bad.flaw
    assert good == frames(ONE)[0]


@pytest.mark.parametrize("at", range(len(ONE)))
def test_a_changed_bit_anywhere_is_a_flaw(at: int) -> None:
    data = ONE[:at] + bytes([ONE[at] ^ 1]) + ONE[at + 1 :]
    found = frames(data)
    assert found[0].flaw
    assert b"".join(f.raw for f in found) == data


@pytest.mark.parametrize(("total", "size"), [(15, 0), (0, 0), (40, 25), (40, 0xFFFFFFFF)])
def test_after_lengths_that_cannot_be_there_is_no_next_message(total: int, size: int) -> None:
    prelude = struct.pack(">II", total, size)
    data = prelude + struct.pack(">I", crc32(prelude)) + ONE + ONE
    for cuts in ([], list(range(len(data)))):
        found = frames(data, cuts)
        assert all(f.flaw for f in found)
        assert b"".join(f.raw for f in found) == data


def test_what_comes_after_lengths_that_cannot_be_is_given_out_at_once_and_nothing_is_held() -> None:
    decoder = EventStreamDecoder(1 << 20)
    bad = b"\xff" * 12
    assert [(f.raw, bool(f.flaw)) for f in decoder.feed(bad)] == [(bad, True)]
    assert [(f.raw, bool(f.flaw)) for f in decoder.feed(ONE)] == [(ONE, True)]
    assert (decoder.feed(b""), decoder.finish()) == ([], None)


def test_lengths_stand_before_a_message_and_are_its_own() -> None:
    assert read(make({}, b"")).payload == b""  # the shortest there is
    for raw in (ONE + b"\0", ONE[:-1]):
        with pytest.raises(ProtocolError, match="not as long as it says"):
            read(raw)
    for total, size in ((15, 0), (len(ONE), len(ONE) - 15)):
        prelude = struct.pack(">II", total, size)
        with pytest.raises(ProtocolError, match="lengths cannot be"):
            read(prelude + struct.pack(">I", crc32(prelude)) + ONE[12:])


def test_what_a_stream_ends_in_the_middle_of_is_told_once() -> None:
    decoder = EventStreamDecoder(100)
    assert decoder.feed(ONE[:20]) == []
    assert decoder.finish() == Frame(ONE[:20], flaw="a message without its end")
    assert decoder.finish() is None
    long = make(HEADERS, b"x" * 500)
    assert [f.oversize for f in frames(long[:-1], [5], max_frame=200)] == [True]


def test_a_message_of_just_the_bound_is_whole() -> None:
    assert frames(ONE, max_frame=len(ONE)) == frames(ONE)
    assert all(f.oversize for f in frames(ONE, max_frame=len(ONE) - 1))


def test_a_length_that_spans_another_message_is_a_flaw() -> None:
    prelude = struct.pack(">II", len(ONE) + len(TWO), 0)
    data = prelude + struct.pack(">I", crc32(prelude)) + ONE[12:] + TWO
    (found,) = frames(data)
    assert found.flaw == "the CRC of a message is wrong"


def test_what_is_too_long_comes_in_oversize_pieces_and_the_next_message_whole() -> None:
    long = make(HEADERS, b"x" * 500)
    for cuts in ([], list(range(0, 800, 7))):
        found = frames(long + ONE, cuts, max_frame=200)
        assert b"".join(f.raw for f in found) == long + ONE
        assert [f for f in found if not f.oversize] == frames(ONE)
    decoder = EventStreamDecoder(200)
    for at in range(0, len(long), 50):
        decoder.feed(long[at : at + 50])
        assert len(decoder._buffer) <= 250
