"""What connections share follows the policy in force, and ends in good order."""

from __future__ import annotations

import asyncio
from hashlib import sha256

from agentsh_proxy import charging
from agentsh_proxy.llm.reporting import Subject
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, response

from agentsh_net.core.dialects.base import Judged, Step
from agentsh_net.core.model import Action, ToolCall, Verdict

MESSAGES = "/anthropic/v1/messages"


@on_loop
async def test_a_judge_asks_the_policy_in_force_at_each_call(opened):
    proxy = await opened(Proxy(snapshot(1)))
    judge = proxy.service.judge_for("s")
    assert not judge(ToolCall("get_weather")).blocked
    proxy.swap(snapshot(1, denied_tools=[{"server": "weather", "tool": "*"}]))
    assert judge(ToolCall("get_weather")).blocked


@on_loop
async def test_a_rate_limiter_that_does_not_answer_shows_in_the_reason(opened, monkeypatch):
    monkeypatch.setattr(charging, "PATIENCE", 0.05)
    for fail_closed in (True, False):
        limits = {"enabled": True, "default_rpm": 60, "default_burst": 10}
        proxy = await opened(Proxy(snapshot(1, rate_limits=limits, fail_closed=fail_closed)))
        verdict = proxy.service.judge_for("s")(ToolCall("get_weather", "c1"))
        assert verdict.blocked is fail_closed
        assert verdict.reason.endswith("(the rate limiter did not answer)")


@on_loop
async def test_judged_calls_are_counted(opened):
    proxy = await opened(Proxy(snapshot(1)))
    steps = tuple(
        Judged(ToolCall("x"), Verdict(action, "r")) for action in (Action.BLOCK, Action.ALLOW, Action.BLOCK)
    )
    proxy.service.note(Step(b"", steps), Subject("s", "", "anthropic"))
    assert (proxy.counts.calls_judged, proxy.counts.calls_blocked) == (3, 2)
    await until(lambda: len(proxy.events) == 3)


@on_loop
async def test_draining_waits_for_answers_under_way_and_closes_what_is_idle(opened):
    go = asyncio.Event()

    async def script(conversation, _):
        await go.wait()
        await conversation.send(response(b"{}"))

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    idle, busy = await opened(Client(proxy.port)), await opened(Client(proxy.port))
    assert (await idle.ask(request("/", method="GET"))).status == 200
    asking = asyncio.ensure_future(busy.ask(request(MESSAGES, b"{}")))
    await upstream.arrived.wait()
    draining = asyncio.ensure_future(proxy.service.drain(20))
    assert await idle.closed()
    go.set()
    answer = await asking
    assert (answer.status, answer.values("connection")) == (200, [b"close"])
    assert await busy.closed()
    busy.writer.close()
    await draining


@on_loop
async def test_what_does_not_end_in_time_gets_an_error(opened):
    async def script(conversation, _):
        await conversation.gone()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    asking = asyncio.ensure_future(client.ask(request(MESSAGES, b"{}")))
    await upstream.arrived.wait()
    await proxy.service.drain(0.05)
    answer = await asking
    assert answer.status == 503
    assert b"stopping" in answer.body


@on_loop
async def test_a_connection_is_asked_of_whose_it_is_when_it_comes(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    proxy.service.sessions = {sha256(b"tok").hexdigest(): "other"}
    proxy.charges.here = None
    refused = await (await opened(Client(proxy.port))).ask(request(MESSAGES))
    assert (refused.status, refused.values("connection")) == (503, [b"close"])
    proxy.charges.here = "mine"
    client = await opened(Client(proxy.port))
    assert (await client.ask(request(MESSAGES))).status == 200
    proxy.charges.here = None  # it was asked when it came, and not again
    assert (await client.ask(request("/s/tok" + MESSAGES))).status == 200
    assert proxy.charges.contradictions == [("mine", "other")]
    assert len(upstream.requests) == 2
