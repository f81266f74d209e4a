"""An answer reaches who asked when the supervisor says so, and never otherwise; what has no addresses does not wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import dns.message
import dns.opcode
import dns.rcode
import dns.rrset
import dns.update
import pytest
from agentsh_proxy import dns_stub
from agentsh_proxy.dns_stub import serve

from agentsh_net.core.links.stub_link import MAX_DATAGRAM, Decided, Held, Serving, Upstream, decode, encode


def query(name: str = "evil.test") -> bytes:
    return dns.message.make_query(name, "A").to_wire()


def answer_to(asked: bytes, *, empty: bool = False) -> bytes:
    question = dns.message.from_wire(asked)
    answer = dns.message.make_response(question)
    if not empty:
        answer.answer.append(dns.rrset.from_text(question.question[0].name, 60, "IN", "A", "10.0.0.1"))
    return answer.to_wire()


class Stage:
    """The stub between a client and a supervisor, over real sockets. `upstream` is what the name servers say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.upstream: Callable[[bytes], bytes | None] = answer_to
        self.asked: list[tuple[tuple[str, ...], bool]] = []
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.udp, self.tcp = (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            socket.create_server(("127.0.0.1", 0)),
        )
        self.udp.bind(("127.0.0.1", 0))
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.connect(self.udp.getsockname())
        for each in (self.ours, self.client):
            each.setblocking(False)
        monkeypatch.setattr(dns_stub, "ask", self._ask)

    async def _ask(self, asked: bytes, servers: tuple[str, ...], *, stream: bool) -> bytes | None:
        self.asked.append((servers, stream))
        return self.upstream(asked)

    async def told(self) -> Any:
        async with asyncio.timeout(60):
            return decode(await asyncio.get_running_loop().sock_recv(self.ours, MAX_DATAGRAM))

    def tell(self, message: Any) -> None:
        self.ours.send(encode(message))

    async def got(self, seconds: float = 5) -> bytes | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().sock_recv(self.client, 4096)
        return None

    def play(self, script: Callable[[], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            serving = asyncio.create_task(serve(self.theirs, self.udp, self.tcp))
            assert await self.told() == Serving()
            self.tell(Upstream(("10.0.0.53",)))
            result = await script()
            self.ours.close()
            async with asyncio.timeout(60):
                await serving  # without a supervisor it ends
            return result

        return asyncio.run(whole())


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_an_answer_waits_for_the_supervisor(stage: Stage) -> None:
    asked = query()

    async def script() -> tuple[bytes | None, Any, bytes | None]:
        stage.client.send(asked)
        held = await stage.told()
        early = await stage.got(0.05)
        stage.tell(Decided(held.number, release=True))
        return early, held, await stage.got()

    early, held, late = stage.play(script)
    assert early is None
    assert held.message == late == answer_to(asked)
    assert stage.asked == [(("10.0.0.53",), False)]


@pytest.mark.parametrize("verdict", [False, None], ids=["refused", "no verdict in time"])
def test_an_answer_that_is_not_released_is_a_failure(
    stage: Stage, verdict: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns_stub, "HOLD", 0.05)

    async def script() -> bytes | None:
        stage.client.send(query())
        held = await stage.told()
        stage.tell(Decided(held.number + 1, release=True))  # another's
        if verdict is not None:
            stage.tell(Decided(held.number, release=verdict))
        return await stage.got()

    assert dns.message.from_wire(stage.play(script)).rcode() == dns.rcode.SERVFAIL


def test_what_has_no_addresses_does_not_wait_and_nobodys_answer_is_a_failure(stage: Stage) -> None:
    async def script() -> list[bytes | None]:
        found = []
        for stage.upstream in (lambda asked: answer_to(asked, empty=True), lambda _: None):
            stage.client.send(query())
            found.append(await stage.got())
        return found

    empty, nobody = stage.play(script)
    assert dns.message.from_wire(empty).rcode() == dns.rcode.NOERROR
    assert dns.message.from_wire(nobody).rcode() == dns.rcode.SERVFAIL


def test_what_is_no_question_is_asked_of_nobody(stage: Stage) -> None:
    change = dns.update.UpdateMessage("test")
    change.add("evil", 60, "A", "10.0.0.1")
    notice = dns.message.make_query("test", "SOA")
    notice.set_opcode(dns.opcode.NOTIFY)

    async def script() -> list[bytes | None]:
        found = []
        for message in (change, notice):
            stage.client.send(message.to_wire())
            found.append(await stage.got())
        return found

    for said, asked in zip(stage.play(script), (change, notice), strict=True):
        answer = dns.message.from_wire(said)
        assert (answer.id, answer.opcode(), answer.rcode()) == (asked.id, asked.opcode(), dns.rcode.NOTIMP)
    assert stage.asked == []


def test_tcp_clients_ask_one_after_the_other_on_one_connection(stage: Stage) -> None:
    first, second = query("a.test"), query("b.test")

    async def script() -> list[bytes]:
        reader, writer = await asyncio.open_connection(*stage.tcp.getsockname())
        for asked in (first, second):
            writer.write(len(asked).to_bytes(2, "big") + asked)
        found = []
        for _ in range(2):
            held = await stage.told()
            assert isinstance(held, Held)
            stage.tell(Decided(held.number, release=True))
            found.append(await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big")))
        writer.close()
        return found

    assert stage.play(script) == [answer_to(first), answer_to(second)]
    assert [stream for _, stream in stage.asked] == [True, True]


def test_whoever_keeps_the_stub_waiting_longest_makes_room_for_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns_stub, "MAX_STREAMS", 2)
    monkeypatch.setattr(dns_stub, "MAX_QUESTIONS", 2)
    slow = query("slow.test")

    async def upstream(asked: bytes, _servers: tuple[str, ...], *, stream: bool) -> bytes | None:
        if asked[12:] == slow[12:]:
            await asyncio.Event().wait()
        return answer_to(asked, empty=True)

    monkeypatch.setattr(dns_stub, "ask", upstream)

    async def over_tcp() -> bytes:
        reader, writer = await asyncio.open_connection(*stage.tcp.getsockname())
        writer.write(len(query()).to_bytes(2, "big") + query())
        found = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        writer.close()
        return found

    async def script() -> tuple[bytes, bytes | None]:
        silent = [await asyncio.open_connection(*stage.tcp.getsockname()) for _ in range(4)]
        async with asyncio.timeout(5):  # half of the time that the silent have
            answered = await over_tcp()
        for _ in range(4):
            stage.client.send(slow)
        stage.client.send(query())
        last = await stage.got()
        for _, writer in silent:
            writer.close()
        return answered, last

    for answer in stage.play(script):
        assert dns.message.from_wire(answer).rcode() == dns.rcode.NOERROR


def test_what_is_no_query_is_not_answered(stage: Stage) -> None:
    async def script() -> list[bytes | None]:
        found = []
        for data in (b"", b"x" * 20, answer_to(query()), query() + bytes(5000)):
            stage.client.send(data)
            found.append(await stage.got(0.02))
        return found

    assert stage.play(script) == [None] * 4
    assert stage.asked == []
