"""An inspected answer holds what is refused, keeps the client patient meanwhile, and every end of it is honest."""

from __future__ import annotations

import gzip

import pytest
from agentsh_proxy.llm.choosing import choose
from inspected import BOTH, HELD, JSON, SSE, TEXT, head, inspection, never

from agentsh_net.core.errors import ProtocolError


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


def test_where_nothing_is_enforced_a_call_is_not_held():
    answer = choose(SSE, BOTH, inspection()._replace(enforce=never))
    assert answer.feed(TEXT + HELD, last=False).endswith(b"%x\r\n%b\r\n" % (len(TEXT + HELD), TEXT + HELD))
    assert answer.keep_alive() == b""


def test_a_policy_that_begins_to_enforce_bites_in_mid_stream():
    enforced = False
    answer = choose(SSE, BOTH, inspection()._replace(enforce=lambda: enforced))
    assert TEXT in answer.feed(TEXT, last=False)
    enforced = True
    assert answer.feed(HELD, last=False) == b""
    assert answer.keep_alive() != b""
