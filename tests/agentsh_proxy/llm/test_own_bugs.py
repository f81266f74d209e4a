"""A bug of ours, wherever it is, lets nothing pass and leaves no client waiting: an error in the API's shape, an event, and the log."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from agentsh_proxy.llm import exchange as exchanges
from agentsh_proxy.llm.asked import Asked
from agentsh_proxy.llm.receiving import Reception
from agentsh_proxy.llm.server import ClientConnection
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, chunked, response

from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.anthropic import stream as anthropic_stream

MESSAGES = "/anthropic/v1/messages"
BLOCK = {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}
ANSWER = orjson.dumps({"type": "message", "content": [BLOCK], "stop_reason": "tool_use"})
EVENTS = b"".join(
    b"event: %b\ndata: %b\n\n" % (each["type"].encode(), orjson.dumps(each))
    for each in (
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": BLOCK},
        {"type": "content_block_stop", "index": 0},
    )
)


class OurBugError(Exception):
    """Stands for a KeyError or the like."""


def bug(*_args, **_kwargs):
    raise OurBugError


@pytest.fixture
def told() -> list[BaseException]:
    return []


async def asked(opened, told, *answer, wants=b'{"tools":[{"name":"a"}]}', path=MESSAGES, times=1):
    """Ask through a proxy; return it, its upstream, and the answers."""
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    upstream = await opened(Upstream(answering(*answer)))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    return (
        proxy,
        upstream,
        [await (await opened(Client(proxy.port))).ask(request(path, wants)) for _ in range(times)],
    )


def is_error_of_anthropic(body: bytes) -> bool:
    value = orjson.loads(body)
    return value["type"] == "error" and "internal error" in value["error"]["message"]


@pytest.mark.parametrize("where", ["the dialect's reader", "what is judged of it", "its way out"])
@on_loop
async def test_a_request_that_breaks_us_is_refused_and_told_of(opened, told, monkeypatch, where):
    owner, name = {
        "the dialect's reader": (anthropic_request, "_may_name_server"),
        "what is judged of it": (Reception, "_learned"),
        "its way out": (Asked, "request"),
    }[where]
    monkeypatch.setattr(owner, name, bug)
    proxy, upstream, answers = await asked(opened, told, response(ANSWER), times=2)
    for answer in answers:
        assert answer.status == 502
        assert is_error_of_anthropic(answer.body)
    assert upstream.requests == []
    assert [event["action"] for event in proxy.events] == ["block", "block"]
    assert {event["type"] for event in proxy.events} <= {"llm_request_refused", "llm_response_uninspected"}
    assert list(map(type, told)) == [OurBugError, OurBugError]


@on_loop
async def test_a_request_that_is_read_at_once_and_breaks_us_is_refused_too(opened, told, monkeypatch):
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    upstream = await opened(Upstream(answering(response(b"{}"))))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    for _ in range(3):
        assert (await client.ask(request(MESSAGES, b'{"tools":[{"name":"a"}]}'))).status == 200
    monkeypatch.setattr(Reception, "_learned", bug)
    answer = await client.ask(request(MESSAGES, b'{"tools":[{"name":"a"}]}'))
    assert (answer.status, is_error_of_anthropic(answer.body)) == (502, True)
    assert len(upstream.requests) == 3
    assert [(event["type"], event["action"]) for event in proxy.events] == [("llm_request_refused", "block")]
    assert list(map(type, told)) == [OurBugError]


@pytest.mark.parametrize("where", ["the machine", "what is chosen by its head"])
@pytest.mark.parametrize("streamed", [True, False])
@on_loop
async def test_an_answer_that_breaks_us_ends_in_an_error_and_is_told_of(
    opened, told, monkeypatch, where, streamed
):
    if where == "the machine":
        monkeypatch.setattr(anthropic_stream.Rulings, "decide", bug)
    else:
        monkeypatch.setattr(exchanges, "choose", bug)
    sent = chunked(EVENTS) if streamed else [response(ANSWER)]
    proxy, _, (answer,) = await asked(opened, told, *sent, wants=b'{"stream":true}' if streamed else b"{}")
    assert b"tool_use" not in answer.body
    assert b"internal error" in answer.body
    if not (streamed and where == "the machine"):
        assert answer.status == 502
        assert is_error_of_anthropic(answer.body)
    (event,) = proxy.events
    assert (event["type"], event["action"], event["cause"], event["rule"]) == (
        "llm_response_uninspected",
        "block",
        "internal_error",
        "protocol",
    )
    assert event["dialect"] == "anthropic"
    assert list(map(type, told)) == [OurBugError]


@on_loop
async def test_a_bug_in_a_second_ends_no_second_after_it(opened, told, monkeypatch):
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    proxy = await opened(Proxy(snapshot(1)))
    monkeypatch.setattr(proxy.service.pool, "sweep", bug)
    await until(lambda: len(told) >= 2)
    monkeypatch.undo()


@on_loop
async def test_a_connection_whose_second_breaks_us_is_cut_and_keeps_no_other_waiting(
    opened, told, monkeypatch
):
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    proxy = await opened(Proxy(snapshot(1)))
    clients = [await opened(Client(proxy.port)) for _ in range(2)]
    await until(lambda: proxy.counts.open_connections == 2)
    monkeypatch.setattr(ClientConnection, "tick", bug)
    for client in clients:
        assert await client.reader.read() == b""
    assert list(map(type, told)) == [OurBugError, OurBugError]
    assert [(event["cause"], event["action"]) for event in proxy.events] == [("internal_error", "block")] * 2
