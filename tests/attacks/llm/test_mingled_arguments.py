"""No client runs a call with arguments that a rule denies because it adds the pieces of a stream up in another way than its neighbour.

The models of clients are those of LiteLLM, LlamaIndex, Strands, smolagents, the AI SDK and Mistral's SDK, which fell for these rows;
`./dev clients sdks` has the rows read by the SDKs themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import situation, unlimited
from transcripts import anthropic, openai_chat, openai_responses
from transcripts.openai_chat import DONE, calls, chunk, end, entry

from agentsh_net.core.configuration.settings import ArgumentMatch
from agentsh_net.core.dialects.anthropic import dialect as messages
from agentsh_net.core.dialects.base import Dialect, Limits
from agentsh_net.core.dialects.openai_chat import dialect as chat
from agentsh_net.core.dialects.openai_responses import dialect as responses
from agentsh_net.core.model import ToolCall, Verdict

WRITE, OTHER = "mcp__fs__write", "mcp__weather__get"
ETC = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
POLICY = situation(["fs"], {"fs": ["write"]}, denied_tools=[ETC])
DENIED = '{"path":"/etc/x"}'
Run = tuple[str, Any]


def judge(call: ToolCall) -> Verdict:
    return POLICY.judge(call, session_id="default", charge=unlimited)


def left(dialect: Dialect, sent: bytes) -> bytes:
    stream = dialect.stream(judge, limits=Limits(), fail_closed=False)
    return stream.feed(sent).out + stream.finish().out


def values(data: bytes) -> Iterator[Any]:
    for line in data.split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


def ran_denied(runs: list[list[str]]) -> bool:
    return any(name == WRITE and _path(text).startswith("/etc/") for name, text in runs)


def _path(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    return str(value.get("path")) if isinstance(value, dict) else ""


# Chat: rows.


def first(name: str, text: str = "", *, index: Any = 0, call_id: Any = "c0") -> dict[str, Any]:
    return entry(index, name=name, args=text, call_id=call_id)


SPLIT = ('{"x":', DENIED, "}")
CHAT: dict[str, bytes] = {
    "named again, with another call between": calls(first(WRITE, SPLIT[0]))
    + calls(first(OTHER, "{}", index=1, call_id="c1"))
    + calls(first(WRITE, SPLIT[1]))
    + calls(entry(1, args=""))
    + calls(entry(0, args=SPLIT[2])),
    "named again": calls(first(WRITE, SPLIT[0]))
    + calls(first(WRITE, SPLIT[1]))
    + calls(entry(args=SPLIT[2])),
    "under another call's id": calls(first(OTHER))
    + calls(first(WRITE, index=1, call_id="c1"))
    + calls(entry(0, args=DENIED, call_id="c1")),
    "two calls with one id": calls(first(WRITE)) + calls(first(OTHER, DENIED, index=1)),
    "two calls at one index": calls(first(WRITE)) + calls(first(OTHER, DENIED, call_id="c1")),
    "two calls at one index, the other first": calls(first(OTHER, DENIED))
    + calls(first(WRITE, call_id="c1")),
    "two calls without an index": calls(first(WRITE, index=...))
    + calls(first(OTHER, DENIED, index=..., call_id="c1")),
    "two calls without an index, the other first": calls(first(OTHER, DENIED, index=...))
    + calls(first(WRITE, index=..., call_id="c1")),
    "two choices": calls(first(WRITE)) + calls(first(OTHER, DENIED, call_id="c1"), choice=1),
    "another choice brings arguments alone": calls(first(WRITE)) + calls(entry(0, args=DENIED), choice=1),
    "behind the end, another choice": calls(first(WRITE))
    + end()
    + calls(first(OTHER, DENIED, call_id="c1"), choice=1),
    "behind the end, arguments alone": calls(first(WRITE)) + end() + calls(entry(0, args=DENIED), choice=1),
    "behind the end, at the same index": calls(first(WRITE))
    + end()
    + calls(first(OTHER, DENIED, call_id="c1")),
    "behind the end, under the same id": calls(first(WRITE)) + end() + calls(first(OTHER, DENIED, index=1)),
    "several pieces in a frame": calls(first(WRITE), entry(args=SPLIT[0]))
    + calls(entry(args=SPLIT[1]))
    + calls(entry(args=""), entry(args=SPLIT[2])),
    "a message, then a delta": chunk({"tool_calls": [first(WRITE)]}, carrier="message")
    + calls(entry(args=DENIED)),
}


# Chat: clients, each for how it says which call a piece is of, and what a call is named.


def pieces(data: bytes, *, choices: slice, entries: slice) -> Iterator[dict[str, Any]]:
    for value in values(data):
        for choice in value.get("choices", [])[choices]:
            said = choice.get("delta") or choice.get("message") or {}
            yield from (said.get("tool_calls") or [])[entries]


def named(piece: dict[str, Any]) -> tuple[str, str]:
    inner = piece.get("function", {})
    return inner.get("name") or "", inner.get("arguments") or ""


def keyed(data: bytes, key: Callable[[dict[str, Any]], Any], *, latest: bool) -> list[list[str]]:
    kept: dict[Any, list[str]] = {}
    for piece in pieces(data, choices=slice(1), entries=slice(None)):
        name, text = named(piece)
        made = kept.setdefault(key(piece), ["", ""])
        made[0] = (name or made[0]) if latest else (made[0] or name)
        made[1] += text
    return list(kept.values())


def by_last_index(data: bytes) -> list[list[str]]:
    """Read the first entry of a list, for the last call if that has its index (LlamaIndex)."""
    kept: list[list[str]] = []
    index: Any = object()
    for piece in pieces(data, choices=slice(1), entries=slice(1)):
        name, text = named(piece)
        if not kept or piece.get("index") != index:
            kept.append(["", ""])
        index = piece.get("index")
        kept[-1][0] += name
        kept[-1][1] += text
    return kept


CHAT_CLIENTS: dict[str, Callable[[bytes], list[list[str]]]] = {
    "by index, first name (AI SDK, Strands)": lambda d: keyed(d, lambda p: p.get("index"), latest=False),
    "by index or 0, last name (LiteLLM, smolagents)": lambda d: keyed(
        d, lambda p: p.get("index") or 0, latest=True
    ),
    "by id (AI SDK for Mistral)": lambda d: keyed(d, lambda p: p.get("id"), latest=False),
    "by last index (LlamaIndex)": by_last_index,
    "every piece a call (Mistral)": lambda d: [
        list(named(piece)) for piece in pieces(d, choices=slice(None), entries=slice(None))
    ],
}


@pytest.mark.parametrize("row", CHAT)
def test_no_reading_of_a_chat_stream_has_denied_arguments(row: str) -> None:
    sent = SENT["chat"][row]
    assert any(ran_denied(read(sent)) for read in CHAT_CLIENTS.values()), "nobody falls for it: no proof"
    out = left(chat.DIALECT, sent)
    assert not [client for client, read in CHAT_CLIENTS.items() if ran_denied(read(out))], out.decode()


def test_calls_one_after_another_are_judged_by_their_arguments_and_leave_to_the_byte() -> None:
    sent = b"".join(
        openai_chat.call(at, name, {"path": path})
        for at, (name, path) in enumerate([(WRITE, "/srv/a"), (OTHER, "/etc/x"), (WRITE, "/srv/b")])
    )
    assert left(chat.DIALECT, sent + end() + DONE) == sent + end() + DONE


MINE, YOURS = '{"path":"/srv/a"}', '{"city":"Bern"}'
MEANT = [[WRITE, MINE], [OTHER, YOURS]]
HONEST: dict[str, list[bytes]] = {
    "no index and no id (Gemini)": [
        calls(entry(..., name=WRITE, args=MINE, call_id="")),
        calls(entry(..., name=OTHER, args=YOURS, call_id="")),
    ],
    "one index (Gemini)": [calls(first(WRITE, MINE)), calls(first(OTHER, YOURS, call_id="c1"))],
    "no index, and pieces": [
        calls(first(WRITE, MINE[:5], index=...)),
        calls(entry(..., args=MINE[5:])),
        calls(first(OTHER, YOURS, index=..., call_id="c1")),
    ],
    "several pieces in a frame (Bedrock)": [
        calls(first(WRITE, MINE[:1])),
        calls(entry(args=MINE[1:9]), entry(args=MINE[9:])),
        calls(first(OTHER, YOURS, index=1, call_id="c1")),
    ],
    "within each other": [
        calls(first(WRITE, MINE[:5])),
        calls(first(OTHER, YOURS[:5], index=1, call_id="c1")),
        calls(entry(0, args=MINE[5:])),
        calls(entry(1, args=YOURS[5:])),
    ],
}


@pytest.mark.parametrize("row", HONEST)
def test_honest_calls_that_clients_add_up_in_different_ways_leave_so_that_all_read_the_same(row: str) -> None:
    sent = b"".join(HONEST[row]) + end() + DONE
    out = left(chat.DIALECT, sent)
    for read in CHAT_CLIENTS.values():
        assert read(out) == MEANT
    denied = sent.replace(b"/srv/a", b"/etc/a")
    assert all(read(left(chat.DIALECT, denied)) == MEANT[1:] for read in CHAT_CLIENTS.values())


def test_what_a_provider_tells_beside_a_call_that_is_written_whole_stays() -> None:
    signed = first(WRITE, MINE, index=...) | {"extra_content": {"google": {"thought_signature": "s"}}}
    out = left(chat.DIALECT, calls(signed, first(OTHER, YOURS, index=..., call_id="c1")) + end() + DONE)
    entries = [entry for value in values(out) for entry in value["choices"][0]["delta"].get("tool_calls", ())]
    assert entries == [signed | {"index": 0}, first(OTHER, YOURS, index=1, call_id="c1")]


PIECES = st.builds(
    entry,
    st.sampled_from([0, 0, 1, ...]),
    name=st.sampled_from([None, None, WRITE, OTHER]),
    args=st.sampled_from(["", '{"path":"', "/etc/x", "/srv/a", '"}', DENIED, MINE, YOURS]),
    call_id=st.sampled_from([None, "c0", "c1"]),
)


@given(st.lists(st.lists(PIECES, min_size=1, max_size=3), min_size=1, max_size=6))
def test_no_mixture_of_pieces_has_a_reading_with_denied_arguments(frames: list[list[dict[str, Any]]]) -> None:
    out = left(chat.DIALECT, b"".join(calls(*frame) for frame in frames) + end() + DONE)
    assert not [client for client, read in CHAT_CLIENTS.items() if ran_denied(read(out))], out.decode()


def test_mingled_calls_that_no_rule_over_arguments_is_about_leave_to_the_byte() -> None:
    sent = (
        calls(first(OTHER))
        + calls(first("ls", index=1, call_id="c1"))
        + calls(entry(0, args=DENIED))
        + end()
        + DONE
    )
    assert left(chat.DIALECT, sent) == sent


# Messages.


def begun(index: int, name: str, kind: str = "tool_use") -> bytes:
    return anthropic.start(index, type=kind, id=f"toolu_{index}", name=name, input={})


TEXT = anthropic.start(1, type="text", text="")
MESSAGES: dict[str, bytes] = {
    "the first grows within the second": begun(0, OTHER)
    + begun(1, WRITE)
    + anthropic.arguments(0, DENIED)
    + anthropic.stop(0)
    + anthropic.stop(1),
    "and ends last": begun(0, OTHER)
    + begun(1, WRITE)
    + anthropic.arguments(0, DENIED)
    + anthropic.stop(1)
    + anthropic.stop(0),
    "a text brings arguments": begun(0, WRITE)
    + TEXT
    + anthropic.arguments(1, DENIED)
    + anthropic.stop(1)
    + anthropic.stop(0),
    "a provider's own call brings them": begun(0, WRITE)
    + begun(1, "web_search", "server_tool_use")
    + anthropic.arguments(1, DENIED)
    + anthropic.stop(1)
    + anthropic.stop(0),
}


def by_last_block(data: bytes) -> list[list[str]]:
    """Add arguments to the call that began last, whatever their index (LlamaIndex, Strands)."""
    kept: list[list[str]] = []
    for value in values(data):
        block = value.get("content_block", {})
        if block.get("type") == "tool_use":
            kept.append([block["name"], ""])
        elif "partial_json" in value.get("delta", {}) and kept:
            kept[-1][1] += value["delta"]["partial_json"]
    return kept


@pytest.mark.parametrize("row", MESSAGES)
def test_no_reading_of_a_message_stream_has_denied_arguments(row: str) -> None:
    sent = SENT["messages"][row]
    assert ran_denied(by_last_block(sent)), "nobody falls for it: no proof"
    assert not ran_denied(by_last_block(left(messages.DIALECT, sent)))


def test_blocks_within_each_other_that_no_rule_over_arguments_is_about_leave_to_the_byte() -> None:
    sent = (
        anthropic.begin()
        + begun(0, OTHER)
        + begun(1, "ls")
        + anthropic.arguments(0, DENIED)
        + anthropic.arguments(1, "{}")
        + anthropic.stop(0)
        + anthropic.stop(1)
        + anthropic.end()
    )
    assert left(messages.DIALECT, sent) == sent


# Responses.


def item(at: int, name: str, kind: str = "function_call", **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"fc_{at}", "call_id": f"call_{at}", "name": name, **more}


def added(at: int, made: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": at, "item": made}


def done(at: int, made: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": at, "item": made}


def whole(at: int, text: str) -> list[dict[str, Any]]:
    kind = "response.function_call_arguments"
    where = {"item_id": f"fc_{at}", "output_index": at}
    return [
        {"type": f"{kind}.delta", **where, "delta": text},
        {"type": f"{kind}.done", **where, "arguments": text},
    ]


RESPONSES: dict[str, list[dict[str, Any]]] = {
    "the first grows within the second": [
        added(0, item(0, OTHER, arguments="")),
        added(1, item(1, WRITE, arguments="")),
        *whole(0, DENIED),
        done(0, item(0, OTHER, arguments=DENIED)),
        done(1, item(1, WRITE, arguments="{}")),
    ],
    "a call of another kind brings them": [
        added(0, item(0, WRITE, arguments="")),
        done(0, item(0, WRITE, arguments="{}")),
        added(1, item(1, OTHER, "custom_tool_call", input="")),
        *whole(1, DENIED),
        done(1, item(1, OTHER, "custom_tool_call", input=DENIED)),
    ],
}


def by_last_item(data: bytes) -> list[list[str]]:
    """Give arguments to the function call that was added last and has none yet, whatever their address (LlamaIndex)."""
    kept: list[list[str]] = []
    current = ""
    for value in values(data):
        if value["type"] == "response.output_item.added" and value["item"]["type"] == "function_call":
            current = value["item"]["name"]
        elif value["type"] == "response.function_call_arguments.done" and current:
            kept.append([current, value["arguments"]])
            current = ""
    return kept


@pytest.mark.parametrize("row", RESPONSES)
def test_no_reading_of_a_response_stream_has_denied_arguments(row: str) -> None:
    sent = SENT["responses"][row]
    assert ran_denied(by_last_item(sent)), "nobody falls for it: no proof"
    assert not ran_denied(by_last_item(left(responses.DIALECT, sent)))


def test_items_within_each_other_that_no_rule_over_arguments_is_about_leave_to_the_byte() -> None:
    events = [
        added(0, item(0, OTHER, arguments="")),
        added(1, item(1, "ls", arguments="")),
        *whole(0, DENIED),
        done(0, item(0, OTHER, arguments=DENIED)),
        done(1, item(1, "ls", arguments="{}")),
    ]
    sent = openai_responses.numbered([*openai_responses.begin(), *events])
    assert left(responses.DIALECT, sent) == sent


# As `./dev clients sdks` sends them; the npm SDK's helper wants to know who speaks first.
SENT: dict[str, dict[str, bytes]] = {
    "chat": {
        row: chunk({"role": "assistant", "content": ""}) + sent + end() + DONE for row, sent in CHAT.items()
    },
    "messages": {row: anthropic.begin() + sent + anthropic.end() for row, sent in MESSAGES.items()},
    "responses": {
        row: openai_responses.numbered([*openai_responses.begin(), *events])
        for row, events in RESPONSES.items()
    },
}
