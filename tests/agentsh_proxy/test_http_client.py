"""The HTTP client takes only what HTTP/1.1 allows, bounds it, keeps connections, and checks pins before it sends a byte."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from agentsh_proxy.http_client import HttpClient, tls_context
from agentsh_proxy.http_connection import CutError
from mcp_peers.scripted import STREAM, Handler, Scripted, Seen, Wire, run, serving

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.http_rules import address

Scene = Callable[[HttpClient, Scripted], Awaitable[None]]


def play(handler: Handler, scene: Scene) -> None:
    async def main() -> None:
        async with serving(handler) as server:
            client = HttpClient(address(server.url()))
            try:
                await scene(client, server)
            finally:
                client.close()

    run(main())


def test_a_body_that_nobody_reads_does_not_cost_the_connection() -> None:
    async def accepted(_: Seen, wire: Wire) -> None:
        await wire.answer(202, b"Accepted")

    async def scene(client: HttpClient, server: Scripted) -> None:
        for _ in range(3):
            response = await client.request("POST", "/messages", (), b"{}")
            await response.release()
        assert [s.connection for s in server.seen] == [0, 0, 0]

    play(accepted, scene)


def test_a_request_whose_answer_is_of_no_interest_goes_out_at_once_where_a_connection_is_kept() -> None:
    async def accepted(seen: Seen, wire: Wire) -> None:
        if seen.body == b"cut":
            wire.cut()
        else:
            await wire.answer(202 if seen.body != b"no" else 400, b"whatever")

    async def scene(client: HttpClient, server: Scripted) -> None:
        ended: list[tuple[int, ProtocolError | None]] = []

        async def post(body: bytes) -> tuple[int, ProtocolError | None]:
            ended.clear()
            assert client.post("/messages", (), body, lambda c: ended.append((c.status, c.error)))
            assert not client.post("/messages", (), b"{}", lambda _: None), "its connection is in use"
            while not ended:
                await asyncio.sleep(0)
            return ended[0]

        assert not client.post("/messages", (), b"{}", lambda _: None), "there is none yet"
        await (await client.request("POST", "/messages", (), b"{}")).release()
        assert [await post(b"{}"), await post(b"no"), await post(b"{}")] == [
            (202, None),
            (400, None),
            (202, None),
        ]
        assert {seen.connection for seen in server.seen} == {0} and len(server.seen) == 4
        status, error = await post(b"cut")
        assert status == 0 and isinstance(error, CutError)
        assert client.connections == 0 and len(ended) == 1

    play(accepted, scene)


def answering(data: bytes, *, then_close: bool = False) -> Handler:
    async def handler(request: Seen, wire: Wire) -> None:
        await wire.raw(data)
        if then_close:
            wire.writer.close()

    return handler


async def fetched(client: HttpClient, limit: int = 1 << 20) -> tuple[int, bytes]:
    async with await client.request("GET", "/mcp", ()) as response:
        return response.status, await response.read(limit)


def test_requests_follow_each_other_on_one_connection() -> None:
    async def echo(request: Seen, wire: Wire) -> None:
        await wire.answer(200, request.body)

    async def scene(client: HttpClient, server: Scripted) -> None:
        for body in (b"one", b"two", b""):
            async with await client.request("POST", "/mcp?q=1", (("X-Key", "k"),), body) as response:
                assert await response.read(100) == body
        assert [s.connection for s in server.seen] == [0, 0, 0]
        first = server.seen[0]
        assert (first.method, first.target, first.body) == ("POST", "/mcp?q=1", b"one")
        assert first.headers["host"] == f"127.0.0.1:{server.port}"
        assert first.headers["accept-encoding"] == "identity"
        assert first.headers["x-key"] == "k"

    play(echo, scene)


@pytest.mark.parametrize(
    ("answer", "close", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", False, b"hello"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            False,
            b"hello",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", True, b"hello"),
        (b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhello", True, b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", False, b""),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            False,
            b"ok",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n",
            False,
            b"ok",
        ),
    ],
)
def test_a_body_ends_where_http_says(answer: bytes, close: bool, body: bytes) -> None:
    async def scene(client: HttpClient, server: Scripted) -> None:
        assert (await fetched(client))[1] == body

    play(answering(answer, then_close=close), scene)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX\x00Y: a\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb",
    ],
)
def test_an_answer_that_two_parsers_could_read_in_two_ways_is_refused(answer: bytes) -> None:
    async def scene(client: HttpClient, server: Scripted) -> None:
        with pytest.raises(ProtocolError) as refused:
            await fetched(client)
        assert refused.value.status == 502

    play(answering(answer), scene)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n",
    ],
)
def test_an_answer_that_is_cut_anywhere_is_an_error(answer: bytes) -> None:
    async def scene(client: HttpClient, server: Scripted) -> None:
        with pytest.raises(CutError, match="closed the connection"):
            await fetched(client)

    play(answering(answer, then_close=True), scene)


def test_a_head_without_end_is_refused() -> None:
    async def endless(request: Seen, wire: Wire) -> None:
        await wire.raw(b"HTTP/1.1 200 OK\r\n")
        while True:
            await wire.raw(b"X-Filler: " + b"x" * 8000 + b"\r\n")

    async def scene(client: HttpClient, server: Scripted) -> None:
        with pytest.raises(ProtocolError, match="head of the server's answer is longer than 65536"):
            await fetched(client)

    play(endless, scene)


def test_a_body_past_its_bound_is_refused() -> None:
    async def scene(client: HttpClient, server: Scripted) -> None:
        with pytest.raises(ProtocolError, match="longer than 10 bytes"):
            await fetched(client, limit=10)
        assert await client.request("GET", "/mcp", ())  # and the client goes on

    play(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"), scene)


def test_a_server_that_sends_more_than_is_read_has_to_wait() -> None:
    sent = 0

    async def flood(request: Seen, wire: Wire) -> None:
        nonlocal sent
        await wire.raw(STREAM)
        while True:
            await wire.chunk(b"x" * 65536)
            sent += 65536

    async def scene(client: HttpClient, server: Scripted) -> None:
        response = await client.request("GET", "/mcp", ())
        chunks = response.chunks()
        before = -1
        while before != sent:  # the server stands still
            before = sent
            for _ in range(50):
                await asyncio.sleep(0)
        assert before < 32 << 20  # socket buffers of both ends, and what is read ahead
        read, goal = 0, sent + (1 << 20)
        while read < goal:  # and goes on when it is read
            read += len(await anext(chunks))
        response.close()

    play(flood, scene)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_memory_ahead_of_the_reader_is_bounded_on_both_loops(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    sent = 0

    async def flood(request: Seen, wire: Wire) -> None:
        nonlocal sent
        await wire.raw(STREAM)
        while sent < 64 << 20:
            await wire.chunk(b"x" * 65536)
            sent += 65536
        await wire.end()

    async def main() -> None:
        async with asyncio.timeout(60), serving(flood) as server:
            client = HttpClient(address(server.url()))
            response = await client.request("GET", "/mcp", ())
            read = 0
            worst = 0
            async for data in response.chunks():
                read += len(data)
                worst = max(worst, response._connection._queued)
            assert read == 64 << 20
            assert worst < 2 << 20
            client.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


class Closing(threading.Thread):
    """A server that answers one request on a connection and closes it when it is told to."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.requests: list[bytes] = []
        self.close, self.closed = threading.Event(), threading.Event()

    def run(self) -> None:
        for _ in range(2):
            connection, _ = self.listening.accept()
            with connection:
                self.requests.append(connection.recv(1 << 16))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                self.close.wait(60)
            self.closed.set()
        self.listening.close()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_request_on_an_idle_connection_that_the_server_had_closed_goes_by_another(loop: Any) -> None:
    async def main() -> None:
        server = Closing()
        server.start()
        async with asyncio.timeout(60):
            client = HttpClient(address(f"http://127.0.0.1:{server.port}/"))
            assert await fetched(client) == (200, b"ok")
            server.close.set()
            server.closed.wait(60)  # with the loop held up, so that it does not see the end
            assert await fetched(client) == (200, b"ok")
            client.close()
        server.join(60)
        assert len(server.requests) == 2

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


def test_a_fresh_connection_that_dies_is_not_tried_again() -> None:
    async def cuts(request: Seen, wire: Wire) -> None:
        wire.cut()

    async def scene(client: HttpClient, server: Scripted) -> None:
        with pytest.raises(CutError):
            await fetched(client)
        assert len(server.seen) == 1

    play(cuts, scene)


def test_a_connection_whose_stream_goes_on_is_closed_and_not_used_again() -> None:
    async def streams(request: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await wire.event({"n": len(request.target)})

    async def scene(client: HttpClient, server: Scripted) -> None:
        for _ in range(2):
            async with await client.request("GET", "/mcp", ()) as response:
                assert b'{"n": 4}' in await anext(response.chunks())
        assert [s.connection for s in server.seen] == [0, 1]

    play(streams, scene)


def test_two_values_of_one_header_are_an_error_and_one_twice_is_not() -> None:
    async def scene(client: HttpClient, server: Scripted) -> None:
        async with await client.request("GET", "/mcp", ()) as response:
            assert response.header("x-same") == "a"
            assert response.header("x-none") == ""
            with pytest.raises(ProtocolError, match="x-two twice"):
                response.header("x-two")

    play(
        answering(
            b"HTTP/1.1 200 OK\r\nX-Same: a\r\nX-Same: a\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: 0\r\n\r\n"
        ),
        scene,
    )


def test_a_header_cannot_break_its_line() -> None:
    async def scene(client: HttpClient, server: Scripted) -> None:
        for value in ("a\r\nX-Injected: 1", "a\nb", "a\0b", "\u2028"):
            with pytest.raises(ProtocolError) as refused:
                await client.request("GET", "/mcp", (("X-Key", value),))
            assert value not in str(refused.value)
        assert server.seen == []

    play(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), scene)


def test_a_port_where_nobody_listens_is_an_error_that_names_it() -> None:
    async def main() -> None:
        async with serving(answering(b"")) as server:
            url = server.url()
        with pytest.raises(ProtocolError, match=rf"{url.removesuffix('/mcp')} cannot be reached"):
            await HttpClient(address(url)).request("GET", "/mcp", ())

    run(main())


def test_a_pin_on_a_plain_connection_is_refused() -> None:
    async def main() -> None:
        async with serving(answering(b"")) as server:
            client = HttpClient(address(server.url()), pin="sha256:" + "0" * 64)
            with pytest.raises(ProtocolError, match="is not TLS"):
                await client.request("GET", "/mcp", ())
            assert server.seen == []

    run(main())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate of 127.0.0.1 that signs itself; the key lies beside it."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the test's certificate, and there is none")
    folder = tmp_path_factory.mktemp("tls")
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    subprocess.run(
        [
            *("openssl", *command.split(), "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"


def server_side(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("hangs_up", ["cut", "close"])
@pytest.mark.parametrize("secure", [False, True])
def test_a_request_that_the_server_has_is_sent_once_though_it_hangs_up_without_an_answer(
    loop: Any, hangs_up: str, certificate: Path, *, secure: bool
) -> None:
    calls: list[Seen] = []

    async def ends(request: Seen, wire: Wire) -> None:
        if request.body == b"call":
            calls.append(request)
            wire.cut() if hangs_up == "cut" else wire.writer.close()
        else:
            await wire.answer(200, b"ok")

    async def main() -> None:
        trust = tls_context()
        trust.load_verify_locations(certificate)
        async with asyncio.timeout(60), serving(ends, server_side(certificate) if secure else None) as server:
            client = HttpClient(address(server.url()), tls=trust if secure else None)
            responses = [await client.request("GET", "/", ()) for _ in range(3)]
            for response in responses:
                await response.release()
            with pytest.raises(CutError):
                await client.request("POST", "/mcp", (), b"call")
            assert len(calls) == 1
            client.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_tls_uses_the_systems_trust_and_the_pin_comes_on_top(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    right = f"sha256:{hashlib.sha256(der).hexdigest()}"

    async def main() -> None:
        ok = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        async with asyncio.timeout(60), serving(ok, server_side(certificate)) as server:
            untrusting = HttpClient(address(server.url()), tls=tls_context(), pin=right)
            with pytest.raises(ProtocolError, match="certificate is not trusted: self-signed certificate"):
                await untrusting.request("GET", "/mcp", ())
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            trust = tls_context()
            for pin in ("", right):
                client = HttpClient(address(server.url()), tls=trust, pin=pin)
                assert await fetched(client) == (200, b"ok")
                assert client.seen is not None
                assert client.seen.certificate == right
                client.close()
            before = len(server.seen)
            wrong = HttpClient(address(server.url()), tls=trust, pin="sha256:" + "0" * 64)
            with pytest.raises(ProtocolError, match=f"another TLS certificate.*{right}"):
                await wrong.request("GET", "/mcp", (("Authorization", "secret"),))
            assert len(server.seen) == before
            assert wrong.seen is not None and wrong.seen.certificate == right, (
                "who it was is known all the same"
            )

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


def test_a_certificate_of_another_host_is_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def main() -> None:
        async with serving(answering(b""), server_side(certificate)) as server:
            client = HttpClient(address(f"https://localhost:{server.port}/"), tls=tls_context())
            with pytest.raises(ProtocolError, match="not trusted"):
                await client.request("GET", "/", ())

    run(main())


def test_the_trust_store_is_the_systems_and_old_tls_is_refused() -> None:
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.cert_store_stats()["x509_ca"] > 0
