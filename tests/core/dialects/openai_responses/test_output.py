"""Refused calls leave every `output` of a text, and what two parsers read differently is written so that there is one thing to read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.openai_responses import (
    DELETE,
    WEATHER,
    denying,
    function_call,
    message_item,
    notice,
    response,
)

from agentsh_net.core.dialects.openai_responses.output import Rewriting, containers, rewritten
from agentsh_net.core.dialects.openai_responses.rulings import Rulings
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.values.strict_json import read

GET, RM = function_call(WEATHER), function_call(DELETE, at=1)


def rewrite(data: str, *denied: str, **options: Any) -> tuple[Rewriting, Output]:
    out = Output(fail_closed=True, error_frame=lambda message: message.encode())
    raw = data.encode()
    return rewritten(raw, read(raw), Rulings(denying(*denied)), out, **options), out


@pytest.mark.parametrize(
    "wrap",
    [
        lambda r: r,
        lambda r: {"type": "response.completed", "response": r},
        lambda r: {"object": "list", "data": [r]},
        lambda r: {"object": "list", "data": [{"output": []}] * 1500 + [r]},
        lambda r: {"Response": {"OUTPUT": r["output"]}},
    ],
)
def test_a_refused_call_leaves_wherever_a_response_stands(wrap: Any) -> None:
    text = json.dumps(wrap(response(GET, RM)))
    assert rewrite(text)[0].data is None
    result, out = rewrite(text, DELETE)
    assert result.data is not None
    assert json.dumps(RM).encode() not in result.data
    assert json.dumps(GET).encode() in result.data
    assert notice(DELETE).encode() in result.data
    assert [j.call.name for j in out.step().judged] == [WEATHER, DELETE]
    assert {at: (call.name, text) for at, (call, text) in result.calls.items()} == {
        0: (WEATHER, ""),
        1: (DELETE, notice(DELETE)),
    }


def test_output_text_says_what_the_messages_say() -> None:
    said = message_item("a") | {
        "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "r"}]
    }
    data = json.dumps({"output": [said, RM, message_item("b"), 7], "output_text": "ab"})
    result, _ = rewrite(data, DELETE)
    assert json.loads(result.data or b"")["output_text"] == f"a{notice(DELETE)}b"
    for other in (None, 7):
        result, _ = rewrite(json.dumps({"output": [RM], "output_text": other}), DELETE)
        assert json.loads(result.data or b"")["output_text"] == other
    result, _ = rewrite(json.dumps({"output": [GET], "output_text": "whatever"}), DELETE)
    assert result.data is None


def test_the_result_of_a_refused_call_leaves_with_it() -> None:
    output = {"type": "shell_call_output", "call_id": "call_1", "output": "secret"}
    result, _ = rewrite(json.dumps(response(RM, output)), DELETE)
    assert b"secret" not in (result.data or b"secret")
    assert rewrite(json.dumps(response(GET, output)), DELETE)[0].data is None


def test_extra_may_add_to_a_call_before_it_is_judged() -> None:
    seen = []
    result, _ = rewrite(
        json.dumps(response(message_item("x"), GET)),
        extra=lambda at, call: seen.append((at, call.name)) or call,
    )
    assert seen == [(1, WEATHER)]
    assert result.data is None


TWICE = {
    "output, the call first": ('{"output":[%s],"output":[]}', []),
    "output, the call last": ('{"output":[],"output":[%s]}', [DELETE]),
    "output by case, the call hidden": ('{"Output":[%s],"output":[]}', []),
    "output by case, the call plain": ('{"output":[%s],"OUTPUT":[]}', [DELETE]),
    "response": ('{"response":{"output":[%s]},"response":{"output":[]}}', []),
    "response by case": ('{"response":{"output":[]},"Response":{"output":[%s]}}', []),
    "type of the item": ('{"output":[{"type":"message","x":%s,"type":"function_call","name":"n"}]}', ["n"]),
    "type of the item, harmless": ('{"output":[{"type":"function_call","x":%s,"type":"message"}]}', []),
    "type of the item by case": ('{"output":[{"Type":"function_call","x":%s,"type":"message"}]}', []),
    "name": ('{"output":[{"type":"function_call","name":"a","name":"b","x":%s}]}', ["b"]),
}


@pytest.mark.parametrize(("data", "calls"), TWICE.values(), ids=TWICE)
def test_a_text_with_two_readings_is_written_anew_with_one(data: str, calls: list[str]) -> None:
    result, out = rewrite(data % json.dumps(RM))
    assert result.data is not None
    first = json.loads(result.data, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    folding = json.loads(result.data, object_pairs_hook=lambda pairs: {k.casefold(): v for k, v in pairs})
    assert first == folding == json.loads(result.data)
    step = out.step()
    assert [j.call.name for j in step.judged] == (calls or [""])
    assert all("stands twice" in j.call.flaw for j in step.judged)
    for _, holder in containers(json.loads(result.data)):
        assert all(item["type"] == "message" for item in holder.get("output", []))


@pytest.mark.parametrize("data", [data for data, _ in TWICE.values()], ids=TWICE)
def test_what_policy_lets_pass_in_spite_of_its_flaw_is_not_written_anew(data: str) -> None:
    out = Output(fail_closed=True, error_frame=lambda message: message.encode())
    raw = (data % json.dumps(RM)).encode()
    audit = Verdict(Action.ALLOW, "watched", would=Action.BLOCK)
    assert rewritten(raw, read(raw), Rulings(lambda _: audit), out).data is None


def test_keys_twice_elsewhere_change_nothing() -> None:
    assert (
        rewrite('{"output":[{"type":"message","text":1,"text":2}],"x":1,"X":2,"name":1,"name":2}')[0].data
        is None
    )


def test_what_cannot_be_written_is_the_peers_fault() -> None:
    value = json.loads('{"output":[],"Output":[]}')
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    value["x"] = deep
    out = Output(fail_closed=True, error_frame=lambda message: message.encode())
    reading = read(b"{}")._replace(value=value)
    with pytest.raises(ProtocolError, match="nested too deeply"):
        rewritten(b"{}", reading, Rulings(denying()), out)


def test_only_objects_hold_responses() -> None:
    assert list(containers([{"output": []}])) == []
    assert [path for path, _ in containers({"response": [], "data": [1, {}]})] == [(), ("data", 1)]


def test_a_page_of_a_conversations_items_is_read_again_and_again_and_tells_only_of_what_is_refused() -> None:
    text = json.dumps(
        {"object": "list", "data": [message_item("a"), GET, RM], "first_id": "x", "has_more": False}
    )
    kept, quiet = rewrite(text)
    assert kept.data is None
    assert quiet.step().judged == ()
    result, out = rewrite(text, DELETE)
    assert result.data is not None
    page = json.loads(result.data)
    assert [item["type"] for item in page["data"]] == ["message", "function_call", "message"]
    assert (page["data"][1], page["has_more"]) == (GET, False)
    (told,) = out.step().judged
    assert (told.call.name, told.call.stored) == (DELETE, True)


@pytest.mark.parametrize(
    "about",
    [{}, {"object": "list"}, {"OBJECT": "list"}, {"object": "page"}],
    ids=["none", "list", "case", "other"],
)
@pytest.mark.parametrize("key", ["data", "Data", "output", "outputs", "entries"])
def test_items_are_read_under_every_key_that_lists_them_whatever_the_page_says_it_is(
    key: str, about: dict[str, str]
) -> None:
    text = json.dumps({**about, key: [message_item("a"), GET, RM]})
    result, out = rewrite(text, DELETE)
    assert [item["type"] for item in json.loads(result.data or b"")[key]] == [
        "message",
        "function_call",
        "message",
    ]
    assert [j.call.name for j in out.step().judged if j.verdict.blocked] == [DELETE]


MISTRALS = {
    "object": "entry",
    "type": "function.call",
    "tool_call_id": "t1",
    "id": "fc1",
    "arguments": {"a": 1},
}


@pytest.mark.parametrize(
    ("kind", "key"), [("conversation.response", "outputs"), ("conversation.history", "entries")]
)
def test_a_refused_call_of_a_mistral_conversation_becomes_what_its_client_takes_for_text(
    kind: str, key: str
) -> None:
    entries = [
        {"type": "message.input", "content": "x"},
        *({**MISTRALS, "name": n} for n in (WEATHER, DELETE)),
    ]
    text = json.dumps({"object": kind, "conversation_id": "c", key: entries})
    result, out = rewrite(text, DELETE)
    left = json.loads(result.data or b"")[key]
    assert left[:2] == entries[:2]
    assert {name: left[2][name] for name in ("object", "type", "role")} == {
        "object": "entry",
        "type": "message.output",
        "role": "assistant",
    }
    assert "blocked by policy" in left[2]["content"]
    judged = out.step().judged
    assert [(j.call.name, j.call.input) for j in judged if j.verdict.blocked] == [(DELETE, {"a": 1})]


def test_an_item_that_stands_alone_is_replaced_or_left() -> None:
    kept, quiet = rewrite(json.dumps(GET), DELETE)
    assert (kept.data, quiet.step().judged) == (None, ())
    result, out = rewrite(json.dumps(RM), DELETE)
    assert json.loads(result.data or b"")["type"] == "message"
    (told,) = out.step().judged
    assert (told.call.name, told.call.stored, told.verdict.blocked) == (DELETE, True, True)
    twice = json.dumps(RM).replace('"name"', '"name": "get", "name"')
    hostile, judged = rewrite(twice, "nothing")
    assert json.loads(hostile.data or b"")["type"] == "message"
    assert "'name'" in judged.step().judged[0].call.flaw


def test_what_a_compaction_repeats_is_told_only_where_it_is_refused_and_charged_to_nobody() -> None:
    text = json.dumps(
        {
            "object": "response.compaction",
            "output": [GET, RM, {"type": "compaction", "encrypted_content": "x"}],
        }
    )
    result, out = rewrite(text, DELETE)
    assert [item["type"] for item in json.loads(result.data or b"")["output"]] == [
        "function_call",
        "message",
        "compaction",
    ]
    assert [(j.call.name, j.call.stored) for j in out.step().judged] == [(DELETE, True)]
