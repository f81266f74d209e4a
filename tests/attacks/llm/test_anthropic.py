"""No Anthropic client executes a call that was not allowed with these very arguments; an allowed call arrives intact."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import jiter
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transcripts.anthropic import (
    arguments,
    begin,
    call,
    cut_at,
    delta,
    denying,
    end,
    event,
    load,
    raw,
    run,
    start,
    stop,
    text,
)
from transcripts.anthropic.clients import ASK, by_beta_sdk, by_sdk, everyone, models, sdk

from agentsh_net.core.dialects.anthropic.dialect import DIALECT
from agentsh_net.core.dialects.anthropic.stream import AnthropicMachine
from agentsh_net.core.dialects.base import Judged, Limits
from agentsh_net.core.dialects.inspection import Inspector

GOOD, BAD = "mcp__weather__get", "mcp__fs__delete"
CUTS = st.lists(st.integers(0, 10**6), max_size=8)


def assert_only_allowed(executed: dict[str, list[tuple[str, Any]]], judged: list[Judged]) -> None:
    """Every executed call was allowed with its arguments, or lost them (some parsers find no block for them)."""
    allowed = [j.call for j in judged if not j.verdict.blocked]
    for client, calls in executed.items():
        for name, value in calls:
            assert name != BAD, client
            assert "evil" not in json.dumps(value), client
            assert any(
                name == other.name and value in ({}, None, other.input, as_completed(other.input))
                for other in allowed
            ), f"{client} executed {name} with {value!r}; allowed: {[(c.name, c.input) for c in allowed]}"


def as_completed(value: Any) -> Any:
    """Return arguments that were cut short as the SDK completes them."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return jiter.from_json(value.encode(), partial_mode=True)
    return value


# ---- well-formed answers, through the SDK ----

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=8), max_size=3)
BLOCKS = st.lists(st.tuples(st.sampled_from([GOOD, BAD, "text"]), ARGUMENTS), max_size=4)


def stream_of(blocks: list[tuple[str, Any]]) -> bytes:
    return (
        begin()
        + b"".join(
            text(at, "hello ") if name == "text" else call(at, name, value)
            for at, (name, value) in enumerate(blocks)
        )
        + end()
    )


@settings(max_examples=60)
@given(BLOCKS, CUTS, CUTS)
def test_the_sdk_hands_out_allowed_calls_intact_and_denied_ones_never(
    blocks: list[tuple[str, Any]], cuts: list[int], more_cuts: list[int]
) -> None:
    result = run(cut_at(stream_of(blocks), cuts), lambda c: denying(BAD)(c.__class__(name=c.name)))
    with sdk(cut_at(result.out, more_cuts)).messages.stream(**ASK) as stream:
        message = stream.get_final_message()
    assert [(b.name, b.input) for b in message.content if b.type == "tool_use"] == [
        b for b in blocks if b[0] == GOOD
    ]
    assert len(message.content) == len(blocks)
    names = {name for name, _ in blocks}
    assert message.stop_reason == ("end_turn" if BAD in names and GOOD not in names else "tool_use")
    for block, (name, _) in zip(message.content, blocks, strict=True):
        if name == BAD:
            assert block.type == "text"
            assert block.text == f"[agentsh] Tool '{BAD}' blocked by policy: denied"


@settings(max_examples=60)
@given(BLOCKS, CUTS)
def test_the_sdk_reads_a_whole_answer_in_the_same_way(blocks: list[tuple[str, Any]], cuts: list[int]) -> None:
    content = [
        {"type": "text", "text": "hello "}
        if name == "text"
        else {"type": "tool_use", "id": f"t{at}", "name": name, "input": value}
        for at, (name, value) in enumerate(blocks)
    ]
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    data = json.dumps(message).encode()
    step = DIALECT.body(data, lambda c: denying(BAD)(c.__class__(name=c.name)), fail_closed=True)
    answer = sdk(cut_at(step.out, cuts), "application/json").messages.create(**ASK)
    assert [(b.name, b.input) for b in answer.content if b.type == "tool_use"] == [
        b for b in blocks if b[0] == GOOD
    ]
    assert len(answer.content) == len(blocks)


def test_the_sdk_raises_the_error_of_a_cut_stream() -> None:
    result = run(begin() + raw("x", "{tool"), denying(), fail_closed=True)
    with pytest.raises(Exception, match="malformed_json"), sdk([result.out]).messages.stream(**ASK) as stream:
        stream.get_final_message()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529])
def test_the_sdk_reads_our_errors(status: int) -> None:
    client = sdk([DIALECT.error(status, "blocked by agentsh-net")], "application/json", status)
    with pytest.raises(Exception, match="blocked by agentsh-net") as raised:
        client.messages.create(**ASK)
    assert raised.value.status_code == status  # type: ignore[attr-defined]


def test_the_beta_sdk_never_sees_a_denied_call_of_the_providers_own() -> None:
    assert by_beta_sdk([load("provider_mcp")]) == [("echo", {"x": 1})] * 2
    assert by_beta_sdk([run(load("provider_mcp"), denying("echo")).out]) == []


def test_the_clients_here_do_execute_what_is_not_stopped() -> None:
    sent = begin() + call(0, BAD, {"a": 1}) + end()
    for client, executed in everyone([sent]).items():
        assert (BAD, {"a": 1}) in executed, client


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_no_encoding_brings_the_sdk_a_denied_call_in_a_whole_answer(encoding: str) -> None:
    block = {"type": "tool_use", "id": "t", "name": BAD, "input": {}}
    data = json.dumps({"type": "message", "role": "assistant", "content": [block]}).encode(encoding)
    assert sdk([data], "application/json").messages.create(**ASK).content[0].type == "tool_use"
    answer = DIALECT.body(data, denying(BAD), fail_closed=False).out
    content = getattr(sdk([answer], "application/json").messages.create(**ASK), "content", None) or []
    assert [block for block in content if block.type == "tool_use"] == []


# How a stream may be spelled by the WHATWG rules, and how some clients' parsers like it or not.
SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "CR": lambda data: data.replace(b"\n", b"\r"),
    "no space": lambda data: data.replace(b": {", b":{", 10**6).replace(b"event: ", b"event:"),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "data before event": lambda data: re.sub(rb"(event: .*\n)(data: .*\n)", rb"\2\1", data),
    "data of several lines": lambda data: data.replace(b', "', b',\ndata: "'),
    "comments between": lambda data: data.replace(b"data: ", b": tool\n:\ndata: "),
    "ids and retries": lambda data: data.replace(b"event: ", b"id: 7\nretry: 5\nunknown\nevent: "),
    "many blank lines": lambda data: data.replace(b"\n\n", b"\n\n\n\r\n\r"),
    "no event lines": lambda data: re.sub(rb"event: .*\n", b"", data),
    "no last blank line": lambda data: data.removesuffix(b"\n"),
    "escapes": lambda data: data.replace(b"tool", b"t\\u006fol").replace(
        b"content_block", b"content\\u005fblock"
    ),
    "spaces": lambda data: data.replace(b'"type": ', b' "type"\t :  ').replace(b'"name": ', b'"name" : '),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_of_a_stream_brings_anyone_a_denied_call(spelling: Callable[[bytes], bytes]) -> None:
    sent = spelling(begin() + text(0, "hello") + call(1, BAD, {"a": 1}) + call(2, GOOD, {"a": 2}) + end())
    unstopped = everyone([sent])
    assert any((BAD, {"a": 1}) in executed for executed in unstopped.values())
    result = run([sent[at : at + 1] for at in range(len(sent))], denying(BAD))
    assert result.blocked == [BAD]
    for client, executed in everyone([result.out]).items():
        assert (BAD, {"a": 1}) not in executed
        assert ((GOOD, {"a": 2}) in executed) is ((GOOD, {"a": 2}) in unstopped[client]), client


# ---- hostile answers, through every kind of client ----

INDICES: list[Any] = [0, 1, 2, 3, -1, "1", True, None, 1.0]
PARTS = ["", "{}", '{"a":', "1}", '{"a":1}', '{"a":"evil"}', '"evil"}', ',"b":"evil"}']


def raw_start(block: str, index: str = "1") -> bytes:
    return raw(
        "content_block_start", f'{{"type":"content_block_start","index":{index},"content_block":{block}}}'
    )


def blocks_at(index: Any) -> list[bytes]:
    tool = {"type": "tool_use", "id": "t", "input": {}}
    return [
        start(index, name=GOOD, **tool),
        start(index, name=BAD, **tool),
        start(index, name=GOOD, **(tool | {"input": {"a": "evil"}})),
        start(index, name=GOOD, **(tool | {"input": {"a": 1}})),
        start(index, name=BAD, **(tool | {"type": ["tool_use"]})),
        start(index, name=[BAD], **tool),
        start(index, type="text", text=""),
        start(index, type="server_tool_use", id="s", name="web_search", input={}),
        start(index, type="mcp_tool_use", id="p", name=BAD, server_name="s", input={}),
    ]


TWICE = [
    raw_start(f'{{"type":"tool_use","id":"t","name":"{GOOD}","name":"{BAD}","input":{{}}}}'),
    raw_start(f'{{"type":"tool_use","id":"t","name":"{BAD}","name":"{GOOD}","input":{{}}}}'),
    raw_start(f'{{"type":"text","type":"tool_use","id":"t","name":"{BAD}","input":{{}}}}'),
    raw_start(f'{{"type":"tool_use","type":"text","id":"t","name":"{BAD}","input":{{}}}}'),
    raw_start(f'{{"Type":"tool_use","id":"t","Name":"{BAD}","input":{{}}}}'),
    raw_start(f'{{"type":"tool_use","id":"t","name":"{GOOD}","NAME":"{BAD}","input":{{}}}}'),
    raw_start(f'{{"type":"tool_use","id":"t","name":"{GOOD}","input":{{}},"input":{{"a":"evil"}}}}'),
    raw_start(f'{{"type":"tool_use","name":"{BAD}"}},"content_block":{{"type":"text","text":""}}'.removesuffix("}") + "}"),
    raw("ping", f'{{"type":"content_block_start","index":1,"content_block":{{"type":"tool_use","name":"{BAD}"}}}}'),
    raw("content_block_start", f'{{"type":"ping","index":1,"content_block":{{"type":"tool_use","name":"{BAD}"}}}}'),
    raw("content_block_start", f'{{"index":1,"content_block":{{"type":"tool_use","name":"{BAD}"}}}}'),
    raw("content_block_delta", '{"type":"ping","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":\\"evil\\"}"}}'),
    raw("x", '{"type":"content_block_delta","index":0,"index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":\\"evil\\"}"}}'),
    raw("x", '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"},"Delta":{"type":"input_json_delta","partial_json":"{\\"a\\":\\"evil\\"}"}}'),
    raw("x", '{"type":"content_block_stop","index":1,"index":0}'),
]  # fmt: skip
POOL = [
    *(frame for index in INDICES for frame in blocks_at(index)),
    *(arguments(index, part) for index in INDICES for part in PARTS),
    *(stop(index) for index in INDICES),
    *TWICE,
    *(call(index, name, {"a": 1}) for index in range(4) for name in (GOOD, BAD)),
    *(call(index, GOOD, {"a": "evil"}) for index in range(4)),
    *(text(index, "tool") for index in range(3)),
    delta(1, type="text_delta", text="x"),
    delta(1, type="text_delta", text="x", partial_json='{"a":"evil"}'),
    begin(),
    begin({"type": "tool_use", "id": "t", "name": BAD, "input": {}}),
    begin({"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": GOOD, "input": {"a": 1}}),
    raw("message_start", f'{{"type":"message_start","message":{{"content":[{{"type":"tool_use","name":"{BAD}"}}],"content":[]}}}}'),
    event("message_delta", delta={"stop_reason": "tool_use"}),
    end("end_turn"),
    end(),
    event("ping"),
    event("error", error={"type": "api_error", "message": "x"}),
    raw("content_block_start", '{"type":"content_block_start",'),
    b": comment\n\n",
]  # fmt: skip
SOUP = st.lists(st.sampled_from(POOL), max_size=14)


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from([b"", begin()]), SOUP, st.booleans())
def test_no_model_of_a_client_executes_what_was_not_allowed(
    head: bytes, soup: list[bytes], fail_closed: bool
) -> None:
    result = run(head + b"".join(soup), denying(BAD), fail_closed=fail_closed)
    assert_only_allowed(models(result.out), result.judged)


@settings(max_examples=250, deadline=None)
@given(SOUP, CUTS)
@example(
    [
        text(0, "a"),
        start(5, type="tool_use", id="t", name=GOOD, input={"a": 1}),
        stop(5),
        start(1, type="server_tool_use", id="s", name="web_search", input={}),
        arguments(1, '{"a":"evil"}'),
    ],
    [],
)
@example([call(0, GOOD, {"a": 1}), arguments(-1, '{"a":"evil"}')], [])
@example([call(0, GOOD, {"a": 1}), text(1, "x"), arguments("0", '{"a":"evil"}')], [])
@example(
    [
        call(0, GOOD, {"a": 1}),
        begin(),
        start(0, type="server_tool_use", id="s", name="web_search", input={}),
        arguments(0, '{"a":"evil"}'),
    ],
    [],
)
@example(
    [
        arguments(0, '{"a":"evil",'),
        start(0, type="tool_use", id="t", name=GOOD, input={}),
        arguments(0, '"b":1}'),
        stop(0),
    ],
    [],
)
def test_the_sdk_executes_nothing_that_was_not_allowed(soup: list[bytes], cuts: list[int]) -> None:
    result = run(cut_at(begin() + b"".join(soup), cuts), denying(BAD))
    executed = {"the SDK": by_sdk([result.out]), "the SDK's beta": by_beta_sdk([result.out])}
    assert_only_allowed(executed, result.judged)


@settings(max_examples=300, deadline=None)
@given(SOUP, CUTS)
def test_hostile_answers_come_out_the_same_however_they_are_cut(soup: list[bytes], cuts: list[int]) -> None:
    data = begin() + b"".join(soup)
    whole, pieces = run(data, denying(BAD)), run(cut_at(data, cuts), denying(BAD))
    assert pieces.out == whole.out
    assert pieces.judged == whole.judged
    assert pieces.faults == whole.faults


@settings(max_examples=300, deadline=None)
@given(SOUP, CUTS)
def test_the_fast_path_changes_nothing(soup: list[bytes], cuts: list[int]) -> None:
    chunks = cut_at(begin() + b"".join(soup), cuts)
    slow = Inspector(
        lambda: AnthropicMachine(denying(BAD), Limits()),
        limits=Limits(),
        fail_closed=False,
        error_frame=DIALECT.error_frame,
        fast=False,
    )
    assert run(chunks, denying(BAD)) == run(chunks, denying(BAD), stream=slow)


@settings(max_examples=300, deadline=None)
@given(SOUP)
def test_a_denied_call_in_hostile_company_never_leaves(soup: list[bytes]) -> None:
    result = run(begin() + b"".join(soup), denying(BAD))
    for line in result.out.splitlines():
        ours = b"blocked by policy" in line or b"response cut by" in line
        assert line.startswith(b"data: ") is False or BAD.encode() not in line or ours
