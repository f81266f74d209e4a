"""A client's question is asked until somebody answers it, and what does not answer it is not believed."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from agentsh_proxy import dns_questions
from agentsh_proxy.dns_questions import answers, ask, failure


def query(name: str = "evil.test") -> bytes:
    return dns.message.make_query(name, "A", use_edns=0).to_wire()


def answered(asked: bytes, address: str = "10.0.0.1") -> bytes:
    question = dns.message.from_wire(asked)
    answer = dns.message.make_response(question)
    answer.answer.append(dns.rrset.from_text(question.question[0].name, 60, "IN", "A", address))
    return answer.to_wire()


def on_one_port() -> tuple[socket.socket, socket.socket]:
    """Return a UDP and a TCP socket on a port that nobody else has of either."""
    while True:
        tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            udp.bind(tcp.getsockname())
        except OSError:
            tcp.close()
            udp.close()
        else:
            return udp, tcp


@contextmanager
def upstream(
    monkeypatch: pytest.MonkeyPatch, patience: float = 5.0
) -> Iterator[tuple[socket.socket, socket.socket]]:
    udp, tcp = on_one_port()
    with udp, tcp:
        udp.setblocking(False)
        monkeypatch.setattr(dns_questions, "_PORT", udp.getsockname()[1])
        monkeypatch.setattr(dns_questions, "TIMEOUT", patience)
        yield udp, tcp


def asking(
    udp: socket.socket,
    asked: bytes,
    says: Callable[[bytes], list[bytes]],
    servers: tuple[str, ...] = ("127.0.0.1",),
) -> tuple[bytes | None, list[bytes]]:
    """Ask, with a name server that says what a test wants it to say."""
    seen: list[bytes] = []

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        while True:
            data, client = await loop.sock_recvfrom(udp, 4096)
            seen.append(data)
            for message in says(data):
                await loop.sock_sendto(udp, message, client)

    async def script() -> bytes | None:
        task = asyncio.create_task(serve())
        try:
            return await ask(asked, servers, stream=False)
        finally:
            task.cancel()

    return asyncio.run(script()), seen


def test_the_answer_comes_under_the_clients_number_and_the_question_went_under_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = query()
    with upstream(monkeypatch) as (udp, _):
        answer, (seen,) = asking(udp, asked, lambda data: [answered(data)])
    assert answer == answered(asked)
    assert seen[2:] == asked[2:]


def test_what_does_not_answer_the_question_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = query()

    def lies(data: bytes) -> list[bytes]:
        number = struct.pack(">H", struct.unpack(">H", data[:2])[0] ^ 1)
        other = answered(data[:2] + query("other.test")[2:], "10.9.9.9")
        return [number + answered(data, "10.9.9.9")[2:], other, data, b"", b"x" * 5, answered(data)]

    with upstream(monkeypatch) as (udp, _):
        answer, _ = asking(udp, asked, lies)
    assert answer == answered(asked)


def test_the_next_server_is_asked_and_in_the_end_nobody_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with upstream(monkeypatch, patience=0.2) as (udp, _):
        answer, _ = asking(udp, query(), lambda data: [answered(data)], ("127.0.0.2", "127.0.0.1"))
        assert answer is not None
        silent, seen = asking(udp, query(), lambda _: [])
    assert silent is None
    assert len(seen) == dns_questions.TRIES


def test_over_tcp_the_whole_answer_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = query()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        answer = answered(data)
        for piece in (len(answer).to_bytes(2, "big"), answer[:20], answer[20:]):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.001)

    async def script(tcp: socket.socket) -> bytes | None:
        server = await asyncio.start_server(serve, sock=tcp)
        async with server:
            return await ask(asked, ["127.0.0.1"], stream=True)

    with upstream(monkeypatch) as (_, tcp):
        assert asyncio.run(script(tcp)) == answered(asked)


def test_a_failure_is_an_answer_that_says_so() -> None:
    asked = query()
    told = dns.message.from_wire(failure(asked))
    assert told.rcode() == dns.rcode.SERVFAIL
    assert told.id == int.from_bytes(asked[:2], "big")
    assert told.flags & dns.flags.RA
    assert answers(failure(asked), asked)
