"""No shape of a Bedrock answer hands a denied call to any client: botocore with an application's loop, and readers that check less."""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EventStreamError
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import anthropic as messages
from transcripts.bedrock import (
    DELETE,
    DIALECTS,
    WEATHER,
    begin,
    call,
    chunk,
    cut_at,
    denying,
    end,
    exception,
    message,
    piece,
    run,
    said,
    say,
    start,
    stop,
    text,
    wrapped,
)
from transcripts.key_readings import first_wins

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.bedrock.dialect import DIALECT
from agentsh_net.core.framing import event_stream

Run = tuple[str, Any]
CITY = {"city": "Bern", "n": 1.5}
CUTS = st.lists(st.integers(0, 10**6), max_size=8)


# botocore, over a transport without sockets.


class Raw:
    """A body as botocore reads it from urllib3."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.data

    def read(self, *_: Any) -> bytes:
        data, self.data = self.data, b""
        return data

    def close(self) -> None: ...


REPLY: list[Any] = [200, "application/vnd.amazon.eventstream", b""]
SDK = boto3.client(
    "bedrock-runtime", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s",
    endpoint_url="http://llm.test", config=Config(retries={"max_attempts": 0}),
)  # fmt: skip


def answer(request: Any, **_: Any) -> AWSResponse:
    status, kind, data = REPLY
    return AWSResponse(request.url, status, {"content-type": kind}, Raw(data))


SDK.meta.events.register("before-send.bedrock-runtime", answer)
ASK: dict[str, Any] = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "hi"}]}]}
FAILURES = (BotoCoreError, ClientError, EventStreamError, ValueError, TypeError, LookupError, AttributeError)


def by_sdk(data: bytes) -> list[Run]:
    """Return what an application runs that adds up events by index."""
    REPLY[:] = [200, "application/vnd.amazon.eventstream", data]
    open_: dict[Any, list[str]] = {}
    found: list[Run] = []
    try:
        for event in SDK.converse_stream(**ASK)["stream"]:
            if use := event.get("contentBlockStart", {}).get("start", {}).get("toolUse"):
                open_[event["contentBlockStart"]["contentBlockIndex"]] = [use["name"], ""]
            if "contentBlockDelta" in event and (use := event["contentBlockDelta"]["delta"].get("toolUse")):
                open_[event["contentBlockDelta"]["contentBlockIndex"]][1] += use["input"]
            if "contentBlockStop" in event and (
                made := open_.pop(event["contentBlockStop"]["contentBlockIndex"], None)
            ):
                found.append((made[0], json.loads(made[1] or "{}")))
    except FAILURES:
        pass
    return found


def by_sdk_in_order(data: bytes) -> list[Run]:
    """Return what an application runs that knows one current call, as agent frameworks on botocore do."""
    REPLY[:] = [200, "application/vnd.amazon.eventstream", data]
    current: list[str] | None = None
    found: list[Run] = []
    try:
        for event in SDK.converse_stream(**ASK)["stream"]:
            if use := event.get("contentBlockStart", {}).get("start", {}).get("toolUse"):
                current = [use["name"], ""]
            elif "contentBlockDelta" in event and (use := event["contentBlockDelta"]["delta"].get("toolUse")):
                assert current is not None
                current[1] += use["input"]
            elif "contentBlockStop" in event and current is not None:
                found.append((current[0], json.loads(current[1] or "{}")))
                current = None
    except (*FAILURES, AssertionError):
        pass
    return found


def by_sdk_whole(data: bytes) -> list[Run]:
    REPLY[:] = [200, "application/json", data]
    try:
        content = SDK.converse(**ASK)["output"]["message"]["content"]
        return [
            (block["toolUse"]["name"], block["toolUse"]["input"]) for block in content if "toolUse" in block
        ]
    except FAILURES:
        return []


def by_sdk_invoked(data: bytes) -> list[Run]:
    REPLY[:] = [200, "application/vnd.amazon.eventstream", data]
    found: list[Run] = []
    try:
        for event in SDK.invoke_model_with_response_stream(modelId="m", body=b"{}")["body"]:
            found += called(json.loads(event["chunk"]["bytes"]))
    except FAILURES:
        pass
    return found


def called(value: Any) -> list[Run]:
    """Return every call that an event begins, in any format."""
    found: list[Run] = []
    if isinstance(value, list):
        for item in value:
            found += called(item)
    elif isinstance(value, dict):
        kind = value.get("type")
        if isinstance(value.get("name"), str) and (
            kind in {"tool_use", "mcp_tool_use"} or "toolUseId" in value or "arguments" in value
        ):
            found.append((value["name"], value.get("input")))
        for item in value.values():
            found += called(item)
    return found


# Readers that check less: no CRC, lengths by what is there, payloads wherever an object begins.


def payloads(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 16 <= len(data):
        total, size = struct.unpack_from(">II", data, at)
        if not 16 <= total <= len(data) - at:
            total = len(data) - at
        yield data[at + 12 + min(size, total - 16) : at + total - 4]
        at += total


def objects(data: bytes) -> Iterator[bytes]:
    source, at, decoder = data.decode("latin-1"), 0, json.JSONDecoder()
    while (at := source.find('{"', at)) >= 0:
        try:
            _, stop_ = decoder.raw_decode(source, at)
        except ValueError:
            at += 1
        else:
            yield source[at:stop_].encode("latin-1")
            at = stop_


def lenient(cut: Callable[[bytes], Iterator[bytes]], hook: Any) -> Callable[[bytes], list[Run]]:
    def client(data: bytes) -> list[Run]:
        found: list[Run] = []
        for payload in cut(data):
            try:
                value = json.loads(payload, object_pairs_hook=hook)
            except (ValueError, RecursionError):
                continue
            found += called(value)
            wrapped_ = value.get("bytes") if isinstance(value, dict) else None
            if isinstance(wrapped_, str):
                try:
                    found += called(json.loads(b64decode(wrapped_), object_pairs_hook=hook))
                except (ValueError, RecursionError):
                    continue
        return found

    return client


CLIENTS: dict[str, Callable[[bytes], list[Run]]] = {
    "botocore": by_sdk, "botocore, one call at a time": by_sdk_in_order, "botocore, invoked": by_sdk_invoked,
} | {f"{cut.__name__}, {hook.__name__ if hook else 'last wins'}": lenient(cut, hook) for cut in (payloads, objects) for hook in (None, first_wins)}  # fmt: skip


def assert_nobody_runs_it(out: bytes) -> None:
    for name, client in CLIENTS.items():
        assert DELETE not in {tool for tool, _ in client(out)}, name


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_clients_here_do_run_what_is_not_stopped(client: str) -> None:
    converse = begin() + call(0, DELETE, CITY) + end()
    invoked = wrapped(messages.begin() + messages.call(0, DELETE, CITY) + messages.end())
    assert DELETE in {name for name, _ in CLIENTS[client](converse) + CLIENTS[client](invoked)}


# Honest streams.


@given(st.lists(st.sampled_from(["text", WEATHER, DELETE, "Bash"]), max_size=5), CUTS, st.booleans())
@settings(max_examples=50, deadline=None)
def test_botocore_hands_out_allowed_calls_intact_and_denied_ones_never(
    blocks: list[str], cuts: list[int], fail_closed: bool
) -> None:
    data = (
        begin()
        + b"".join(text(n, "a", "b") if b == "text" else call(n, b, CITY) for n, b in enumerate(blocks))
        + end()
    )
    result = run(cut_at(data, cuts), denying(DELETE), fail_closed=fail_closed)
    want = [(b, CITY) for b in blocks if b not in {"text", DELETE}]
    assert by_sdk(result.out) == by_sdk_in_order(result.out) == want
    assert [j.call.name for j in result.judged] == [b for b in blocks if b != "text"]
    assert not result.faults
    content = [
        {"text": "a"} if b == "text" else {"toolUse": {"toolUseId": "t", "name": b, "input": CITY}}
        for b in blocks
    ]
    whole = json.dumps(
        {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use"}
    ).encode()
    assert by_sdk_whole(DIALECT.body(whole, denying(DELETE), fail_closed=True).out) == want


def test_botocore_raises_our_errors_reads_our_notice_and_skips_what_keeps_it_alive() -> None:
    REPLY[:] = [403, "application/json", DIALECT.error(403, "why it was refused")]
    with pytest.raises(ClientError, match="why it was refused") as caught:
        SDK.converse(**ASK)
    assert caught.value.response["Error"]["Code"] == "AccessDeniedException"
    REPLY[:] = [200, "application/vnd.amazon.eventstream", run(begin() + start(0, WEATHER), denying()).out]
    with pytest.raises(EventStreamError, match="cut by agentsh-net"):
        list(SDK.converse_stream(**ASK)["stream"])
    machine = DIALECTS["converse"].stream(denying(DELETE), limits=Limits(), fail_closed=True)
    out = (
        machine.feed(begin() + start(0, DELETE)).out
        + machine.keep_alive()
        + machine.feed(stop(0) + end()).out
    )
    REPLY[:] = [200, "application/vnd.amazon.eventstream", out]
    got = list(SDK.converse_stream(**ASK)["stream"])
    assert [next(iter(event)) for event in got] == [
        "messageStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ]
    assert got[1]["contentBlockDelta"]["delta"]["text"] == said(DELETE)
    assert got[3]["messageStop"]["stopReason"] == "end_turn"


# Hostile ones.


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def lying(data: bytes, *, total: int = 0, size: int = 0, mend: bool = True) -> bytes:
    """Return a message whose lengths are wrong by so much; `mend`: its prelude's CRC is right."""
    told, headers, check = struct.unpack_from(">III", data)
    prelude = struct.pack(">II", told + total, headers + size)
    return prelude + struct.pack(">I", crc32(prelude) if mend else check) + data[12:]


USE = '{"contentBlockIndex":1,"start":{"toolUse":{"name":"DENIED","toolUseId":"t"}}}'.replace(
    "DENIED", DELETE
)
BEGUN = message("contentBlockStart", USE)
REST = piece(1, "{}") + stop(1)


def starting(payload: str, kind: str = "contentBlockStart", **headers: str) -> bytes:
    return message(kind, payload, **headers) + REST


HOSTILE: dict[str, bytes] = {
    "as it should be": starting(USE),
    "escaped key": starting(USE.replace('toolUse"', '\\u0074oolUse"')),
    "escaped name": starting(USE.replace(DELETE, "\\u006dcp__fs__delete")),
    "any case": starting(USE.replace("start", "Start").replace('toolUse"', 'ToolUse"')),
    "white space": starting(USE.replace(":", " :\t").replace(",", ",\n")),
    "the name twice": starting(USE.replace('"toolUseId"', '"name":"a","toolUseId"')),
    "the name twice, denied last": starting(USE.replace('"name"', '"name":"a","name"')),
    "start twice": starting(USE[:-1] + ',"start":{}}'),
    "start twice but for its case": starting(USE[:-1] + ',"START":""}'),
    "the call twice but for its case": starting(USE.replace('"t"}}', '"t"},"tooluse":null}')),
    "under another kind": starting(USE, "contentBlockDelta"),
    "under an unknown kind": starting(USE, "contentBlockBegun"),
    "under no kind": starting(USE, ""),
    "as an exception": starting(USE, **{":message-type": "exception"}),
    "as a message of no known type": starting(USE, **{":message-type": "Event"}),
    "with another type": starting(USE, **{":content-type": "text/plain"}),
    "as the provider's own": starting(USE.replace('"toolUseId"', '"type":"server_tool_use","toolUseId"')),
    "no index": starting(USE.replace('"contentBlockIndex":1,', "")),
    "an index that is text": starting(USE.replace(":1,", ':"1",')),
    "behind text of its index": say(1, "a") + starting(USE),
    "within an allowed call": start(1, WEATHER) + starting(USE),
    "within an allowed call of another index": start(0, WEATHER) + starting(USE) + stop(0),
    "after the end": end() + starting(USE),
    "after an exception": exception("throttlingException", "x") + starting(USE),
    "without a stop": BEGUN + end(),
    "without an end": BEGUN + piece(1, "{}"),
    "in the first message": message("messageStart", '{"role":"assistant","content":[{"toolUse":{"name":"DENIED","toolUseId":"t","input":{}}}]}'.replace("DENIED", DELETE)),
    "deep": starting(USE[:-1] + ',"x":' + "[" * 300 + "]" * 300 + "}"),
    "two values": starting("{}" + USE),
    "UTF-16": message("contentBlockStart", USE.encode("utf-16")) + REST,
    "no UTF-8": message("contentBlockStart", USE.encode().replace(b'"t"', b'"\xff"')) + REST,
    "a wrong CRC": flipped(BEGUN, len(BEGUN) - 1) + REST,
    "a changed payload": flipped(BEGUN, len(BEGUN) - 8) + REST,
    "a wrong CRC of the lengths": flipped(BEGUN, 8) + REST,
    "a length that is too long": lying(BEGUN, total=20) + REST,
    "a length that is too short": lying(BEGUN, total=-20) + REST,
    "a length past any bound": lying(BEGUN, total=1 << 30) + REST,
    "headers that eat the payload": lying(BEGUN, size=20) + REST,
    "headers longer than all": lying(BEGUN, size=1 << 20) + REST,
    "lengths of nothing": lying(BEGUN, total=-len(BEGUN)) + BEGUN + REST,
    "two kinds": event_stream._made(b"".join(event_stream._header(":event-type", k) for k in ("messageStart", "contentBlockStart")), USE.encode()) + REST,
    "cut in its CRC": begin() + BEGUN[:-2],
}  # fmt: skip

START = (
    '{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"DENIED","input":{}}}'
).replace("DENIED", DELETE)
OVER = chunk({"type": "content_block_stop", "index": 1})
BASE64 = b64encode(START.encode()).decode()
INVOKED: dict[str, bytes] = {
    "as it should be": chunk(START) + OVER,
    "escaped": chunk(START.replace("tool_use", "\\u0074ool_use")) + OVER,
    "escaped outside": message("chunk", '{"byt\\u0065s":"' + BASE64 + '"}') + OVER,
    "bytes twice": message("chunk", '{"bytes":"e30=","bytes":"' + BASE64 + '"}') + OVER,
    "bytes twice, denied first": message("chunk", '{"bytes":"' + BASE64 + '","bytes":"e30="}') + OVER,
    "in another case": message("chunk", {"Bytes": BASE64}) + OVER,
    "space in the base64": message("chunk", {"bytes": BASE64[:8] + "\n" + BASE64[8:]}) + OVER,
    "junk behind the base64": message("chunk", {"bytes": BASE64 + "===="}) + OVER,
    "no base64": message("chunk", {"bytes": START}) + OVER,
    "plain beside it": message("chunk", {"bytes": "e30=", "event": json.loads(START)}) + OVER,
    "under another kind": message("piece", {"bytes": BASE64}) + OVER,
    "as a message of no known type": message("chunk", {"bytes": BASE64}, **{":message-type": "Event"}) + OVER,
    "as a message of an empty type": message("chunk", {"bytes": BASE64}, **{":message-type": ""}) + OVER,
    "in Converse's shape": chunk({"contentBlockStart": json.loads(USE)}) + chunk({"contentBlockStop": {"contentBlockIndex": 1}}),
    "in OpenAI's": chunk({"choices": [{"delta": {"tool_calls": [{"function": {"name": DELETE, "arguments": "{}"}}]}}]}),
    "in a whole message": chunk({"type": "message_start", "message": {"content": [json.loads(START)["content_block"]]}}),
    "behind another's": chunk({"messageStart": {"role": "assistant"}}) + chunk(START) + OVER,
    "two values": chunk("{}" + START) + OVER,
    "UTF-16": chunk(START.encode("utf-16")) + OVER,
    "a wrong CRC": flipped(chunk(START), 120) + OVER,
    "Converse's own event": BEGUN + REST,
    "Converse's own event as an exception": starting(USE, **{":message-type": "exception"}),
}  # fmt: skip
ROWS = [("converse", name, data) for name, data in HOSTILE.items()] + [
    ("invoke", name, data) for name, data in INVOKED.items()
]


@pytest.mark.parametrize(
    ("operation", "data"), [(o, d) for o, _, d in ROWS], ids=[f"{o}: {n}" for o, n, _ in ROWS]
)
def test_no_shape_brings_anyone_a_denied_call(operation: str, data: bytes) -> None:
    for fail_closed in (False, True):
        result = run(data, denying(DELETE), dialect=DIALECTS[operation], fail_closed=fail_closed)
        assert result.faults or any(j.verdict.blocked for j in result.judged)
        if {f.cause for f in result.faults} != {"frame_too_long"} or fail_closed:
            assert_nobody_runs_it(result.out)
        pieces = run(
            cut_at(data, range(0, len(data), 7)),
            denying(DELETE),
            dialect=DIALECTS[operation],
            fail_closed=fail_closed,
        )
        assert (pieces.out, [f.cause for f in pieces.faults]) == (
            result.out,
            [f.cause for f in result.faults],
        )


def test_a_message_above_the_bound_is_cut_or_told() -> None:
    data = begin() + start(0, DELETE, x="y" * 2000) + stop(0) + end()
    closed = run(data, denying(DELETE), fail_closed=True, limits=Limits(max_frame=1000))
    assert closed.ended
    assert_nobody_runs_it(closed.out)
    open_ = run(data, denying(DELETE), limits=Limits(max_frame=1000))
    assert open_.out == data
    assert [f.cause for f in open_.faults] == ["frame_too_long"]


def test_where_nothing_is_enforced_every_byte_leaves() -> None:
    for operation, _, data in ROWS:
        result = run(data, denying(DELETE), dialect=DIALECTS[operation], enforce=False)
        assert result.out == data


PLAIN = [*HOSTILE.values(), begin(), stop(1), end()]
# Who asks for a Converse stream looks into no chunk.
SOUPS = {"converse": PLAIN, "invoke": [*PLAIN, *INVOKED.values()]}


@pytest.mark.parametrize("operation", SOUPS)
@given(st.data(), CUTS)
@settings(max_examples=60, deadline=None)
def test_a_denied_call_in_hostile_company_never_leaves(
    operation: str, data: st.DataObject, cuts: list[int]
) -> None:
    soup = b"".join(data.draw(st.lists(st.sampled_from(SOUPS[operation]), max_size=4)))
    result = run(cut_at(soup, cuts), denying(DELETE), dialect=DIALECTS[operation])
    if "frame_too_long" not in {f.cause for f in result.faults}:
        assert_nobody_runs_it(result.out)
    assert result.out == run(soup, denying(DELETE), dialect=DIALECTS[operation]).out
