"""A request of megabytes leaves whole and as policy has it, and no other stream of its worker waits for that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import orjson
from agentsh_proxy.llm.guarding import LONG
from agentsh_proxy.llm.upstream import SLICE, UpstreamConnection
from agentsh_proxy.llm.view import Origin
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream

from agentsh_net.core.errors import ProtocolError

MESSAGES = "/anthropic/v1/messages"
TEXT = "mail ann@example.com about " + "many words " * (LONG // 8)
BODY = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": TEXT}]})
REDACTED = BODY.replace(b"ann@example.com", b"[REDACTED:email]")


class Gate:
    """Lets forked computations go on once it is open; or fails them."""

    def __init__(self, proxy: Proxy, error: ProtocolError | None = None) -> None:
        self.open = asyncio.Event()
        self.waiting = 0
        self._run, self._error = proxy.service.forked.run, error
        proxy.service.forked = SimpleNamespace(run=self.run)

    async def run(self, work):
        self.waiting += 1
        try:
            await self.open.wait()
        finally:
            self.waiting -= 1
        if self._error is not None:
            raise self._error
        return await self._run(work)


@on_loop
async def test_others_are_served_while_a_long_body_is_searched_and_it_leaves_without_what_was_found(opened):
    provider = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(provider.port, dlp={"mode": "redact"})))
    gate = Gate(proxy)
    long, other = await opened(Client(proxy.port)), await opened(Client(proxy.port))
    asking = asyncio.ensure_future(long.ask(request(MESSAGES, BODY)))
    await until(lambda: gate.waiting)
    assert proxy.service.load.size == len(BODY)  # it counts as held for as long
    assert (await other.ask(request(MESSAGES, b'{"model":"m"}'))).status == 200
    assert [each.body for each in provider.requests] == [b'{"model":"m"}']
    gate.open.set()
    assert (await asking).status == 200
    assert provider.requests[-1].body == REDACTED
    assert proxy.service.load.size == 0
    assert (await long.ask(request(MESSAGES, BODY), request(MESSAGES, b"{}"))).status == 200
    assert (await long.answer()).status == 200
    in_their_order = [each.body for each in provider.requests[2:]]  # on one connection
    assert in_their_order == [REDACTED, b"{}"]


@on_loop
async def test_a_client_that_leaves_is_not_searched_for(opened):
    provider = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(provider.port, dlp={"mode": "redact"})))
    gate = Gate(proxy)
    async with Client(proxy.port) as client:
        await client.send(request(MESSAGES, BODY))
        await until(lambda: gate.waiting)
    await until(lambda: not proxy.service._clients and not gate.waiting)
    assert proxy.service.load.size == 0
    assert provider.requests == []


@on_loop
async def test_a_search_that_fails_is_an_error_and_the_connection_goes_on(opened):
    provider = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(provider.port, dlp={"mode": "redact"})))
    Gate(proxy, ProtocolError("the process that computed it died", status=503)).open.set()
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, BODY), request(MESSAGES, b"{}"))
    assert answer.status == 503
    assert "DLP did not search it" in orjson.loads(answer.body)["error"]["message"]
    assert (await client.answer()).status == 200
    assert [each.body for each in provider.requests] == [b"{}"]
    assert [(e["cause"], e["action"]) for e in proxy.events] == [("dlp_unread", "block")]


@on_loop
async def test_a_worker_that_stops_answers_who_waits_for_a_search(opened):
    provider = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(provider.port, dlp={"mode": "redact"})))
    gate = Gate(proxy)
    client = await opened(Client(proxy.port))
    await client.send(request(MESSAGES, BODY))
    await until(lambda: gate.waiting)
    await proxy.service.drain(0)
    assert (await client.answer()).status == 503
    await until(lambda: not gate.waiting)
    assert provider.requests == []


@on_loop
async def test_a_long_body_arrives_whole_on_a_new_connection_and_on_an_idle_one(opened):
    provider = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(provider.port)))
    client = await opened(Client(proxy.port))
    bodies = [
        orjson.dumps({"messages": [str(number) * size]})
        for number, size in enumerate((9 * SLICE, SLICE, 5 << 20))
    ]
    for body in bodies:
        assert (await client.ask(request(MESSAGES, body))).status == 200
    assert [each.body for each in provider.requests] == bodies
    assert proxy.counts.upstream_opened == 1


class Sending:
    """A transport that keeps what is written, a turn of the loop after the other."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = False

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True


def connection(sent: Sending) -> UpstreamConnection:
    turn = SimpleNamespace(write=lambda transport, data: transport.write(data), drop=lambda _: None)
    pool = SimpleNamespace(writes=turn, heads={ORIGIN: None}, idle={ORIGIN: []}, now=0.0)
    made = UpstreamConnection(pool, ORIGIN)
    made.connection_made(sent)
    return made


ORIGIN = Origin("a", 1, tls=False)
ASKED = bytes(range(256)) * (SLICE // 256 * 3 + 1)
EXCHANGE = SimpleNamespace(uploaded=True, on_writable=lambda *, writable: None)


@on_loop
async def test_a_long_request_is_sent_a_slice_a_turn_and_waits_while_the_transport_is_full(opened):
    sent = Sending()
    asking = connection(sent)
    assert asking.ask(EXCHANGE, ASKED)
    assert list(map(len, sent.written)) == [SLICE]
    await asyncio.sleep(0)
    assert list(map(len, sent.written)) == [SLICE] * 2
    asking.pause_writing()
    for _ in range(5):
        await asyncio.sleep(0)
    assert list(map(len, sent.written)) == [SLICE] * 2
    asking.resume_writing()
    await until(lambda: len(sent.written) == 4)
    assert b"".join(sent.written) == ASKED
    asking.release(SimpleNamespace(keep_alive=True))
    assert not sent.aborted


@on_loop
async def test_a_connection_whose_request_was_answered_before_its_end_is_not_used_again(opened):
    sent = Sending()
    asking = connection(sent)
    asking.ask(EXCHANGE, ASKED)
    asking.release(SimpleNamespace(keep_alive=True))
    assert sent.aborted
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(sent.written) == 1
