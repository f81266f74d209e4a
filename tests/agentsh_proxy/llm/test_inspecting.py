"""A whole text is read as JSON and as events, whichever a client may take it for; what cannot be read is told."""

from __future__ import annotations

import orjson
import pytest
from agentsh_proxy.llm.inspecting import Inspection, WholeStream, read_whole, unreadable

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Action, Verdict

CALL = {"type": "tool_use", "id": "t", "name": "rm", "input": {}}
JSON = orjson.dumps({"type": "message", "role": "assistant", "content": [CALL], "stop_reason": "tool_use"})
START = {"type": "content_block_start", "index": 0, "content_block": CALL}
EVENTS = b"event: content_block_start\ndata: %b\n\ndata: %b\n\n" % (
    orjson.dumps(START), orjson.dumps({"type": "content_block_stop", "index": 0}),
)  # fmt: skip


def inspection(
    *, enforce: bool = True, fail_closed: bool = False, max_body: int = 1 << 16, notes: list | None = None
) -> Inspection:
    told = [] if notes is None else notes
    blocked = Verdict(Action.BLOCK, "no")
    return Inspection(
        dialect=BY_NAME["anthropic"], judge=lambda _: blocked, limits=Limits(), fail_closed=fail_closed,
        max_body=max_body, wants_stream=False, note=lambda step: told.extend(step.faults), enforce=lambda: enforce,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [JSON, EVENTS, b"\n" + EVENTS, b'{"a":1}\n\n' + EVENTS, b"[1,\n\n" + EVENTS, b"<p>\n\n" + EVENTS, b"foo: 1\n" + EVENTS],
    ids=["json", "events", "space first", "json first", "broken json first", "html first", "an unknown field first"],
)  # fmt: skip
def test_a_denied_call_leaves_no_text_whatever_it_is_taken_for(text):
    step = read_whole(text, inspection())
    assert b"tool_use" not in step.out.replace(b'"stop_reason":"tool_use"', b"")
    assert [j.call.name for j in step.judged] == ["rm"]
    watched = read_whole(text, inspection(enforce=False))
    assert watched.out == text
    assert [j.verdict.denied for j in watched.judged] == [True]


@pytest.mark.parametrize("text", [b'{"content": []}', b": ping\n\n", b"<html>", b"", b"\n"])
def test_a_text_without_a_call_leaves_to_the_byte(text):
    assert read_whole(text, inspection()).out == text


def test_a_whole_text_as_a_stream_leaves_once_it_was_read():
    stream = WholeStream(inspection())
    assert [stream.feed(JSON[:9]).out, stream.feed(JSON[9:]).out] == [b"", b""]
    assert not stream.holding
    step = stream.finish()
    assert b"blocked by policy" in step.out
    assert not step.end


def test_who_asked_for_a_stream_is_told_in_an_event_that_there_is_none():
    stream = WholeStream(inspection(fail_closed=True))
    stream.feed(b"{")
    step = stream.finish()
    assert step.end
    assert step.out.startswith(b"event: error\n")


@pytest.mark.parametrize("fail_closed", [True, False])
def test_a_text_over_the_bound_goes_by_fail_closed_and_is_told_once(fail_closed):
    stream = WholeStream(inspection(fail_closed=fail_closed, max_body=4))
    steps = [stream.feed(b"{123"), stream.feed(b"45"), *([] if fail_closed else [stream.feed(b"6")])]
    assert [f.cause for step in steps for f in step.faults] == ["body_too_large"]
    assert steps[1].end is fail_closed
    assert b"".join(step.out for step in steps) == (b"" if fail_closed else b"{123456")
    if not fail_closed:
        assert stream.finish() == (b"", (), (), False)


@pytest.mark.parametrize(
    ("enforce", "fail_closed", "must_cut", "cut", "would"),
    [
        (True, False, False, False, False),
        (True, False, True, True, False),
        (False, False, True, False, True),
        (True, True, False, True, False),
        (False, True, True, False, True),
        (False, True, False, False, True),
    ],
)
def test_what_cannot_be_read_is_told_and_stopped_where_it_must(enforce, fail_closed, must_cut, cut, would):
    notes: list = []
    looked = inspection(enforce=enforce, fail_closed=fail_closed, notes=notes)
    if cut:
        with pytest.raises(ProtocolError) as caught:
            unreadable(looked, "corrupt_encoding", "torn", must_cut=must_cut)
        assert caught.value.status == 502
    else:
        unreadable(looked, "corrupt_encoding", "torn", must_cut=must_cut)
    assert [(f.cause, f.cut, f.would) for f in notes] == [("corrupt_encoding", cut, would)]
