"""Where nothing is enforced every byte leaves, however hostile, and the audit says what enforcing would have stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from situations import situation
from transcripts import anthropic, openai_chat, openai_responses

from agentsh_net.core.dialects.base import Judge, Limits, Step, Stream
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.framing.sse import Decoder
from agentsh_net.core.model import Action, ToolCall, Verdict

DENIED = [openai_chat.DELETE, "*delete*", "*rm*"]
WAYS = {
    "anthropic": (BY_NAME["anthropic"], anthropic),
    "openai": (BY_NAME["openai"], openai_chat),
    "openai_responses": (openai_responses.DIALECT, openai_responses),
}
LIMITS = Limits(max_frame=8192, held=6000)


def never() -> bool:
    return False


def policy(*, enforce: bool) -> Judge:
    """Return the real policy as a judge; `delete` in any name is denied."""
    snapshot = situation(["fs"], {"fs": ["delete"]}, enforce_policy=enforce, denied_tools=DENIED)
    return lambda call: snapshot.judge(call, session_id="s", charge=lambda *_: True)


def refusing(_: ToolCall) -> Verdict:
    """Judge as a policy does that began to enforce in mid-stream."""
    return Verdict(Action.BLOCK, "no")


def frames_of(package: Any) -> list[bytes]:
    frames = {frame.raw for name in package.NAMES for frame in Decoder(1 << 20).feed(package.load(name))}
    return sorted(frames)


def twice(key: bytes) -> Callable[[bytes], bytes]:
    """Return a change that writes a key a second time."""
    return lambda frame: frame.replace(b'"%b":' % key, b'"%b":null,"%b":' % (key, key), 1)


CHANGES: list[Callable[[bytes], bytes]] = [
    lambda frame: frame,
    lambda frame: frame,
    lambda frame: frame + frame,
    lambda frame: frame[: len(frame) // 2],
    lambda frame: frame.rstrip(b"\n") + b"\n",
    lambda frame: frame.replace(b"\n", b"\r\n"),
    lambda frame: frame.replace(b"get", b"delete"),
    lambda frame: frame.replace(b"_", b"\\u005f"),
    lambda frame: frame.replace(b"data: {", b"data: {\ndata: "),
    lambda frame: frame.replace(b"data: {", b"data: \xe2\x80\xa8data: {"),
    lambda frame: frame.replace(b"index", b"Index"),
    lambda frame: frame.replace(b'"index": 0', b'"index": "0"').replace(b'"index":0', b'"index":1'),
    lambda frame: frame.replace(b"{", b'{"tool":' + b"[" * 300 + b"]" * 300 + b",", 1),
    lambda frame: frame.replace(b"{", b'{"tool":"\xff",', 1),
    lambda frame: frame.replace(b"{", b'{"tool":"' + b"x" * 9000 + b'",', 1),
    lambda frame: b"data: " + frame.partition(b"data: ")[2].strip().decode("utf-8", "replace").encode("utf-16-le") + b"\n\n",
    lambda frame: frame.replace(b"data: {", b"data: {tool"),
    lambda frame: frame.partition(b"data: ")[2],
    *map(twice, (b"type", b"name", b"id", b"tool_calls", b"content_block", b"item", b"delta", b"choices")),
]  # fmt: skip
EXTRA = [
    b": tool\n\n", b"\n", b"\r\n", b"data: [DONE]\n\n", b"data\n\n", b"\xef\xbb\xbf", b"data: tool\n\n", b'event: error\ndata: {"type":"error","error":{}}\n\n',
]  # fmt: skip


def soups(package: Any) -> st.SearchStrategy[bytes]:
    changed = st.builds(
        lambda frame, change: change(frame), st.sampled_from(frames_of(package)), st.sampled_from(CHANGES)
    )
    whole = st.sampled_from([package.load(name) for name in package.NAMES])
    return st.lists(changed | changed | changed | st.sampled_from(EXTRA) | whole, max_size=10).map(b"".join)


def fed(stream: Stream, pieces: list[bytes]) -> list[Step]:
    return [*map(stream.feed, pieces), stream.finish()]


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_every_byte_of_every_stream_leaves(name: str, data: st.DataObject) -> None:
    dialect, package = WAYS[name]
    sent = data.draw(soups(package))
    cuts = data.draw(st.lists(st.integers(0, 1 << 15), max_size=6))
    judge = data.draw(st.sampled_from([policy(enforce=False), refusing]))
    watched = dialect.stream(judge, limits=LIMITS, fail_closed=False, enforce=never)
    steps = fed(watched, package.cut_at(sent, cuts))
    assert b"".join(step.out for step in steps) == sent
    assert not any(step.end for step in steps)
    assert not any(fault.cut for step in steps for fault in step.faults)
    assert not any(judged.verdict.blocked for step in steps for judged in step.judged)


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_enforcing_would_stop_is_told(name: str, data: st.DataObject) -> None:
    dialect, package = WAYS[name]
    sent = data.draw(soups(package))
    enforcing = dialect.stream(policy(enforce=True), limits=LIMITS, fail_closed=False)
    watching = dialect.stream(policy(enforce=False), limits=LIMITS, fail_closed=False, enforce=never)
    stopped, watched = fed(enforcing, [sent]), fed(watching, [sent])
    if b"".join(step.out for step in stopped) != sent:
        assert any(j.verdict.denied for step in watched for j in step.judged) or any(
            fault.would for step in watched for fault in step.faults
        )


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_verdict_that_lets_a_hostile_shape_pass_is_obeyed_even_where_verdicts_are_enforced(
    name: str, data: st.DataObject
) -> None:
    dialect, package = WAYS[name]
    sent = data.draw(soups(package))
    steps = fed(dialect.stream(policy(enforce=False), limits=LIMITS, fail_closed=False), [sent])
    if not any(fault.cut for step in steps for fault in step.faults):
        assert b"".join(step.out for step in steps) == sent


@pytest.mark.parametrize("name", WAYS)
def test_of_an_honest_stream_the_audit_tells_the_very_verdicts_that_enforcing_gives(name: str) -> None:
    dialect, package = WAYS[name]
    for transcript in package.NAMES:
        sent = package.load(transcript)
        enforcing = dialect.stream(policy(enforce=True), limits=Limits(), fail_closed=False)
        watching = dialect.stream(policy(enforce=False), limits=Limits(), fail_closed=False, enforce=never)
        enforced = [j for step in fed(enforcing, [sent]) for j in step.judged]
        watched = [j for step in fed(watching, [sent]) for j in step.judged]
        assert [j.call for j in watched] == [j.call for j in enforced]
        for one, other in zip(watched, enforced, strict=True):
            assert one.verdict == dataclasses.replace(
                other.verdict, action=Action.ALLOW, would=Action.BLOCK if other.verdict.blocked else None
            )


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_every_byte_of_every_whole_answer_leaves(name: str, data: st.DataObject) -> None:
    dialect, package = WAYS[name]
    frame = data.draw(st.sampled_from(frames_of(package)))
    for change in data.draw(st.lists(st.sampled_from(CHANGES), max_size=3)):
        frame = change(frame)
    body = frame.partition(b"data: ")[2]
    judge = data.draw(st.sampled_from([policy(enforce=False), refusing]))
    step = dialect.body(body, judge, fail_closed=False, enforce=False)
    assert (step.out, step.end) == (body, False)
    assert not any(fault.cut for fault in step.faults)
    assert not any(judged.verdict.blocked for judged in step.judged)


@pytest.mark.parametrize("name", WAYS)
def test_what_cannot_be_read_passes_too_and_is_told_as_what_fail_closed_would_stop(name: str) -> None:
    dialect, _ = WAYS[name]
    watched = dialect.stream(policy(enforce=False), limits=LIMITS, fail_closed=True, enforce=never)
    step = watched.feed(b"data: {tool\n\n")
    assert (step.out, step.end) == (b"data: {tool\n\n", False)
    assert [(fault.cut, fault.would) for fault in step.faults] == [(False, True)]
