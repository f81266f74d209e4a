"""A request's body is judged before a byte of it leaves, and what its head led to is made once."""

from __future__ import annotations

import os

import orjson
import pytest
from agentsh_proxy.llm import guarding
from agentsh_proxy.llm.admission import RefusalError, admit
from agentsh_proxy.llm.asked import asked
from agentsh_proxy.llm.receiving import Reception
from loopback import on_loop
from loopback.client import request
from loopback.proxy import Proxy, snapshot

from agentsh_net.core.dlp.tokens import Vaults
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
async def test_errors_and_events_are_in_the_dialect_that_reads_the_path(opened):
    proxy = await opened(Proxy(snapshot(1)))
    what = asking(proxy, "/openai/v1/responses")
    assert what.admitted.dialect.name == "openai_responses"
    assert what.subject("req_1") == ("default", "req_1", "openai_responses")
    assert what.held
    assert b"Accept-Encoding: identity" in what.opening


APPROVED = {
    "model": "m",
    "input": [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}],
}
UNREAD = "/openai/v1/threads/runs"  # may carry calls that no dialect reads


def received(proxy, path, value):
    """Return what leaves of a body, as JSON, or why it does not; and what was told."""
    what = asking(proxy, path)
    reception = Reception(proxy.service, what)
    body = orjson.dumps(value)
    try:
        left = orjson.loads((reception.take if what.admitted.inspected else reception.pass_by)(body))
    except RefusalError as refused:
        left = str(refused)
    proxy.service.reporter.flush()
    return left, [(e["type"], e["action"], e.get("would"), e["rule"]) for e in proxy.events]


@pytest.mark.parametrize(
    ("closed", "told"),
    [
        (False, ("llm_response_uninspected", "allow", None, "sandbox.mcp.fail_closed")),
        (True, ("mcp_tool_call_intercepted", "block", None, "sandbox.mcp.fail_closed")),
    ],
)
@on_loop
async def test_an_approval_of_a_call_that_nobody_saw_goes_by_fail_closed(opened, closed, told):
    proxy = await opened(Proxy(snapshot(1, fail_closed=closed)))
    left, events = received(proxy, "/openai/v1/responses", APPROVED)
    assert "the approval of tool '' is blocked" in left if closed else left == APPROVED
    assert events == [told]


@pytest.mark.parametrize("path", ["/openai/v1/responses", "/openai/v1/embeddings"])
@on_loop
async def test_what_dlp_finds_does_not_leave_and_is_told_of(opened, path):
    proxy = await opened(Proxy(snapshot(1, dlp={"mode": "redact"})))
    left, events = received(proxy, path, {"model": "m", "input": "mail ann@example.com"})
    assert left["input"] == "mail [REDACTED:email]"
    assert events == [("llm_request_redacted", "allow", None, "dlp")]


@on_loop
async def test_a_body_that_no_dialect_reads_leaves_as_the_very_object(opened):
    proxy = await opened(Proxy(snapshot(1)))
    for path in ("/openai/v1/embeddings", UNREAD):
        body = orjson.dumps({"model": "m", "input": "mail ann@example.com"})
        assert Reception(proxy.service, asking(proxy, path)).pass_by(body) is body


WEATHER = {"type": "mcp", "server_label": "weather", "server_url": "http://127.0.0.1:9/mcp"}


@pytest.mark.parametrize(
    "body",
    [
        {"integrations": [{"type": "ephemeral_mcp", "server_label": "weather", "server_url": WEATHER["server_url"]}]},
        {"integrations": ["mcp/weather"]},
        {"tools": [WEATHER]},
    ],
)  # fmt: skip
@on_loop
async def test_a_connector_is_judged_at_paths_that_nobody_lists(opened, body):
    proxy = await opened(Proxy(snapshot(1, denied_servers=["weather"])))
    plain = orjson.dumps({"model": "m", "input": "x", **body})
    with pytest.raises(RefusalError) as refused:
        Reception(proxy.service, asking(proxy, "/openai/api/v1/chat")).pass_by(plain)
    assert refused.value.status == 403
    counted = Reception(proxy.service, asking(proxy, "/anthropic/v1/messages/count_tokens"))
    assert counted.pass_by(plain) is plain  # it calls nothing
    proxy.service.reporter.flush()
    assert [(e["type"], e["action"], e["server_id"]) for e in proxy.events] == [
        ("mcp_connector_request", "block", "weather")
    ]


LONG_TEXT = "x " * guarding.LONG + "mail ann@example.com"


@pytest.mark.parametrize("mode", ["redact", "tokenize"])
@pytest.mark.parametrize("path", ["/openai/v1/responses", "/openai/v1/embeddings"])
@on_loop
async def test_a_long_body_is_searched_apart_and_leaves_as_if_it_had_been_searched_here(opened, mode, path):
    proxy = await opened(Proxy(snapshot(1, dlp={"mode": mode})))
    what, body = asking(proxy, path), orjson.dumps({"model": "m", "input": LONG_TEXT})
    here, apart = (Reception(proxy.service, what, defers=defers) for defers in (False, True))
    left = here.take(body) if what.admitted.inspected else here.pass_by(body)
    assert b"ann@example.com" not in left
    assert not here.unsearched
    proxy.service.vaults = Vaults(proxy.service.vaults._key)
    unsearched = apart.take(body) if what.admitted.inspected else apart.pass_by(body)
    assert unsearched is body is apart.unsearched
    assert await apart.search(unsearched) == left
    assert apart.asked.opening == here.asked.opening
    known = proxy.service.vaults.of("default").restored(left.decode())
    assert ("ann@example.com" in known) == (mode == "tokenize")
    proxy.service.reporter.flush()
    assert [(e["type"], e["counts"]) for e in proxy.events] == [("llm_request_redacted", {"email": 1})] * 2


@on_loop
async def test_a_long_body_that_cannot_be_read_goes_by_fail_closed(opened):
    for closed in (False, True):
        proxy = await opened(Proxy(snapshot(1, dlp={"mode": "redact"}, fail_closed=closed)))
        body = orjson.dumps({"model": "m", "input": LONG_TEXT}) + b"]"
        reception = Reception(proxy.service, asking(proxy, "/openai/v1/responses"), defers=True)
        if not closed:
            assert await reception.search(reception.take(body)) is body
        else:
            reception.unsearched = body
            with pytest.raises(RefusalError, match="DLP did not search it") as refused:
                await reception.search(body)
            assert refused.value.status == 400
        proxy.service.reporter.flush()
        assert proxy.events[-1]["cause"] == "dlp_unread"


@on_loop
async def test_a_search_that_comes_to_nothing_lets_nothing_leave(opened, monkeypatch):
    proxy = await opened(Proxy(snapshot(1, dlp={"mode": "redact"})))
    monkeypatch.setattr(guarding.Guard, "scrub", lambda *_: os._exit(9))
    reception = Reception(proxy.service, asking(proxy, "/openai/v1/responses"), defers=True)
    body = reception.take(orjson.dumps({"model": "m", "input": LONG_TEXT}))
    with pytest.raises(RefusalError, match="died") as refused:
        await reception.search(body)
    assert refused.value.status == 503
    proxy.service.reporter.flush()
    assert [(e["cause"], e["action"]) for e in proxy.events] == [("dlp_unread", "block")]
