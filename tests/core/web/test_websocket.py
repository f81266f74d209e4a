"""Frames are cut as RFC 6455 says, with every byte kept, however they come in, and what it forbids is an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web import websocket
from agentsh_net.core.web.websocket import Opcode, Reader, close, frame, masked

KEY = b"\x37\xfa\x21\x3d"


def read(data, *, masked=False, limit=1 << 20, cut=0):
    reader = Reader(masked=masked, max_message=limit)
    pieces = [data[at : at + cut] for at in range(0, len(data), cut)] if cut else [data]
    return [message for piece in pieces for message in reader.feed(piece)]


def fragment(opcode, payload, *, fin=False):
    whole = frame(Opcode.CONTINUATION if opcode is None else opcode, payload)
    return bytes((whole[0] if fin else whole[0] & 0x7F,)) + whole[1:]


def test_the_examples_of_the_rfc():
    (plain,) = read(b"\x81\x05Hello")
    assert (plain.opcode, plain.payload) == (Opcode.TEXT, b"Hello")
    (from_client,) = read(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", masked=True)
    assert from_client.payload == b"Hello"
    (joined,) = read(b"\x01\x03Hel\x80\x02lo")
    assert (joined.payload, joined.raw) == (b"Hello", b"\x01\x03Hel\x80\x02lo")
    assert frame(Opcode.TEXT, b"Hello", KEY) == b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
    assert read(b"\x89\x05Hello")[0].opcode is Opcode.PING
    assert frame(Opcode.BINARY, b"x" * 256)[:4] == b"\x82\x7e\x01\x00"
    assert frame(Opcode.BINARY, b"x" * 65536)[:10] == b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"


@given(
    st.lists(st.tuples(st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.PING]), st.binary(max_size=125)), max_size=8),
    st.integers(1, 40),
    st.booleans(),
)  # fmt: skip
def test_any_cutting_gives_the_same_messages_and_all_bytes(messages, cut, is_masked):
    data = b"".join(frame(opcode, payload, KEY if is_masked else b"") for opcode, payload in messages)
    found = read(data, masked=is_masked, cut=cut)
    assert [(m.opcode, m.payload) for m in found] == messages
    assert b"".join(m.raw for m in found) == data


@given(st.binary(max_size=70_000), st.binary(min_size=4, max_size=4))
def test_masking_undoes_itself(payload, key):
    assert masked(masked(payload, key), key) == payload
    assert masked(payload, key) == bytes(b ^ key[i % 4] for i, b in enumerate(payload))


def test_control_frames_may_stand_between_fragments():
    data = (
        fragment(Opcode.TEXT, b"a")
        + frame(Opcode.PING, b"p")
        + fragment(None, b"b")
        + fragment(None, b"c", fin=True)
    )
    found = read(data, cut=1)
    assert [(m.opcode, m.payload, m.control) for m in found] == [
        (Opcode.PING, b"p", True),
        (Opcode.TEXT, b"abc", False),
    ]


BAD = {
    "a reserved bit": b"\xc1\x00",
    "an unknown kind": b"\x83\x00",
    "masked by a server": frame(Opcode.TEXT, b"x", KEY),
    "a long control frame": b"\x89\x7e\x00\x7e" + b"x" * 126,
    "a fragmented control frame": b"\x09\x00",
    "a continuation of nothing": b"\x80\x00",
    "a message within another": fragment(Opcode.TEXT, b"a") + frame(Opcode.TEXT, b"b"),
    "a message above the bound": b"\x82\x7f" + (1 << 40).to_bytes(8, "big"),
    "fragments above the bound": fragment(Opcode.TEXT, b"a" * 600) + fragment(None, b"b" * 600),
    "endless fragments": fragment(Opcode.TEXT, b"") + fragment(None, b"") * websocket.MAX_FRAGMENTS,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_the_rfc_forbids_is_an_error(data):
    with pytest.raises(ProtocolError):
        read(data, limit=1000)


def test_a_client_must_mask():
    with pytest.raises(ProtocolError):
        read(b"\x81\x05Hello", masked=True)


def test_a_close_fits_into_a_control_frame():
    (closing,) = read(close(1008, "é" * 200))
    assert (closing.payload[:2], len(closing.payload) <= 125) == (b"\x03\xf0", True)
    closing.payload[2:].decode()


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("text", ['{"a": 1}', " [1]"])
def test_whatever_json_loads_takes_of_bytes_is_text(encoding, text):
    assert json.loads(text.encode(encoding)) is not None
    assert read(frame(Opcode.BINARY, text.encode(encoding)))[0].text


def test_other_bytes_are_none():
    assert not read(frame(Opcode.BINARY, b"\x01\x02\x03\x04\x05"))[0].text
    assert not read(frame(Opcode.BINARY, b""))[0].text
    assert read(frame(Opcode.TEXT, b"x"))[0].text
