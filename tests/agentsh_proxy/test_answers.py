"""An answer is streamed or read whole by what a client could take it for, and every end of it is honest."""

from __future__ import annotations

import gzip

import orjson
import pytest
from agentsh_proxy.answers import StreamInspection, Undecided, WholeInspection, choose
from agentsh_proxy.inspecting import Inspection
from agentsh_proxy.relaying import Client

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.http_head import parse_response
from agentsh_net.core.model import Action, Verdict

BOTH = Client(chunks=True, keep_alive=True)
OLD = Client(chunks=False, keep_alive=False)
TEXT = b'event: ping\ndata: {"type": "ping"}\n\n'
START = orjson.dumps(
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "x", "input": {}},
    }
)
HELD = b"event: content_block_start\ndata: " + START + b"\n\n"


def inspection(
    notes: list | None = None, *, stream: bool = True, fail_closed: bool = False, max_body: int = 1 << 20
) -> Inspection:
    notes = [] if notes is None else notes
    return Inspection(
        dialect=BY_NAME["anthropic"], judge=lambda _: Verdict(Action.BLOCK, "no"), limits=Limits(), fail_closed=fail_closed,
        max_body=max_body, wants_stream=stream, note=lambda step: notes.extend((*step.judged, *step.faults)),
    )  # fmt: skip


def head(*fields: bytes, status: bytes = b"200 OK"):
    return parse_response(b"\r\n".join([b"HTTP/1.1 " + status, *fields]) + b"\r\n\r\n")


SSE = head(b"Content-Type: text/event-stream", b"Transfer-Encoding: chunked")
JSON = head(b"Content-Type: application/json", b"Content-Length: 2")


def test_who_can_read_what_decides_what_becomes_of_it():
    assert isinstance(choose(SSE, BOTH, inspection()), StreamInspection)
    assert isinstance(choose(JSON, BOTH, inspection()), Undecided)
    assert isinstance(choose(JSON, BOTH, inspection(stream=False)), WholeInspection)


def test_a_stream_that_breaks_ends_with_an_error_after_what_was_whole():
    answer = choose(SSE, BOTH, inspection())
    answer.feed(TEXT + HELD, last=False)
    last = answer.fail("gone")
    assert b"event: error" in last
    assert last.endswith(b"0\r\n\r\n")
    assert b"tool_use" not in last


def test_a_comment_is_sent_only_while_a_call_is_held():
    answer = choose(SSE, BOTH, inspection())
    answer.feed(TEXT, last=False)
    assert answer.keep_alive() == b""
    answer.feed(HELD, last=False)
    assert answer.keep_alive() == b"4\r\n: \n\n\r\n"


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


def test_a_json_answer_over_the_bound_goes_by_fail_closed():
    notes: list = []
    with pytest.raises(ProtocolError):
        choose(JSON, BOTH, inspection(notes, fail_closed=True, max_body=8)).feed(b"{" + b" " * 20, last=False)
    assert [(f.cause, f.cut) for f in notes] == [("body_too_large", True)]
    answer = choose(JSON, BOTH, inspection(notes, max_body=8))
    assert answer.feed(b"{" + b" " * 20, last=False).endswith(b"{" + b" " * 20)
    assert answer.feed(b"}", last=True) == b"}"
    assert notes[-1].cut is False


def test_a_compressed_answer_that_breaks_off_is_never_passed_as_whole():
    data = gzip.compress(TEXT * 50)
    notes: list = []
    answer = choose(
        head(b"Content-Type: text/event-stream", b"Content-Encoding: gzip"), BOTH, inspection(notes)
    )
    answer.feed(data[:20], last=False)
    with pytest.raises(ProtocolError):
        answer.feed(data[20:-12], last=True)
    assert [(f.cause, f.cut) for f in notes] == [("corrupt_encoding", True)]


def never() -> bool:
    return False


def test_where_nothing_is_enforced_a_call_is_not_held():
    answer = choose(SSE, BOTH, inspection()._replace(enforce=never))
    assert answer.feed(TEXT + HELD, last=False).endswith(b"%x\r\n%b\r\n" % (len(TEXT + HELD), TEXT + HELD))
    assert answer.keep_alive() == b""


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


def test_a_policy_that_begins_to_enforce_bites_in_mid_stream():
    enforced = False
    answer = choose(SSE, BOTH, inspection()._replace(enforce=lambda: enforced))
    assert TEXT in answer.feed(TEXT, last=False)
    enforced = True
    assert answer.feed(HELD, last=False) == b""
    assert answer.keep_alive() != b""
