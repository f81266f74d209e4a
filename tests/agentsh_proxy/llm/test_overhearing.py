"""An answer that nobody reads passes to the byte; one that speaks of a call is told of once, and stopped under fail_closed."""

from __future__ import annotations

import gzip

import pytest
from agentsh_proxy.llm.overhearing import Overhearing, overheard
from agentsh_proxy.llm.relaying import Client

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import parse_response

CALL = b'{"text": "a", "message": {"tool_calls": [{"id": "c"}]}}'
BOTH = Client(chunks=True, keep_alive=True)


def listened(*fields: bytes, fail_closed: bool = False, enforce: bool = True, length: int | None = len(CALL)):
    lines = [b"HTTP/1.1 200 OK", *fields]
    lines += [b"Content-Length: %d" % length] if length is not None else [b"Transfer-Encoding: chunked"]
    notes: list = []
    head = parse_response(b"\r\n".join(lines) + b"\r\n\r\n")
    overhearing = Overhearing(fail_closed, lambda: enforce, lambda step: notes.extend(step.faults))
    return overheard(head, BOTH, overhearing), notes


def body(out: bytes) -> bytes:
    return out.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("size", [1, 10, 100])
@pytest.mark.parametrize(("fail_closed", "enforce", "would"), [(False, True, False), (True, False, True)])
def test_it_is_told_once_and_passes_where_nothing_says_to_stop(
    size: int, *, fail_closed: bool, enforce: bool, would: bool
):
    answer, notes = listened(b"Content-Type: application/json", fail_closed=fail_closed, enforce=enforce)
    sent = CALL
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    out = b"".join(answer.feed(piece, last=at == len(pieces) - 1) for at, piece in enumerate(pieces))
    assert body(out) == CALL
    assert answer.done
    assert [(f.cause, f.cut, f.would) for f in notes] == [("unread_call", False, would)]


def test_under_fail_closed_nothing_leaves_where_it_came_at_once_and_no_whole_sign_where_it_came_in_pieces():
    answer, notes = listened(fail_closed=True)
    with pytest.raises(ProtocolError, match="speaks of a call") as caught:
        answer.feed(CALL, last=True)
    assert (caught.value.status, answer.started) == (502, False)
    assert [f.cut for f in notes] == [True]
    answer, _ = listened(fail_closed=True, length=None)
    left = answer.feed(CALL[:30], last=False)
    with pytest.raises(ProtocolError):
        answer.feed(CALL[30:], last=True)
    assert (answer.started, answer.fail("x"), answer.closing, answer.done) == (True, b"", True, False)
    assert b"tool_calls" not in left


def test_a_compressed_answer_is_heard_and_passes_compressed():
    packed = gzip.compress(CALL)
    answer, notes = listened(b"Content-Encoding: gzip", length=len(packed))
    out = answer.feed(packed[:20], last=False) + answer.feed(packed[20:], last=True)
    assert body(out) == packed
    assert b"Content-Encoding: gzip" in out
    assert [f.cause for f in notes] == ["unread_call"]


def test_a_coding_that_most_clients_skip_is_skipped():
    answer, notes = listened(b"Content-Encoding: x-none")
    assert body(answer.feed(CALL, last=True)) == CALL
    assert [f.cause for f in notes] == ["unread_call"]


def test_what_cannot_be_decoded_or_is_no_text_passes_unheard():
    for field in (b"Content-Encoding: gzip", b"Content-Type: image/png"):
        answer, notes = listened(field, fail_closed=True)
        assert body(answer.feed(CALL, last=True)) == CALL
        assert (notes, answer.keep_alive()) == ([], b"")
