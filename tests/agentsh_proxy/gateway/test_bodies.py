"""A changed event keeps the id that its stream is resumed by, and the answers to a batch are one batch."""

from __future__ import annotations

import json

import pytest
from agentsh_proxy.gateway.bodies import event_of, is_plain, joined, on_one_line, rewritten
from gateway_front import data_of

from agentsh_net.core.framing import sse


def test_a_rewritten_event_keeps_its_id_and_only_its_id_where_nothing_is_left() -> None:
    (frame,) = sse.Decoder(1000).feed(b"event: message\r\nid: 4\r\ndata: {}\r\n\r\n")
    assert rewritten(frame, b"[]") == b"event: message\nid: 4\ndata: []\n\n"
    assert rewritten(frame, None) == b"id: 4\n\n"
    assert data_of(rewritten(frame, b"[]")) == [b"[]"]
    assert json.loads(data_of(rewritten(frame, b"[]"))[0]) == []


def test_a_message_as_an_event_is_read_as_that_message() -> None:
    (frame,) = sse.Decoder(1000).feed(event_of(b'{"id":1}'))
    assert frame.data == b'{"id":1}'


@pytest.mark.parametrize("body", [b'[{"id":1}]', b'{"id":1}', b' [ {"id":1} ] '])
def test_errors_join_the_answers_of_their_batch(body: bytes) -> None:
    whole = joined(body, (b'{"id":2}', b'[{"id":3}]'))
    assert whole is not None and [message["id"] for message in json.loads(whole)] == [1, 2, 3]


@pytest.mark.parametrize("nothing", [None, b"", b"  "])
def test_errors_without_answers_are_the_whole_answer(nothing: bytes | None) -> None:
    assert joined(nothing, (b'{"id":2}',)) == b'{"id":2}'
    assert joined(nothing, ()) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"event: message\ndata: {}\n\n",
        b"id: 4\r\nretry: 1\r\ndata:\r\n\r\n",
        b"data: {}\r\n\r",
        b": ping - 2026-11-22 10:00:00\n\n",
        'data: {"ü":"\\u2028"}\n\n'.encode(),
        b"\n",
    ],
)
def test_an_event_as_servers_write_them_is_plain(raw: bytes) -> None:
    assert is_plain(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfdata: {}\n\n",
        "ï»¿data: {}\n\n".encode(),
        b"Data: {}\n\n",
        b" data: {}\n\n",
        b"data : {}\n\n",
        b":\x0bdata: {}\n\n",
        ": \u2028data: {}\n\n".encode(),
        'data: {"a":"\u2028"}\n\n'.encode(),
        b"id: 1\x85\xc2\x85data: {}\n\n",
        b": x\rdata: {}\n\n",
        b"data: {\ndata: }\n\n",
        "data: {}\n: ü\n\n".encode(),
    ],
)
def test_an_event_that_some_reader_reads_otherwise_is_not(raw: bytes) -> None:
    assert not is_plain(raw)


def test_what_is_written_anew_is_plain_whatever_stood_in_it() -> None:
    raw = 'id: 1\u2028data: {}\nevent: message\nData: 2\ndata: {"a":\ndata: "\u2028"}\n\n'.encode()
    (frame,) = sse.Decoder(1000).feed(raw)
    assert frame.data is not None
    anew = rewritten(frame, on_one_line(frame.data))
    assert is_plain(anew)
    assert json.loads(data_of(anew)[0]) == {"a": "\u2028"}
