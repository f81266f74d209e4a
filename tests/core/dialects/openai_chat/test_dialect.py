"""A refused chat completion call leaves as text in a well-formed answer, streamed or whole; everything else leaves byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.openai_chat import (
    DELETE,
    DONE,
    NAMES,
    WEATHER,
    call,
    chunk,
    completion,
    cut_at,
    denying,
    end,
    entry,
    every_chunking,
    load,
    raw,
    refused,
    run,
    text,
)

from agentsh_net.core.dialects.base import Connector, Limits
from agentsh_net.core.dialects.openai_chat.dialect import DIALECT, MAX_CONNECTORS
from agentsh_net.core.framing.sse import Decoder
from agentsh_net.core.model import Action, ToolCall, Verdict

BEGIN = chunk({"role": "assistant", "content": None})
EMPTY_END = end().replace(b'"tool_calls"', b'"stop"')


def noticed(*names: str, first: bool = True) -> bytes:
    """Return the chunk of a refused call's first fragment as it is rewritten: spacing of the original, notice appended."""
    said = "".join(("" if first and not at else "\n") + refused(name) for at, name in enumerate(names))
    return chunk({"content": "@"}).replace(b'"content": "@"', b'"content":' + json.dumps(said).encode())


TWO = BEGIN + text("Two things.") + call(0, WEATHER, {"city": "Bern"}) + call(1, DELETE, {"path": "/x"})
CASES = {
    "single blocked": (
        BEGIN + text("I'll check.") + call(0, DELETE, {"path": "/tmp/x"}) + end() + DONE,
        BEGIN + text("I'll check.") + noticed(DELETE) + EMPTY_END + DONE,
        [DELETE],
    ),
    "single allowed": (BEGIN + call(0, WEATHER, {"city": "Bern"}) + end() + DONE,) * 2 + ([],),
    "partial": (
        TWO + end() + DONE,
        BEGIN + text("Two things.") + call(0, WEATHER, {"city": "Bern"}) + noticed(DELETE) + end() + DONE,
        [DELETE],
    ),
    "partial, the first": (
        BEGIN + call(0, DELETE) + call(1, WEATHER, {"city": "Bern"}, call_id="call_w") + end() + DONE,
        BEGIN + noticed(DELETE) + call(0, WEATHER, {"city": "Bern"}, call_id="call_w") + end() + DONE,
        [DELETE],
    ),
    "all blocked": (
        BEGIN + call(0, DELETE, {"path": "a"}) + call(1, DELETE, {"path": "b"}) + end() + DONE,
        BEGIN + noticed(DELETE) + noticed(DELETE, first=False) + EMPTY_END + DONE,
        [DELETE, DELETE],
    ),
    "unregistered": (BEGIN + call(0, "nobody_knows_it", {"a": 1}) + end() + DONE,) * 2 + ([],),
    "malformed JSON": (BEGIN + raw('{"choices":[{"delta":{"tool_calls":[{') + end("stop") + DONE,) * 2
    + ([],),
    "text only": (load("text_only"),) * 2 + ([],),
}


@pytest.mark.parametrize(("sent", "received", "blocked"), CASES.values(), ids=CASES)
def test_each_unit_case_comes_out_the_same_however_it_is_cut(
    sent: bytes, received: bytes, blocked: list[str]
) -> None:
    for chunks in every_chunking(sent):
        result = run(chunks, denying(DELETE))
        assert result.out == received
        assert result.blocked == blocked


def test_malformed_json_is_told_and_under_fail_closed_cut_with_an_error_event() -> None:
    sent, _, _ = CASES["malformed JSON"]
    told = run(sent, denying())
    assert [(f.cause, f.cut) for f in told.faults] == [("malformed_json", False)]
    for chunks in every_chunking(sent):
        cut = run(chunks, denying(), fail_closed=True)
        assert [(f.cause, f.cut) for f in cut.faults] == [("malformed_json", True)]
        assert cut.ended
        assert cut.out.startswith(BEGIN + b'data: {"error":{"message":')
        assert cut.out.endswith(DONE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_a_transcript_without_a_refusal_leaves_byte_for_byte(name: str, ending: bytes) -> None:
    sent = load(name).replace(b"\r\n", b"\n").replace(b"\n", ending)
    for chunks in every_chunking(sent):
        assert b"".join(chunks) == sent
        result = run(chunks, denying())
        assert result.out == sent
        assert not result.faults


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_with_a_refusal_comes_out_the_same_however_it_is_cut(name: str) -> None:
    sent = load(name)
    whole = run(sent, denying(DELETE))
    assert b'"' + DELETE.encode() + b'"' not in whole.out
    assert (DELETE in whole.blocked) == (name != "text_only")
    for chunks in every_chunking(sent):
        assert events(run(chunks, denying(DELETE)).out) == events(whole.out)


def events(data: bytes) -> list[tuple[str, bytes | None]]:
    """Return what a client is told; a CR LF that came in two pieces may leave an empty line more."""
    return [(frame.event, frame.data) for frame in Decoder(1 << 20).feed(data) if frame.raw.strip()]


def test_an_allowed_call_is_judged_once_with_its_whole_arguments() -> None:
    judge = denying()
    result = run(BEGIN + call(0, WEATHER, {"city": "Bern"}) + end() + DONE, judge)
    asked = ToolCall(WEATHER, "call_0", {"city": "Bern"}, dialect="openai", ordinal=1)
    assert judge.asked == [asked]
    assert [j.call for j in result.judged] == [asked]


def test_arguments_that_do_not_parse_are_judged_as_text() -> None:
    judge = denying()
    run(
        BEGIN + chunk({"tool_calls": [entry(name=WEATHER, args='{"city": ', call_id="c")]}, "stop") + DONE,
        judge,
    )
    assert [asked.input for asked in judge.asked] == ['{"city": ']


def test_the_verdict_on_arguments_at_the_very_end_still_comes_before_the_call() -> None:
    result = run(BEGIN + call(0, WEATHER, {"a": "b", "z": "evil"}) + end() + DONE, denying())
    assert result.blocked == [WEATHER]
    assert result.out == BEGIN + noticed(WEATHER) + EMPTY_END + DONE


def test_nothing_of_a_call_leaves_before_its_choice_ended() -> None:
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=False)
    assert machine.feed(BEGIN + text("a")).out == BEGIN + text("a")
    assert not machine.holding
    assert machine.feed(call(0, WEATHER) + text("b")).out == b""
    assert machine.holding
    assert machine.feed(end()).out == call(0, WEATHER) + text("b") + end()
    assert not machine.holding


# Whole answers.

TOOL_CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": WEATHER, "arguments": '{"city":"Bern"}'}},
    {"id": "call_2", "type": "function", "function": {"name": DELETE, "arguments": '{"path":"/x"}'}},
]


def test_a_whole_answer_without_a_refusal_is_the_very_bytes() -> None:
    data = completion({"content": None, "tool_calls": TOOL_CALLS})
    step = DIALECT.body(data, denying(), fail_closed=True)
    assert step.out == data
    assert [j.call.input for j in step.judged] == [{"city": "Bern"}, {"path": "/x"}]


def test_a_refused_call_of_a_whole_answer_becomes_content() -> None:
    data = completion({"content": None, "tool_calls": TOOL_CALLS})
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    expected = json.loads(data)
    expected["choices"][0]["message"] |= {"content": refused(DELETE), "tool_calls": TOOL_CALLS[:1]}
    assert json.loads(step.out) == expected
    assert step.out.startswith(data[: data.index(b'"content"')])


def test_a_whole_answer_of_refused_calls_only_stops() -> None:
    data = completion({"content": "I try.", "tool_calls": TOOL_CALLS})
    step = DIALECT.body(data, denying(DELETE, WEATHER), fail_closed=True)
    choice = json.loads(step.out)["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["message"] == {
        "role": "assistant",
        "content": f"I try.\n\n{refused(WEATHER)}\n{refused(DELETE)}",
    }


def test_a_legacy_function_call_of_a_whole_answer_is_judged() -> None:
    data = completion(
        {"content": None, "function_call": {"name": DELETE, "arguments": "{}"}}, finish="function_call"
    )
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    choice = json.loads(step.out)["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": refused(DELETE)}
    assert choice["finish_reason"] == "stop"
    assert DIALECT.body(data, denying(), fail_closed=True).out == data


def test_stored_completions_in_a_list_are_judged_each() -> None:
    items = [json.loads(completion({"content": None, "tool_calls": [c]})) for c in TOOL_CALLS]
    data = json.dumps({"object": "list", "data": items, "has_more": False}).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    first, second = json.loads(step.out)["data"]
    assert first == items[0]
    assert second["choices"][0]["message"] == {"role": "assistant", "content": refused(DELETE)}
    assert second["choices"][0]["finish_reason"] == "stop"


def test_a_whole_answer_that_cannot_be_read_follows_fail_closed() -> None:
    data = b'{"choices":[{"message":{"tool_calls":['
    passed = DIALECT.body(data, denying(), fail_closed=False)
    assert (passed.out, [(f.cause, f.cut) for f in passed.faults]) == (data, [("malformed_json", False)])
    stopped = DIALECT.body(data, denying(), fail_closed=True)
    assert [(f.cause, f.cut) for f in stopped.faults] == [("malformed_json", True)]
    assert json.loads(stopped.out)["error"]["type"] == "server_error"
    assert stopped.end


def test_a_whole_answer_with_broken_utf8_follows_fail_closed() -> None:
    data = completion({"content": None, "tool_calls": TOOL_CALLS}).replace(b"Bern", b"B\xffrn")
    passed = DIALECT.body(data, denying(), fail_closed=False)
    assert (passed.out, [f.cause for f in passed.faults]) == (data, ["invalid_utf8"])
    assert DIALECT.body(data, denying(), fail_closed=True).end
    rewritten = DIALECT.body(data, denying(DELETE), fail_closed=False).out
    assert b"B\xffrn" in rewritten
    assert b"/x" not in rewritten


def test_a_json_answer_that_cannot_hide_a_call_leaves_as_it_is() -> None:
    data = b'{"error": {"message": "502"}}'
    step = DIALECT.body(data, denying(), fail_closed=True)
    assert step.out is data
    assert not step.faults


@pytest.mark.parametrize("fail_closed", [False, True])
def test_an_answer_that_is_no_json_goes_by_fail_closed(fail_closed: bool) -> None:
    data = b"<html>502</html>"
    step = DIALECT.body(data, denying(), fail_closed=fail_closed)
    assert (step.out == data) is not fail_closed
    assert [(f.cause, f.cut) for f in step.faults] == [("malformed_json", fail_closed)]


# Requests.


def test_a_request_tells_its_stream_flag_and_its_connectors() -> None:
    tools = [
        {"type": "function", "function": {"name": "f"}},
        {"type": "mcp", "server_label": "s", "server_url": "https://s.test/mcp"},
        {"type": "MCP", "mcp": {"server_label": "t", "server_url": "https://t.test"}},
        {"type": "mcp", "connector_id": "connector_mail"},
        {"type": "connector", "connector_id": "gh"},  # Mistral's
        "odd",
    ]
    facts = DIALECT.request(json.dumps({"model": "m", "stream": True, "tools": tools}).encode())
    assert facts.stream
    assert facts.fault is None
    assert facts.connectors == (
        Connector("s", "https://s.test/mcp"),
        Connector("t", "https://t.test"),
        Connector("connector_mail", ""),
        Connector("gh", ""),
    )


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"{", "malformed_json"),
        (b"[]", "malformed_json"),
        (b'{"stream":true,"stream":false}', "duplicate_keys"),
        (b'{"stream":true,"Stream":false}', "duplicate_keys"),
        (b'{"tools":[{"type":"mcp","type":"function","server_url":"https://x.test"}]}', "duplicate_keys"),
        (
            json.dumps({"tools": [{"type": "mcp", "server_url": "u"}] * (MAX_CONNECTORS + 1)}).encode(),
            "too_many_connectors",
        ),
    ],
)
def test_a_request_that_two_readers_read_in_two_ways_is_a_fault(body: bytes, cause: str) -> None:
    fault = DIALECT.request(body).fault
    assert fault is not None
    assert fault.cause == cause


def test_a_request_without_a_body_says_nothing() -> None:
    facts = DIALECT.request(b"")
    assert (facts.stream, facts.connectors, facts.fault) == (False, (), None)


@pytest.mark.parametrize(
    ("method", "path", "inspected"),
    [
        ("POST", "/v1/chat/completions", True),
        ("POST", "/chat/completions", True),
        ("POST", "/chat/completions/", True),
        ("POST", "/openai/deployments/d/chat/completions", True),
        ("POST", "/openai/deployments/d/Chat/Completions/", True),
        ("post", "/v1/chat/completions", True),
        ("GET", "/v1/chat/completions", True),
        ("GET", "/v1/chat/completions/chatcmpl-1", True),
        ("POST", "/v1/chat/completions/chatcmpl-1", True),
        ("DELETE", "/v1/chat/completions/chatcmpl-1", False),
        ("GET", "/v1/chat/completions/chatcmpl-1/messages", True),
        ("GET", "/openai/v1/chat/completions/chatcmpl-1/messages", True),
        ("POST", "/v1/completions", True),
        ("POST", "/v1/agents/completions", True),
        ("POST", "/v1/fim/completions", True),
        ("GET", "/v1/chat/deferred-completion/req_1", True),
        ("POST", "/v1/chat/completions_old", False),
        ("POST", "/v1/embeddings", False),
    ],
)
def test_answers_of_chat_completions_are_inspected_and_no_others(
    method: str, path: str, inspected: bool
) -> None:
    assert DIALECT.inspects(method, path) is inspected


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (401, "authentication_error"), (403, "permission_error"),
     (429, "rate_limit_error"), (502, "server_error"), (504, "server_error")],
)  # fmt: skip
def test_an_error_has_openais_shape(status: int, kind: str) -> None:
    error = json.loads(DIALECT.error(status, 'no "way"'))["error"]
    assert (error["message"], error["type"], error["param"]) == ('no "way"', kind, None)
    assert set(error) == {"message", "type", "param", "code"}


# Laws.

PIECE = st.one_of(
    st.builds(text, st.text(max_size=12)),
    st.just(raw('{"choices":[],"usage":{"total_tokens":3}}')),
    st.just(b": comment\n\n"),
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    names = draw(st.lists(st.sampled_from([WEATHER, DELETE, "ls", "rm"]), max_size=4))
    out = BEGIN + b"".join(draw(st.lists(PIECE, max_size=4)))
    for index, name in enumerate(names):
        args = draw(st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=2))
        out += call(index, name, args) + (draw(PIECE) if draw(st.booleans()) else b"")
    out += end(draw(st.sampled_from(["tool_calls", "stop", "length"])))
    return out + b"".join(draw(st.lists(PIECE, max_size=2))) + DONE, names


OFFSETS = st.lists(st.integers(0, 1 << 16), max_size=8)


@given(answers(), OFFSETS)
@settings(max_examples=150, deadline=None)
def test_a_stream_without_a_refusal_leaves_byte_for_byte_under_any_chunking(
    answer: tuple[bytes, list[str]], offsets: list[int]
) -> None:
    sent, names = answer
    result = run(cut_at(sent, offsets), denying())
    assert result.out == sent
    assert [j.call.name for j in result.judged] == names


@given(answers(), OFFSETS, st.sets(st.sampled_from([WEATHER, DELETE, "ls", "rm"]), min_size=1))
@settings(max_examples=150, deadline=None)
def test_a_rewritten_stream_differs_only_inside_the_refused_calls_and_what_follows_from_them(
    answer: tuple[bytes, list[str]], offsets: list[int], denied: set[str]
) -> None:
    sent, names = answer
    result = run(cut_at(sent, offsets), denying(*denied))
    kept = [name for name in names if name not in denied]
    dense: dict[int, int] = {}
    for index, name in enumerate(names):
        if name not in denied:
            dense[index] = len(dense)
    expected, told = b"", 0
    for frame in (piece + b"\n\n" for piece in sent.split(b"\n\n")[:-1]):
        index = index_of(frame)
        if index is None:
            stops = names and not kept and b'"finish_reason": "tool_calls"' in frame
            expected += frame.replace(b'"tool_calls"', b'"stop"') if stops else frame
        elif index in dense:
            expected += frame.replace(b'[{"index": %d' % index, b'[{"index": %d' % dense[index])
        elif b'"name"' in frame:
            expected += noticed(names[index], first=not told)
            told += 1
    assert result.out == expected


def index_of(frame: bytes) -> int | None:
    """Return the index of the only call in a frame."""
    if b'"tool_calls": [' not in frame:
        return None
    return json.loads(frame[6:])["choices"][0]["delta"]["tool_calls"][0]["index"]


@given(st.binary(max_size=200), OFFSETS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_bytes_make_the_machine_raise_or_depend_on_chunks(
    noise: bytes, offsets: list[int], fail_closed: bool
) -> None:
    sent = call(0, DELETE)[:-1] + noise + call(1, WEATHER) + noise + end() + DONE
    whole = run(sent, denying(DELETE), fail_closed=fail_closed)
    cut = run(cut_at(sent, offsets), denying(DELETE), fail_closed=fail_closed)
    assert events(cut.out) == events(whole.out)
    assert cut.blocked == whole.blocked
    DIALECT.body(noise + b'"tool_calls"', denying(), fail_closed=fail_closed)
    DIALECT.request(noise)


def test_in_audit_mode_nothing_changes_whatever_the_shape() -> None:
    def audit(_: ToolCall) -> Verdict:
        return Verdict(Action.ALLOW, "audit", would=Action.BLOCK)

    for name in NAMES:
        assert run(load(name), audit, fail_closed=True).out == load(name)
