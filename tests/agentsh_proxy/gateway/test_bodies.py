"""A changed event keeps the id that its stream is resumed by, and the answers to a batch are one batch."""

from __future__ import annotations

import json

import pytest
from agentsh_proxy.gateway.bodies import event_of, joined, rewritten
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
