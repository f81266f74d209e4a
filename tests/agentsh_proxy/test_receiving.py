"""A request's body is judged before a byte of it leaves, and what its head led to is made once."""

from __future__ import annotations

import orjson
import pytest
from agentsh_proxy.admission import RefusalError, admit
from agentsh_proxy.asked import asked
from agentsh_proxy.receiving import Reception, dialect_of, subject_of
from loopback import on_loop
from loopback.client import request
from loopback.proxy import Proxy, snapshot

from agentsh_net.core.web.http_head import parse_request


def head_of(path: str, *fields: bytes):
    raw = request(path, b"x", *fields)
    return parse_request(raw[: raw.index(b"\r\n\r\n") + 4])


def asking(proxy, path="/anthropic/v1/messages", *fields):
    head = head_of(path, *fields)
    return asked(head, admit(head, proxy.service.view, {}), proxy.service.view, {})


@on_loop
async def test_a_body_nobody_objects_to_leaves_as_the_very_object(opened):
    proxy = await opened(Proxy(snapshot(1)))
    body = orjson.dumps({"model": "m", "stream": True, "tools": [{"name": "Read"}]})
    received = Reception(proxy.service, asking(proxy))
    assert received.take(body) is body
    assert received.facts.stream
    assert received.facts.parsed is None  # it would be kept for as long as the answer takes


@on_loop
async def test_a_connector_is_refused_and_told_of(opened):
    proxy = await opened(Proxy(snapshot(1, denied_servers=["weather"])))
    body = orjson.dumps(
        {"mcp_servers": [{"name": "weather", "url": "http://127.0.0.1:9/mcp", "type": "url"}]}
    )
    with pytest.raises(RefusalError) as refused:
        Reception(proxy.service, asking(proxy)).take(body)
    assert refused.value.status == 403
    proxy.service.reporter.flush()
    assert [(e["type"], e["action"]) for e in proxy.events] == [("mcp_connector_request", "block")]


@on_loop
async def test_errors_and_events_are_in_the_dialect_that_reads_the_path(opened):
    proxy = await opened(Proxy(snapshot(1)))
    what = asking(proxy, "/openai/v1/responses")
    assert dialect_of(what).name == "openai_responses"
    assert subject_of(what, "req_1") == ("default", "req_1", "openai_responses")
    assert what.held
    assert b"Accept-Encoding: identity" in what.opening
