"""An answer is relayed, streamed or read whole by what a client could take it for; unread compressed ones pass as they came."""

from __future__ import annotations

import gzip

import pytest
from agentsh_proxy.llm.answers import StreamInspection, WholeInspection
from agentsh_proxy.llm.choosing import choose, peeked
from agentsh_proxy.llm.deferring import Deferred
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


@pytest.mark.parametrize(
    ("label", "status", "body", "told", "passes"),
    [
        (b"text/plain", b"200 OK", b"words\n\n" + HELD, ["unknown_type", "incomplete_call"], False),
        (b"text/plain", b"500 No", b"words\n\n" + HELD, ["unknown_type"], True),
        (b"application/problem+json", b"200 OK", b"words", ["malformed_json"], True),
        (b"text/plain", b"500 No", HELD, ["incomplete_call"], False),
        (b"text/plain", b"200 OK", b'{"a": 1}', [], True),
    ],
)
def test_what_is_neither_json_nor_a_stream_is_told_of_and_read_for_calls_unless_it_is_an_error(
    label, status, body, told, passes
):
    notes: list = []
    answer = choose(head(b"Content-Type: " + label, status=status), BOTH, inspection(notes, stream=False))
    out = answer.feed(body, last=True)
    assert [fault.cause for fault in notes if hasattr(fault, "cause")] == told
    assert (body in out) is passes


def test_a_compressed_answer_is_known_by_what_it_unpacks_to():
    data = gzip.compress(TEXT + HELD)
    fields = (b"Content-Type: text/plain", b"Content-Encoding: gzip")
    notes: list = []
    out = choose(head(*fields), BOTH, inspection(notes, stream=False)).feed(data, last=True)
    assert [fault.cause for fault in notes if hasattr(fault, "cause")] == ["incomplete_call"]
    assert TEXT in out
    assert HELD not in out


@pytest.mark.parametrize(
    ("status", "kind"),
    [(b"200 OK", StreamInspection), (b"299 Odd", StreamInspection), (b"300 Many", Deferred)],
)
def test_only_an_answer_that_succeeds_is_taken_for_a_stream_by_its_head(status, kind):
    assert type(choose(head(b"Content-Type: text/event-stream", status=status), BOTH, inspection())) is kind


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
