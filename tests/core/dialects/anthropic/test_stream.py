"""No order, shape or disguise of events makes the machine release a call unjudged, or a judged one with other arguments."""

from __future__ import annotations

import json

import pytest
from transcripts.anthropic import (
    arguments,
    begin,
    call,
    delta,
    denying,
    end,
    event,
    load,
    raw,
    refused,
    run,
    start,
    stop,
    text,
)

from agentsh_net.core.dialects.anthropic.dialect import DIALECT
from agentsh_net.core.dialects.base import Limits

GOOD, BAD = "mcp__weather__get", "mcp__fs__delete"
BLOCK = {"type": "tool_use", "id": "t", "input": {}}
LATE = "a call after the end of the message"


def test_a_call_is_judged_once_with_its_complete_arguments() -> None:
    judge = denying()
    run(begin() + call(0, GOOD, {"city": "Zürich", "n": [1, 2]}, call_id="toolu_9") + end(), judge)
    assert [(c.name, c.call_id, c.input, c.dialect) for c in judge.asked] == [
        (GOOD, "toolu_9", {"city": "Zürich", "n": [1, 2]}, "anthropic")
    ]


def test_arguments_that_do_not_parse_reach_the_judge_as_text() -> None:
    judge = denying()
    sent = begin() + start(0, name=GOOD, **BLOCK) + arguments(0, '{"city": "Zür') + stop(0) + end()
    assert run(sent, judge).out == sent
    assert judge.asked[0].input == '{"city": "Zür'


def test_arguments_with_a_key_twice_reach_the_judge_as_text() -> None:
    judge = denying()
    run(
        begin() + start(0, name=GOOD, **BLOCK) + arguments(0, '{"p":"a","p":"evil"}') + stop(0) + end(), judge
    )
    assert judge.asked[0].input == '{"p":"a","p":"evil"}'


def test_an_input_that_stands_in_the_start_is_judged() -> None:
    sent = begin() + start(0, type="tool_use", id="t", name=GOOD, input={"p": "evil"}) + stop(0) + end()
    assert run(sent, denying()).blocked == [GOOD]


@pytest.mark.parametrize("name", [GOOD, BAD])
def test_arguments_in_an_oversize_event_are_in_doubt_and_pass_only_where_the_call_does(name: str) -> None:
    sent = (
        begin()
        + start(0, name=name, **BLOCK)
        + arguments(0, '{"a":"' + "x" * 3000)
        + arguments(0, '"}')
        + stop(0)
    )
    judge = denying(BAD)
    result = run(sent, judge, limits=Limits(max_frame=1000))
    assert [(c.name, c.doubt) for c in judge.asked] == [(name, "an event outgrew proxy.max_frame")]
    assert (result.out == sent) is (name == GOOD) is not result.ended
    assert (b"xxx" in result.out) is (name == GOOD)


def test_nothing_of_a_call_leaves_before_its_verdict_and_what_follows_waits_for_it() -> None:
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=False)
    sent = (
        start(1, name=GOOD, **BLOCK)
        + arguments(1, "{}")
        + event("ping")
        + delta(0, type="text_delta", text="x")
    )
    assert machine.feed(begin()).out == begin()
    assert not machine.holding
    assert machine.feed(sent).out == b""
    assert machine.holding
    assert machine.feed(stop(1)).out == sent + stop(1)
    assert not machine.holding


def test_interleaved_calls_each_get_their_own_verdict() -> None:
    good, bad = start(0, name=GOOD, **BLOCK), start(1, name=BAD, **BLOCK)
    sent = good + bad + arguments(1, '{"a":1}') + arguments(0, '{"b":2}') + stop(1) + event("ping") + stop(0)
    judge = denying(BAD)
    result = run(begin() + sent + end(), judge)
    assert result.out == (
        begin() + good + refused(1, BAD) + arguments(0, '{"b":2}') + event("ping") + stop(0) + end()
    )
    assert {c.name: c.input for c in judge.asked} == {BAD: {"a": 1}, GOOD: {"b": 2}}


def test_the_servers_own_tools_are_neither_judged_nor_touched() -> None:
    judge = denying("web_search")
    assert run(load("server_tool"), judge).out == load("server_tool")
    assert not judge.asked


def test_what_only_claims_to_be_the_servers_own_tool_is_judged() -> None:
    """LiteLLM hands a block of that type to its caller as any other call."""
    sent = start(0, type="server_tool_use", id="s", name=BAD, input={}) + arguments(0, '{"a":1}') + stop(0)
    result = run(begin() + sent + call(1, GOOD, {"a": 2}) + end(), denying(BAD))
    assert result.out == begin() + refused(0, BAD) + call(1, GOOD, {"a": 2}) + end()
    assert [(j.call.name, j.call.input) for j in result.judged] == [(BAD, {"a": 1}), (GOOD, {"a": 2})]


def test_a_call_that_the_provider_ran_names_its_server_and_takes_its_result_with_it() -> None:
    judge = denying("echo")
    result = run(load("provider_mcp"), judge)
    assert [(c.name, c.server_name) for c in judge.asked] == [("echo", "example")]
    assert b"secret" not in result.out
    assert b"mcp_tool" not in result.out
    assert result.out.count(b"blocked by policy") == 2
    assert result.out.endswith(text(2, "Done.") + end("end_turn"))


def test_a_call_the_provider_ran_has_no_part_in_the_stop_reason() -> None:
    sent = begin() + call(0, "echo", kind="mcp_tool_use", server_name="s") + end("tool_use")
    assert run(sent, denying("echo")).out == begin() + refused(0, "echo") + end("tool_use")


@pytest.mark.parametrize("name", ["", "a\u200bb", "\uff52\uff4d", "rm ", "\ud800"])
def test_a_name_goes_to_the_judge_as_it_is(name: str) -> None:
    judge = denying()
    sent = begin() + call(0, name) + end()
    assert run(sent, judge).out == sent
    assert [c.name for c in judge.asked] == [name]


# What the machine calls flawed, because two parsers read it differently.
HOSTILE = {
    "name twice": raw("content_block_start", f'{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"t","name":"{BAD}","name":"{GOOD}","input":{{}}}}}}'),
    "type twice": raw("content_block_start", f'{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","type":"text","id":"t","name":"{BAD}"}}}}'),
    "block twice": raw("content_block_start", f'{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","name":"{BAD}"}},"content_block":{{"type":"text","text":"tool"}}}}'),
    "event type twice": raw("ping", f'{{"type":"content_block_start","type":"ping","index":0,"content_block":{{"type":"tool_use","name":"{BAD}"}}}}'),
    "block twice but for case": raw("content_block_start", f'{{"type":"content_block_start","index":0,"Content_Block":{{"type":"tool_use","name":"{BAD}"}},"content_block":{{"type":"text","text":""}}}}'),
    "name missing": start(0, **BLOCK),
    "name a list": start(0, name=[BAD], **BLOCK),
    "type a list": start(0, type=["tool_use"], id="t", name=BAD, input={}),
    "type missing": start(0, id="t", name=BAD, input={}),
    "index missing": event("content_block_start", content_block={"name": BAD, **BLOCK}),
    "index a string": start("0", name=BAD, **BLOCK),
    "index negative": start(-1, name=BAD, **BLOCK),
    "index a boolean": start(True, name=BAD, **BLOCK),
    "two carriers": event("content_block_start", index=0, content_block={"name": GOOD, **BLOCK}, delta={"type": "input_json_delta", "partial_json": "{}"}),
}  # fmt: skip


@pytest.mark.parametrize("frame", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("fail_closed", [False, True])
def test_a_call_that_parsers_read_differently_is_judged_by_its_flaw(
    frame: bytes, *, fail_closed: bool
) -> None:
    judge = denying()
    result = run(begin() + frame + stop(0) + end(), judge, fail_closed=fail_closed)
    assert [bool(c.flaw) for c in judge.asked] == [True]
    assert [j.verdict.rule for j in result.judged] == ["protocol"]
    assert b'"tool_use","id"' not in result.out
    assert frame not in result.out
    assert b"blocked by policy" in result.out


def test_keys_in_another_case_are_read_as_go_reads_them() -> None:
    data = f'{{"Type":"content_block_start","INDEX":0,"Content_Block":{{"TYPE":"tool_use","ID":"t","Name":"{BAD}"}}}}'
    frame = raw("content_block_start", data)
    assert run(begin() + frame + stop(0) + end(), denying(BAD)).out == begin() + refused(0, BAD) + end(
        "end_turn"
    )
    sent = begin() + frame + stop(0) + end()
    assert run(sent, denying()).out == sent


def test_escapes_in_keys_types_and_names_hide_nothing() -> None:
    data = '{"t\\u0079pe":"content\\u005fblock_start","index":0,"content_bl\\u006fck":{"type":"t\\u006fol_use","id":"t","n\\u0061me":"mcp__fs__d\\u0065lete","input":{}}}'
    sent = begin() + raw("content_block_start", data) + stop(0) + end()
    assert run(sent, denying(BAD)).out == begin() + refused(0, BAD) + end("end_turn")


@pytest.mark.parametrize("name", ["", "ping", "message_start", "completion"])
def test_the_name_of_an_event_hides_nothing(name: str) -> None:
    frames = call(0, BAD).replace(
        b"event: content_block_start\n", f"event: {name}\n".encode() if name else b""
    )
    assert run(begin() + frames + end(), denying(BAD)).out == begin() + refused(0, BAD) + end("end_turn")


def test_a_call_inside_message_start_is_cut_out_of_it() -> None:
    sent = begin({"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": BAD, "input": {}})
    result = run(sent + end(), denying(BAD))
    notice = '{"type":"text","text":"[agentsh] Tool \'mcp__fs__delete\' blocked by policy: denied"}'
    call_text = json.dumps({"type": "tool_use", "id": "t", "name": BAD, "input": {}})
    assert result.out == sent.replace(call_text.encode(), notice.encode()) + end("end_turn")


def test_an_allowed_call_inside_message_start_passes_and_gets_no_other_arguments() -> None:
    sent = begin({"type": "tool_use", "id": "t", "name": GOOD, "input": {"a": 1}})
    result = run(sent + arguments(0, '{"a":"evil"}') + stop(0) + end(), denying(BAD))
    assert result.out == sent + end()
    assert {f.cause for f in result.faults} == {"event_out_of_place"}


def test_a_second_message_start_cannot_bring_a_call_either() -> None:
    second = begin({"type": "tool_use", "id": "t", "name": BAD, "input": {}})
    result = run(begin() + text(0, "a") + second + end(), denying(BAD))
    assert result.blocked == [BAD]
    assert b'"tool_use", "id"' not in result.out


def test_a_message_with_its_content_twice_is_written_anew() -> None:
    entry = json.dumps({"type": "tool_use", "id": "t", "name": BAD, "input": {}})
    frame = raw(
        "message_start", f'{{"type":"message_start","message":{{"id":"m","content":[{entry}],"content":[]}}}}'
    )
    result = run(frame + end(), denying())
    assert BAD.encode() not in result.out
    assert json.loads(result.out.split(b"\n")[1].partition(b": ")[2])["message"] == {"id": "m", "content": []}
    assert [f.cause for f in result.faults] == ["duplicate_keys"]


def test_a_call_after_the_end_of_the_message_is_flawed() -> None:
    judge = denying()
    sent = begin() + text(0, "a") + end("end_turn")
    assert run(sent + call(1, GOOD), judge).out == sent + refused(1, GOOD, LATE)
    assert run(sent + call(1, GOOD) + end(), judge).out == sent + refused(1, GOOD, LATE) + end("end_turn")
    assert {c.flaw for c in judge.asked} == {LATE}


def test_nothing_tool_like_follows_an_error() -> None:
    judge = denying()
    result = run(begin() + event("error", error={"type": "api_error"}) + call(0, GOOD), judge)
    assert {c.flaw for c in judge.asked} == {LATE}
    assert result.blocked == [GOOD]


def test_a_piece_that_parsers_read_differently_spoils_the_call_that_is_held() -> None:
    data = '{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}","partial_json":"[]"}}'
    sent = start(0, name=GOOD, **BLOCK) + raw("content_block_delta", data) + stop(0)
    result = run(begin() + sent + end(), denying())
    assert result.reasons == ["the key 'partial_json' stands twice"]
    assert b"tool_use" not in result.out.replace(b'"stop_reason": "tool_use"', b"")


def test_a_second_start_at_an_index_brings_the_first_its_verdict() -> None:
    judge = denying()
    first = start(0, name=GOOD, **BLOCK) + arguments(0, '{"a":1}')
    result = run(begin() + first + call(0, GOOD, {"a": "evil"}) + end(), judge)
    assert [(c.input, c.flaw) for c in judge.asked] == [
        ({"a": 1}, ""),
        ({"a": "evil"}, "two blocks with arguments at one index"),
    ]
    assert result.out == begin() + first + refused(0, GOOD, "two blocks with arguments at one index") + end()


def test_a_block_that_takes_a_calls_index_takes_no_arguments_for_it() -> None:
    sent = begin() + start(0, name=GOOD, **BLOCK) + text(0, "a")
    result = run(sent + arguments(0, '{"a":"evil"}') + end(), denying())
    assert result.out == sent + end()


def test_an_end_in_a_read_of_its_own_is_remembered() -> None:
    for last in (event("error", error={"type": "api_error"}), event("message_stop")):
        assert run([begin(), last, call(0, GOOD)], denying()).blocked == [GOOD]


def test_arguments_after_a_calls_stop_are_dropped() -> None:
    sent = begin() + call(0, GOOD, {"a": 1})
    result = run(sent + arguments(0, "evil") + end(), denying())
    assert result.out == sent + end()
    assert [(f.cause, f.cut) for f in result.faults] == [("event_out_of_place", True)]


def test_a_second_stop_does_not_start_a_call_again() -> None:
    sent = begin() + call(0, GOOD)
    assert run(sent + stop(0) + end(), denying()).out == sent + end()


def test_arguments_for_no_block_are_dropped() -> None:
    result = run(begin() + arguments(1, '{"a":"evil",') + call(0, GOOD) + end(), denying())
    assert result.out == begin() + call(0, GOOD) + end()


@pytest.mark.parametrize("index", [-1, None, "0", True, 0.5])
def test_arguments_whose_index_parsers_coerce_are_dropped(index: object) -> None:
    result = run(begin() + call(0, GOOD) + arguments(index, '{"a":"evil"}') + end(), denying())
    assert result.out == begin() + call(0, GOOD) + end()


def test_arguments_that_reach_a_call_by_position_only_are_dropped() -> None:
    sent = begin() + text(0, "a") + start(5, type="tool_use", id="t", name=GOOD, input={"a": 1}) + stop(5)
    server = start(1, type="server_tool_use", id="s", name="web_search", input={})
    result = run(sent + server + arguments(1, '{"a":"evil"}') + stop(1) + end(), denying())
    assert result.out == sent + server + stop(1) + end()


def test_an_index_gap_alone_harms_no_call() -> None:
    sent = begin() + text(0, "a") + call(5, GOOD, {"a": 1}) + call(9, GOOD, {"a": 2}) + end()
    assert run(sent, denying()).out == sent


def test_text_for_a_call_is_part_of_it() -> None:
    sent = start(0, name=BAD, **BLOCK) + delta(0, type="text_delta", text="x") + stop(0)
    assert run(begin() + sent + end(), denying(BAD)).out == begin() + refused(0, BAD) + end("end_turn")
    assert run(begin() + sent + end(), denying()).out == begin() + sent + end()


def test_a_stop_for_another_index_releases_nothing() -> None:
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=False)
    assert machine.feed(start(0, name=GOOD, **BLOCK) + stop(1) + stop("0")).out == b""


def test_a_call_without_a_stop_is_judged_before_the_message_ends() -> None:
    sent = begin() + start(0, name=BAD, **BLOCK) + arguments(0, '{"a":1}')
    judge = denying(BAD)
    assert run(sent + end(), judge).out == begin() + refused(0, BAD) + end("end_turn")
    assert judge.asked[0].input == {"a": 1}


def test_a_stop_that_comes_after_the_message_delta_still_passes() -> None:
    head = start(0, name=GOOD, **BLOCK) + arguments(0, '{"a":1}')
    tail = event("message_delta", delta={"stop_reason": "tool_use"}) + stop(0) + event("message_stop")
    assert run(begin() + head + tail, denying()).out == begin() + head + tail


def test_an_answer_without_message_delta_or_message_stop_passes() -> None:
    sent = begin() + call(0, GOOD)
    assert run(sent, denying()).out == sent
    assert run(begin() + call(0, BAD), denying(BAD)).out == begin() + refused(0, BAD)


@pytest.mark.parametrize("fail_closed", [False, True])
def test_an_end_within_a_call_never_releases_it_and_tells_the_client(*, fail_closed: bool) -> None:
    judge = denying()
    result = run(begin() + start(0, name=GOOD, **BLOCK) + arguments(0, "{}"), judge, fail_closed=fail_closed)
    assert result.out.startswith(begin() + b"event: error\n")
    assert GOOD.encode() + b'", ' not in result.out
    assert [(f.cause, f.cut) for f in result.faults] == [("incomplete_call", True)]
    assert [(c.name, c.input, c.flaw) for c in judge.asked] == [
        (GOOD, {}, "the answer ended inside the call")
    ]


def test_an_error_within_a_call_never_releases_it() -> None:
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    result = run(begin() + start(0, name=GOOD, **BLOCK) + error + stop(0), denying())
    assert result.out == begin() + error
    assert [f.cause for f in result.faults] == ["incomplete_call"]


def test_a_last_frame_without_its_blank_line_counts() -> None:
    sent = begin() + call(0, BAD)
    assert run(sent[:-1], denying(BAD)).out == begin() + refused(0, BAD)


def test_a_malformed_event_behind_a_held_call_waits_with_it_or_cuts() -> None:
    head, broken, tail = start(0, name=GOOD, **BLOCK), raw("x", "{tool"), stop(0)
    sent = begin() + head + broken + tail + end()
    assert run(sent, denying()).out == sent
    assert run(sent, denying(GOOD)).out == begin() + refused(0, GOOD) + broken + end("end_turn")
    cut = run(sent, denying(), fail_closed=True)
    assert cut.out.startswith(begin() + b"event: error\n")
    assert head not in cut.out


def test_a_call_that_outgrows_the_bound_is_judged_by_its_name_or_cut() -> None:
    head = start(0, name=BAD, **BLOCK)
    sent = begin() + head + b"".join(arguments(0, "x" * 50) for _ in range(20)) + stop(0) + end()
    limits = Limits(held=1000)
    assert run(sent, denying(BAD), limits=limits).out == begin() + refused(0, BAD) + end("end_turn")
    passed = run(sent, denying(), limits=limits)
    assert passed.out == sent
    assert [(f.cause, f.cut) for f in passed.faults] == [("held_too_long", False)]
    cut = run(sent, denying(), limits=limits, fail_closed=True)
    assert cut.out.startswith(begin() + b"event: error\n")
    assert [(f.cause, f.cut) for f in cut.faults] == [("held_too_long", True)]


def test_an_endless_number_of_blocks_ends_the_answer() -> None:
    result = run(
        begin() + start(0, type="text", text="") * (1 << 12) + start(0, type="text", text=""), denying()
    )
    assert [(f.cause, f.cut) for f in result.faults] == [("too_many_blocks", True)]
    assert result.ended


DEEP = (
    '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"x","input":%s}}'
    % ('{"a":' * 3000 + "1" + "}" * 3000)
)
LINES = '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"x","input":{}}}'


@pytest.mark.parametrize(
    ("frame", "cause"),
    [
        (raw("content_block_start", DEEP), "unreadable_json"),
        (raw("content_block_start", LINES + "\ndata: " + LINES), "ambiguous_lines"),
        (f": tool\u2028data: {LINES}\n\n".encode(), "ambiguous_lines"),
    ],
    ids=["deep", "two lines", "U+2028"],
)
def test_what_only_other_parsers_read_ends_the_answer_even_under_fail_open(frame: bytes, cause: str) -> None:
    result = run(begin() + start(0, name=GOOD, **BLOCK) + frame + stop(0) + end(), denying())
    assert result.out.startswith(begin() + b"event: error\n")
    assert b"tool_use" not in result.out
    assert [(f.cause, f.cut) for f in result.faults] == [(cause, True)]


@pytest.mark.parametrize("data", ["[DONE]", "", "[1,2]", '"tool_use"', "null"])
def test_what_is_no_event_passes(data: str) -> None:
    sent = begin() + raw("x", data) + b": tool comment\n\n" + end("end_turn") + b"data: [DONE]\n\n"
    result = run(sent, denying(), fail_closed=True)
    assert result.out == sent
    assert not result.faults


def test_the_rest_of_a_rewritten_frame_stays() -> None:
    tail = b': c\nid: 7\nevent: message_delta\r\ndata:{"type":"message_delta",  "delta":{"stop_reason" : "tool_use"},"usage":{"x":1.50}}\n\n'
    result = run(begin() + call(0, BAD) + tail, denying(BAD))
    assert result.out == begin() + refused(0, BAD) + tail.replace(b'"tool_use"', b'"end_turn"')


def test_a_stop_reason_in_data_of_several_lines_is_rewritten_as_one() -> None:
    tail = (
        b'event: message_delta\ndata: {"type":"message_delta",\ndata: "delta":{"stop_reason":"tool_use"}}\n\n'
    )
    result = run(begin() + call(0, BAD) + tail, denying(BAD))
    assert result.out.endswith(
        b'event: message_delta\ndata: {"type":"message_delta", "delta":{"stop_reason":"end_turn"}}\n\n'
    )


def test_an_event_that_is_not_utf8_is_told_and_its_call_judged() -> None:
    frame = start(0, name=BAD, **BLOCK).replace(b'"t"', b'"\xff"')
    result = run(begin() + frame + stop(0) + end(), denying(BAD))
    assert result.out == begin() + refused(0, BAD) + end("end_turn")
    assert [f.cause for f in result.faults] == ["invalid_utf8"]
    assert run(begin() + frame + stop(0), denying(), fail_closed=True).ended


@pytest.mark.parametrize("filler", [b"\n", b": \n\n", b"event: ping\n\n"])
def test_the_smallest_frames_behind_a_call_are_not_remembered_without_end(filler: bytes) -> None:
    machine = DIALECT.stream(denying(), limits=Limits(held=64 << 10), fail_closed=True)
    machine.feed(start(0, name=GOOD, **BLOCK))
    assert not machine.feed(filler * 256).end
    assert machine.feed(filler * 512).end


def test_calls_with_one_id_are_told_apart_by_their_place() -> None:
    judge = denying()
    run(begin() + call(0, GOOD, call_id="same") + call(1, GOOD, call_id="same") + end(), judge)
    assert [(c.call_id, c.ordinal) for c in judge.asked] == [("same", 1), ("same", 2)]


def test_an_event_that_cannot_be_rewritten_cuts_the_answer() -> None:
    twice = raw("message_delta", '{"type":"message_delta","delta":null,"delta":{"stop_reason":"tool_use"}}')
    result = run(begin() + call(0, BAD) + twice + event("message_stop"), denying(BAD))
    assert result.ended
    assert [(f.cause, f.cut) for f in result.faults] == [("malformed_json", True)]
