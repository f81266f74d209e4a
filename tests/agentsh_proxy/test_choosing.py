"""An answer is relayed, streamed or read whole by what a client could take it for; unread compressed ones pass as they came."""

from __future__ import annotations

import gzip

import pytest
from agentsh_proxy.answers import StreamInspection, WholeInspection
from agentsh_proxy.choosing import choose, peeked
from agentsh_proxy.deferring import Deferred
from inspected import BOTH, HELD, JSON, SSE, TEXT, head, inspection, never

from agentsh_net.core.errors import ProtocolError


def test_who_can_read_what_decides_what_becomes_of_it():
    assert isinstance(choose(SSE, BOTH, inspection()), StreamInspection)
    assert isinstance(choose(JSON, BOTH, inspection()), Deferred)
    assert isinstance(choose(JSON, BOTH, inspection(stream=False)), WholeInspection)


def test_nothing_is_sent_before_a_body_says_what_it_is():
    answer = choose(head(b"Content-Type: text/plain"), BOTH, inspection(stream=False))
    assert answer.feed(b" \r\n", last=False) == b""
    assert not answer.started
    assert answer.feed(b"data: 1\n\n", last=False).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("stream", [True, False])
def test_a_body_of_white_space_without_end_is_not_waited_for(stream):
    answer = choose(head(b"Content-Type: text/plain"), BOTH, inspection(stream=stream))
    answer.feed(b" " * 5000, last=False)
    assert answer.started


@pytest.mark.parametrize("labelled", [b"text/event-stream", b"application/json"])
def test_where_nothing_is_enforced_a_compressed_answer_passes_as_it_came_and_is_read(labelled):
    data = gzip.compress(TEXT + HELD)
    fields = [
        b"Content-Type: " + labelled,
        b"Content-Encoding: gzip",
        b"Content-Length: %d" % len(data),
        b"ETag: x",
    ]
    notes: list = []
    answer = choose(head(*fields), BOTH, inspection(notes)._replace(enforce=never))
    out = b"".join(answer.feed(data[at : at + 9], last=at + 9 >= len(data)) for at in range(0, len(data), 9))
    assert out == b"\r\n".join((b"HTTP/1.1 200 OK", *fields)) + b"\r\n\r\n" + data
    assert answer.done
    assert not answer.closing
    assert [note.cause for note in notes if hasattr(note, "cause")] == ["incomplete_call"]


@pytest.mark.parametrize("torn", [gzip.compress(TEXT)[:-3], b"no gzip"])
@pytest.mark.parametrize("fail_closed", [True, False])
def test_where_nothing_is_enforced_a_torn_one_passes_and_is_told(torn, fail_closed):
    notes: list = []
    fields = (b"Content-Type: text/event-stream", b"Content-Encoding: gzip")
    looked = inspection(notes, fail_closed=fail_closed)._replace(enforce=never)
    answer = choose(head(*fields), BOTH, looked)
    assert torn in answer.feed(torn, last=True)
    assert [(f.cause, f.cut, f.would) for f in notes] == [("corrupt_encoding", False, True)]


def test_a_look_at_the_beginning_leaves_it_to_be_read_again():
    packed = gzip.compress(TEXT)
    assert peeked(packed, head(b"Content-Encoding: gzip"), inspection()) == TEXT
    assert peeked(TEXT, SSE, inspection()) == TEXT
    notes: list = []
    with pytest.raises(ProtocolError):
        peeked(b"no gzip", head(b"Content-Encoding: gzip"), inspection(notes))
    assert [(fault.cause, fault.cut) for fault in notes] == [("corrupt_encoding", True)]
