"""The dialect as the proxy sees it: every line is read by itself, a stream without a refusal leaves to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.ollama import (
    DELETE,
    WEATHER,
    answer,
    cut_at,
    denying,
    entry,
    every_chunking,
    line,
    lines,
    run,
    said,
)

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.ollama.dialect import DIALECT

PLAIN = (
    answer("Hel"), answer("lo \u2028", thinking="hm"), answer("", entry(WEATHER, {"city": "Bern"})),
    answer("", entry(WEATHER), entry("Bash", {"x": [1]})), answer("", done=True), {"error": "overloaded"},
)  # fmt: skip


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/ollama/api/chat"])
def test_its_paths_are_read(path: str) -> None:
    assert DIALECT.inspects("POST", path)
    assert not DIALECT.inspects("GET", path)
    assert not any(
        DIALECT.inspects("POST", p) for p in ("/api/tags", "/api/embed", "/api/pull", "/v1/chat/completions")
    )


@pytest.mark.parametrize(
    ("body", "stream"),
    [
        ("{}", True),
        ('{"stream":false}', False),
        ('{"stream":true}', True),
        ('{"stream":null}', True),
        ('{"Stream":false}', False),
    ],
)
def test_an_answer_streams_unless_the_request_says_no(body: str, stream: bool) -> None:
    facts = DIALECT.request(body.encode())
    assert (facts.stream, facts.fault, facts.connectors) == (stream, None, ())
    assert facts.quiet


@pytest.mark.parametrize(
    ("body", "cause"),
    [("[]", "malformed_json"), ("{", "malformed_json"), ('{"stream":1,"stream":2}', "duplicate_keys")],
)
def test_what_cannot_be_read_of_a_request_is_told_and_harmless(body: str, cause: str) -> None:
    fault = DIALECT.request(body.encode()).fault
    assert fault is not None
    assert (fault.cause, fault.cut) == (cause, False)


def test_a_stream_in_which_nothing_is_refused_leaves_to_the_byte_whatever_the_chunks() -> None:
    for stream in (lines(*PLAIN), lines(*PLAIN).replace(b"\n", b"\r\n"), lines(*PLAIN)[:-1]):
        for chunks in every_chunking(stream):
            result = run(chunks, denying(DELETE), fail_closed=True)
            assert result.out == stream
        assert [j.call.name for j in result.judged] == [WEATHER, WEATHER, "Bash"]


@given(
    st.lists(st.sampled_from(PLAIN), max_size=5), st.lists(st.integers(0, 2000), max_size=8), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_a_rewritten_stream_differs_in_its_refused_calls_alone(
    some: list[Any], cuts: list[int], enforce: bool
) -> None:
    mixed = [each for one in some for each in (one, answer("b", entry(DELETE, {"a": 1}), entry(WEATHER)))]
    result = run(cut_at(lines(*mixed), cuts), denying(DELETE), fail_closed=True, enforce=enforce)
    want = [one if one in PLAIN else answer("b\n\n" + said(DELETE), entry(WEATHER)) for one in mixed]
    assert result.out == lines(*(want if enforce else mixed))
    assert sum(j.verdict.denied for j in result.judged) == len(some)


def test_nothing_is_held() -> None:
    machine = DIALECT.stream(denying(DELETE), limits=Limits(), fail_closed=True)
    for one in PLAIN:
        assert machine.feed(line(one)).out == line(one)
        assert not machine.holding
        assert machine.keep_alive() == b""
    assert machine.finish().out == b""
    assert json.loads(machine.fail("gone")) == {"error": "gone"}


def test_a_whole_answer_is_read_like_a_line() -> None:
    value = answer("", entry(DELETE), done=True)
    step = DIALECT.body(json.dumps(value, indent=1).encode(), denying(DELETE), fail_closed=True)
    assert json.loads(step.out) == answer(said(DELETE), done=True)
    plain = json.dumps(answer("", entry(WEATHER)), indent=1).encode()
    assert DIALECT.body(plain, denying(DELETE), fail_closed=True).out == plain


@pytest.mark.parametrize("fail_closed", [False, True])
def test_a_line_that_is_no_json_and_may_be_a_call_to_some_client_is_cut(fail_closed: bool) -> None:
    bad = line("{}" + json.dumps(answer("", entry(DELETE))))
    result = run(line(answer("a")) + bad, denying(DELETE), fail_closed=fail_closed)
    assert result.ended
    assert result.out.startswith(line(answer("a")) + b'{"error":')
    assert [f.cause for f in result.faults] == ["malformed_json"]


def test_a_line_above_the_bound_goes_by_fail_closed() -> None:
    stream = line(answer("", entry(DELETE, {"x": "y" * 2000}))) + line(answer("b"))
    closed = run(stream, denying(DELETE), fail_closed=True, limits=Limits(max_frame=1000))
    assert (closed.ended, b"tool_calls" in closed.out) == (True, False)
    open_ = run(stream, denying(DELETE), limits=Limits(max_frame=1000))
    assert open_.out == stream
    assert [f.cause for f in open_.faults] == ["frame_too_long"]


def test_errors_are_ollamas() -> None:
    assert json.loads(DIALECT.error(403, "why")) == {"error": "why"}
    assert DIALECT.error_frame("why") == b'{"error":"why"}\n'


def test_its_framing_is_lines() -> None:
    framing = DIALECT.framing(1 << 20)
    assert framing is not None
    (frame,) = framing.frames.feed(b'{"a":1}\r\n')
    assert framing.write(frame, b"{}") == b"{}\r\n"
