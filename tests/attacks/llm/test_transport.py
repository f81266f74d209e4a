"""However an answer is labelled, packed or mixed, a denied call in it reaches no client: through real workers, by the SDKs and homely readers."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import ssl
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import brotli
import openai
import pytest
import zstandard
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received
from transcripts import anthropic as messages
from transcripts import openai_chat as chat
from transcripts import openai_responses as responses

ALLOWED, DENIED = "get_weather", "delete_files"
BOM = b"\xef\xbb\xbf"

# What the providers send where a model calls one tool: events, and the same as a whole answer.


def anthropic_answer(tool: str) -> tuple[bytes, bytes]:
    block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {"a": 1}}
    whole = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [block], "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip
    return messages.begin() + messages.call(0, tool, {"a": 1}) + messages.end(), json.dumps(whole).encode()


def chat_answer(tool: str) -> tuple[bytes, bytes]:
    entry = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": '{"a": 1}'}}
    events = chat.call(0, tool, {"a": 1}) + chat.end() + chat.DONE
    return events, chat.completion({"content": None, "tool_calls": [entry]})


def responses_answer(tool: str) -> tuple[bytes, bytes]:
    item = responses.function_call(tool, {"a": 1})
    events = [*responses.begin(), *responses.call(0, item), *responses.end(item)]
    return responses.numbered(events), json.dumps(responses.response(item, status="completed")).encode()


# Ways to send it: the type, further fields, the body.

EVENT_STREAM = b"text/event-stream"
APPLICATION_JSON = b"application/json"
Row = tuple[bytes, tuple[bytes, ...], bytes]
GZIPPED = (b"Content-Encoding: gzip",)

ROWS: dict[str, Callable[[bytes, bytes], Row]] = {
    "as it should be, events": lambda events, _: (EVENT_STREAM, (), events),
    "as it should be, JSON": lambda _, whole: (APPLICATION_JSON, (), whole),
    "JSON as events": lambda _, whole: (EVENT_STREAM, (), whole),
    "JSON behind space, as events": lambda _, whole: (EVENT_STREAM, (), b"\r\n\n \n\n" + whole),
    "JSON behind a byte order mark, as events": lambda _, whole: (EVENT_STREAM, (), BOM + whole),
    "JSON in UTF-16, as events": lambda _, whole: (EVENT_STREAM, (), whole.decode().encode("utf-16")),
    "JSON in UTF-16": lambda _, whole: (APPLICATION_JSON, (), whole.decode().encode("utf-16")),
    "JSON as text": lambda _, whole: (b"text/plain", (), whole),
    "JSON without a type": lambda _, whole: (b"", (), whole),
    "JSON in upper case": lambda _, whole: (b"APPLICATION/JSON; Charset=UTF-8", (), whole),
    "JSON, gzipped": lambda _, whole: (APPLICATION_JSON, GZIPPED, gzip.compress(whole)),
    "JSON, gzipped, in two members": lambda _, whole: (
        APPLICATION_JSON, GZIPPED, gzip.compress(whole[:30]) + gzip.compress(whole[30:]),
    ),
    "JSON, gzipped, without its end": lambda _, whole: (APPLICATION_JSON, GZIPPED, gzip.compress(whole)[:-8]),
    "JSON, deflated": lambda _, whole: (
        APPLICATION_JSON, (b"Content-Encoding: deflate",), zlib.compress(whole),
    ),
    "JSON, br": lambda _, whole: (APPLICATION_JSON, (b"Content-Encoding: br",), brotli.compress(whole)),
    "JSON, zstd in two frames": lambda _, whole: (
        APPLICATION_JSON, (b"Content-Encoding: zstd",), zstandard.compress(whole[:30]) + zstandard.compress(whole[30:]),
    ),
    "events, br": lambda events, _: (EVENT_STREAM, (b"Content-Encoding: br",), brotli.compress(events)),
    "events, zstd and not labelled": lambda events, _: (EVENT_STREAM, (), zstandard.compress(events)),
    "JSON, gzipped and not labelled": lambda _, whole: (APPLICATION_JSON, (), gzip.compress(whole)),
    "JSON, gzipped and not labelled, as events": lambda _, whole: (EVENT_STREAM, (), gzip.compress(whole)),
    "events as JSON": lambda events, _: (APPLICATION_JSON, (), events),
    "events behind space, as JSON": lambda events, _: (APPLICATION_JSON, (), b"\n\n" + events),
    "events behind an unknown field, as JSON": lambda events, _: (APPLICATION_JSON, (), b"foo: 1\n\n" + events),
    "events as text": lambda events, _: (b"text/plain; charset=utf-8", (), events),
    "events behind an unknown field, as text": lambda events, _: (b"text/plain", (), b"foo: 1\n\n" + events),
    "events without a type": lambda events, _: (b"", (), events),
    "events in upper case": lambda events, _: (b"TEXT/EVENT-STREAM; Charset=UTF-8", (), events),
    "events behind a byte order mark": lambda events, _: (EVENT_STREAM, (), BOM + events),
    "events behind JSON": lambda events, _: (EVENT_STREAM, (), b'{"a": 1}\n\n' + events),
    "events behind JSON, as JSON": lambda events, _: (APPLICATION_JSON, (), b'{"a": 1}\n\n' + events),
    "events behind half of JSON": lambda events, _: (EVENT_STREAM, (), b'{"a":\n\n' + events),
    "JSON behind events": lambda _, whole: (EVENT_STREAM, (), b"data: 1\n\ndata: " + whole.replace(b"\n", b"") + b"\n\n"),
    "events, gzipped": lambda events, _: (EVENT_STREAM, GZIPPED, gzip.compress(events)),
    "events, gzipped, without their end": lambda events, _: (EVENT_STREAM, GZIPPED, gzip.compress(events)[:-8]),
    "events, gzipped, as JSON": lambda events, _: (APPLICATION_JSON, GZIPPED, gzip.compress(events)),
    "events, gzipped and not labelled": lambda events, _: (EVENT_STREAM, (), gzip.compress(events)),
    "JSON under a coding nobody knows": lambda _, whole: (APPLICATION_JSON, (b"Content-Encoding: utf-8",), whole),
    "events under a coding nobody knows": lambda events, _: (EVENT_STREAM, (b"Content-Encoding: bogus",), events),
    "JSON under more codings than are undone": lambda _, whole: (
        APPLICATION_JSON, (b"Content-Encoding: identity, identity, identity, identity",), whole,
    ),
    "JSON, gzipped, without the unknown coding that is named too": lambda _, whole: (
        APPLICATION_JSON, (b"Content-Encoding: bogus, gzip",), gzip.compress(whole),
    ),
    "JSON without an end where it ends": lambda _, whole: (APPLICATION_JSON, (), whole + b" more"),
    "JSON behind a space of no JSON's": lambda _, whole: (APPLICATION_JSON, (), b"\xc2\xa0" + whole),
}  # fmt: skip
# No client is the poorer for these: honest upstreams send none of them, and some readers differ.
REFUSED = re.compile(r"UTF-16|without (its|their|an) end|not labelled|named too|of no JSON's")


# Clients. Each returns the names of the tools that it would run; one that raises runs none.

# They speak plain HTTP: to read the system's authorities for each of them costs more than all else here.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def anthropic_sdk(base: str, headers: dict[str, str], *, stream: bool) -> list[str]:
    ask = {
        "model": "claude",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "extra_headers": headers,
    }
    http = anthropic.DefaultHttpxClient(verify=NO_AUTHORITIES)
    with anthropic.Anthropic(base_url=base, api_key="k", max_retries=0, http_client=http) as client:
        if not stream:
            content = client.messages.create(**ask).content
        else:
            with client.messages.stream(**ask) as events:
                content = events.get_final_message().content
    return [block.name for block in content if block.type == "tool_use"]


def chat_sdk(base: str, headers: dict[str, str], *, stream: bool) -> list[str]:
    ask = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}], "extra_headers": headers}
    http = openai.DefaultHttpxClient(verify=NO_AUTHORITIES)
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0, http_client=http) as client:
        if stream:
            pieces = [
                c.delta for part in client.chat.completions.create(stream=True, **ask) for c in part.choices
            ]
        else:
            pieces = [c.message for c in client.chat.completions.create(**ask).choices]
    return [call.function.name for piece in pieces for call in piece.tool_calls or () if call.function.name]


def responses_sdk(base: str, headers: dict[str, str], *, stream: bool) -> list[str]:
    ask: dict[str, Any] = {"model": "gpt", "input": "hi", "extra_headers": headers}
    http = openai.DefaultHttpxClient(verify=NO_AUTHORITIES)
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0, http_client=http) as client:
        if not stream:
            return [
                item.name for item in client.responses.create(**ask).output if item.type == "function_call"
            ]
        found = []
        for event in client.responses.create(stream=True, **ask):
            items = (
                [event.item]
                if hasattr(event, "item")
                else event.response.output
                if hasattr(event, "response")
                else []
            )
            found += [item.name for item in items if item.type == "function_call"]
        return found


def homely(base: str, path: str, headers: dict[str, str], *, stream: bool) -> list[str]:
    """Read an answer in every way that a program without an SDK might: unpacked as far as it goes, as JSON, and line by line."""
    body = json.dumps({"stream": stream}).encode()
    asked = urllib.request.Request(base + path, body, headers | {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as answer:
            text = unpacked(answer.read(), answer.headers.get("Content-Encoding", ""))
    except (OSError, http.client.HTTPException):
        return []
    lines = [
        line.partition(b":")[2]
        for line in re.split(rb"[\r\n]+", text.removeprefix(BOM))
        if line.startswith(b"data:")
    ]
    found = []
    for piece in (text, *lines):
        try:
            found += list(names_in(json.loads(piece.strip())))
        except ValueError:
            found += names_in_the_beginning(piece.decode("utf-8", "replace").strip())
    return found


def names_in_the_beginning(text: str) -> list[str]:
    """Return what is found by a parser that stops where the first value ends (Jackson, Go's Decoder)."""
    try:
        return list(names_in(json.JSONDecoder().raw_decode(text)[0]))
    except ValueError:
        return []


def unpacked(body: bytes, encoding: str) -> bytes:
    """Return what a forgiving decoder makes of a body, which looks at the bytes where the head says nothing."""
    if encoding == "br":
        return brotli.decompress(body)
    if encoding == "zstd" or body.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            return reader.read()
    if encoding == "deflate":
        return zlib.decompress(body)
    text = b"" if body.startswith(b"\x1f\x8b") else body
    while body.startswith(b"\x1f\x8b"):
        decoder = zlib.decompressobj(31)
        text += decoder.decompress(body) + decoder.flush()
        body = decoder.unused_data
    return text


def names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (item for key, item in value.items() if key == "name" and isinstance(item, str))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from names_in(item)


PROVIDERS = {
    "anthropic": (anthropic_answer, anthropic_sdk, "/v1/messages"),
    "openai": (chat_answer, chat_sdk, "/v1/chat/completions"),
    "openai_responses": (responses_answer, responses_sdk, "/v1/responses"),
}


async def provider(conversation: Any, received: Received) -> None:
    """Answer as the request's `x-row` says: dialect, row, tool."""
    dialect, row, tool = received.values("x-row")[0].decode().split("|")
    content_type, fields, body = ROWS[row](*PROVIDERS[dialect][0](tool))
    lines = [b"HTTP/1.1 200 OK", *fields, b"Content-Length: %d" % len(body)]
    lines += [b"Content-Type: " + content_type] if content_type else []
    await conversation.send(
        b"\r\n".join(lines) + b"\r\n\r\n", *(body[at : at + 7] for at in range(0, 21, 7)), body[21:]
    )


@pytest.fixture(scope="module")
def running() -> Iterator[RunningPool]:
    with RunningPool(provider, snapshot) as pool:
        yield pool


@pytest.fixture(scope="module")
def auditing() -> Iterator[RunningPool]:
    with RunningPool(provider, lambda port: snapshot(port, enforce_policy=False)) as pool:
        yield pool


def run_by(base: str, dialect: str, row: str, tool: str, *, stream: bool) -> dict[str, list[str]]:
    """Return which tools each client would run."""
    _, sdk, path = PROVIDERS[dialect]
    headers = {"x-row": f"{dialect}|{row}|{tool}"}
    try:
        by_sdk = sdk(base, headers, stream=stream)
    except Exception:  # an SDK that raises anything at all runs nothing
        by_sdk = []
    return {"sdk": by_sdk, "homely": homely(base, path, headers, stream=stream)}


def upstream_of(pool: RunningPool) -> str:
    return f"http://127.0.0.1:{pool._upstream.port}"


@pytest.mark.parametrize("stream", [True, False], ids=["a stream is asked for", "no stream is asked for"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("dialect", PROVIDERS)
def test_a_denied_call_reaches_no_client_and_an_allowed_one_reaches_those_that_read_it(
    running, dialect, row, stream
):
    denied = run_by(running.base, dialect, row, DENIED, stream=stream)
    assert DENIED not in {name for names in denied.values() for name in names}
    if not REFUSED.search(row):
        straight = run_by(upstream_of(running), dialect, row, ALLOWED, stream=stream)
        got = run_by(running.base, dialect, row, ALLOWED, stream=stream)
        assert all(set(names) <= set(got[client]) for client, names in straight.items())
        assert ALLOWED in got["homely"]


@pytest.mark.parametrize("stream", [True, False], ids=["a stream is asked for", "no stream is asked for"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("dialect", PROVIDERS)
def test_where_nothing_is_enforced_each_client_gets_what_it_gets_without_us(auditing, dialect, row, stream):
    straight = run_by(upstream_of(auditing), dialect, row, DENIED, stream=stream)
    assert DENIED in straight["homely"]  # each row is an attack that some client falls for
    auditing.events.clear()
    assert run_by(auditing.base, dialect, row, DENIED, stream=stream) == straight
    told = auditing.wait_for_events(2)
    assert {(e.action, e.would) for e in told} >= {("allow", "block")}


@pytest.mark.parametrize("dialect", PROVIDERS)
def test_the_sdks_fall_for_the_plain_rows_without_us(running, dialect):
    for row, stream in (("as it should be, events", True), ("as it should be, JSON", False)):
        assert DENIED in run_by(upstream_of(running), dialect, row, DENIED, stream=stream)["sdk"]
