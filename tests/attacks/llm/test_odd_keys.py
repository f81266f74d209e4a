"""Pieces of arguments under keys in another case, which Go's clients read and most others do not, bring nobody denied arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fuzz import grammar, readers, streams
from fuzz.grammar import Made
from situations import situation, unlimited

from agentsh_net.core.configuration.settings import ArgumentMatch
from agentsh_net.core.model import ToolCall, Verdict

NAME = "mcp__fs__write"
# With its first and last piece the text is an object whose path is deep in it; without them it is the one that a rule denies.
PIECES = ('{"z":', '{"path":"/etc/x"}', "}")
RULE = {"tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
POLICY = situation(["fs"], {"fs": ["write"]}, denied_tools=[RULE])
FREE = situation(["fs"], {"fs": ["write"]})


def typed(**value: Any) -> Made:
    return str(value.get("type") or value["event_type"]), value


def messages() -> list[Made]:
    block = {"type": "tool_use", "id": "c", "name": NAME, "input": {}}
    deltas = ({"type": "input_json_delta", "partial_json": text} for text in PIECES)
    return [
        typed(type="message_start", message={"role": "assistant", "content": []}),
        typed(type="content_block_start", index=0, content_block=block),
        *(typed(type="content_block_delta", index=0, delta=delta) for delta in deltas),
        typed(type="content_block_stop", index=0),
        typed(type="message_delta", delta={"stop_reason": "tool_use"}),
        typed(type="message_stop"),
    ]


def chat() -> list[Made]:
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": NAME, "arguments": ""}}
    entries = [first, *({"index": 0, "function": {"arguments": text}} for text in PIECES)]
    choices = [{"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None} for entry in entries]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    return [("", {"choices": [choice]}) for choice in choices]


def responses() -> list[Made]:
    item = {"type": "function_call", "id": "i", "call_id": "c", "name": NAME, "arguments": ""}
    kind, where = "response.function_call_arguments.delta", {"item_id": "i", "output_index": 0}
    whole = item | {"arguments": "".join(PIECES)}
    return [
        typed(type="response.output_item.added", output_index=0, item=item),
        *(typed(type=kind, **where, delta=text) for text in PIECES),
        typed(type="response.output_item.done", output_index=0, item=whole),
    ]


def interactions() -> list[Made]:
    step = {"type": "function_call", "id": "c", "name": NAME, "arguments": {}}
    deltas = ({"type": "arguments_delta", "arguments": text} for text in PIECES)
    return [
        typed(event_type="step.start", index=0, step=step),
        *(typed(event_type="step.delta", index=0, delta=delta) for delta in deltas),
        typed(event_type="step.stop", index=0),
    ]


def converse() -> list[Made]:
    where = {"contentBlockIndex": 0}
    return [
        ("contentBlockStart", {**where, "start": {"toolUse": {"toolUseId": "c", "name": NAME}}}),
        *(("contentBlockDelta", {**where, "delta": {"toolUse": {"input": text}}}) for text in PIECES),
        ("contentBlockStop", where),
        ("messageStop", {"stopReason": "tool_use"}),
    ]


HONEST = {
    "anthropic": messages(), "invoke": messages(), "chat": chat(), "responses": responses(), "interactions": interactions(),
    "converse": converse(),
}  # fmt: skip
_AT = {name: [PIECES[0] in json.dumps(event).replace('\\"', '"') for event in events].index(True) for name, events in HONEST.items()}  # fmt: skip


def _keys(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if isinstance(key, str):
            yield (*path, key)
        yield from _keys(inner, (*path, key))


def _spelled(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a value with the key at a path in another case."""
    if isinstance(value, list):
        return [_spelled(item, path[1:]) if at == path[0] else item for at, item in enumerate(value)]
    last = len(path) == 1
    return {
        (key.title() if last else key) if key == path[0] else key: _spelled(item, path[1:])
        if key == path[0] and not last
        else item
        for key, item in value.items()
    }


CASES = [(name, path) for name, events in HONEST.items() for path in _keys(events[_AT[name]][1])]


def played(name: str, path: tuple[Any, ...] | None, policy: Any) -> tuple[bytes, bytes, list[tuple[ToolCall, Verdict]]]:  # fmt: skip
    events, at = list(HONEST[name]), _AT[name]
    for number in (at, at + 2) if path else ():
        kind, value = events[number]
        events[number] = (kind, _spelled(value, path))
    wire = streams.WIRES[name]
    sent = wire.framed(events, grammar.Choices(b""))
    stream = wire.dialect.stream(
        lambda call: policy.judge(call, session_id="default", charge=unlimited),
        limits=streams.WIDE,
        fail_closed=False,
    )
    steps = [stream.feed(sent), stream.finish()]
    judged = [(one.call, one.verdict) for step in steps for one in step.judged]
    return sent, b"".join(step.out for step in steps), judged


def denied_runs(name: str, out: bytes) -> list[Any]:
    wire = streams.WIRES[name]
    return [
        value
        for framing in wire.framings
        for hook in readers.HOOKS.values()
        for called, value in wire.reader(framing(out, hook), hook)
        if called == NAME and isinstance(value, dict) and str(value.get("path")).startswith("/etc/")
    ]


@pytest.mark.parametrize(("name", "path"), CASES)
def test_pieces_that_only_some_clients_read_bring_nobody_denied_arguments(
    name: str, path: tuple[Any, ...]
) -> None:
    sent, out, judged = played(name, path, POLICY)
    assert not denied_runs(name, out)
    assert judged[-1][1].blocked or not denied_runs(name, sent)


@pytest.mark.parametrize("name", HONEST)
def test_some_client_falls_for_it_and_without_such_a_rule_or_such_a_key_all_leaves_to_the_byte(
    name: str,
) -> None:
    sent, out, judged = played(name, None, POLICY)
    assert out == sent
    assert [verdict.blocked for _, verdict in judged] == [False]
    fooled = [path for each, path in CASES if each == name and denied_runs(name, played(name, path, FREE)[0])]
    assert len(fooled) >= 2
    sent, out, _ = played(name, fooled[0], FREE)
    assert out == sent
