"""Connections are shared by origin, closed in time and kept in number; TLS is verified, and what cannot be reached is told."""

from __future__ import annotations

import asyncio
import ssl
import subprocess

import pytest
from agentsh_proxy.llm import upstream as upstream_module
from agentsh_proxy.llm.upstream_pool import IDLE_SECONDS
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, chunked, response

MESSAGES = "/anthropic/v1/messages"
STREAM = b'{"stream":true}'
SSE = chunked(b"event: ping\ndata: {}\n\n")


@on_loop
async def test_as_many_connections_as_requests_at_once(opened):
    upstream = await opened(Upstream(answering(*SSE)))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    clients = [await opened(Client(proxy.port)) for _ in range(8)]
    for _ in range(5):
        await asyncio.gather(*(client.ask(request(MESSAGES, STREAM)) for client in clients))
    assert upstream.connections <= 8
    assert len(upstream.requests) == 40


@on_loop
async def test_idle_connections_are_closed_in_time_and_kept_in_number(opened, monkeypatch):
    monkeypatch.setattr(upstream_module, "MAX_IDLE", 2)
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    clients = [await opened(Client(proxy.port)) for _ in range(5)]
    pool = proxy.service.pool
    held = asyncio.Event()

    async def hold(conversation, _):
        await held.wait()
        await conversation.send(response(b"{}"))

    upstream.script = hold
    asked = [asyncio.ensure_future(client.ask(request(MESSAGES, b"{}"))) for client in clients]
    await until(lambda: len(upstream.requests) == 5)
    held.set()
    await asyncio.gather(*asked)
    await until(lambda: sum(map(len, pool.idle.values())) == 2)
    pool.sweep(pool.now + IDLE_SECONDS + 1)
    await until(lambda: not any(pool.idle.values()))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


class TlsUpstream(Upstream):
    def __init__(self, context: ssl.SSLContext, *arguments) -> None:
        super().__init__(*arguments)
        self._context = context

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self


def server_context(folder) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


@on_loop
async def test_tls_is_verified_names_its_host_and_speaks_http_1_1(opened, certificate, monkeypatch):
    context = server_context(certificate)
    names = []
    context.sni_callback = lambda _connection, name, _context: names.append(name)
    upstream = await opened(TlsUpstream(context, answering(*SSE)))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    policy = snapshot(upstream.port, base="https://localhost:{}")
    proxy = await opened(Proxy(policy))
    client = await opened(Client(proxy.port))
    for _ in range(3):
        assert (await client.ask(request(MESSAGES, STREAM))).whole
    assert names == ["localhost"]
    assert upstream.connections == 1


@on_loop
async def test_a_certificate_that_does_not_verify_is_a_502_that_says_so(opened, certificate):
    upstream = await opened(TlsUpstream(server_context(certificate)))
    for base in ("https://localhost:{}", "https://127.0.0.1:{}"):
        proxy = await opened(Proxy(snapshot(upstream.port, base=base)))
        client = await opened(Client(proxy.port))
        answer = await client.ask(request(MESSAGES, b"{}"))
        assert answer.status == 502
        assert b"TLS with" in answer.body
    assert upstream.requests == []


@on_loop
async def test_a_connect_that_takes_too_long_is_a_504(opened):
    listening = await asyncio.get_running_loop().run_in_executor(None, _full_backlog)
    server, fillers = listening
    proxy = await opened(Proxy(snapshot(server.getsockname()[1], proxy={"connect_timeout": "300ms"})))
    client = await opened(Client(proxy.port))
    answer = await client.ask(request(MESSAGES, b"{}"))
    assert answer.status == 504
    assert b"within 0.3 s" in answer.body
    for filler in (*fillers, server):
        filler.close()


def _full_backlog():
    """A port that answers no SYN any more: its queue of connections is full."""
    import socket

    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(server.getsockname())
        fillers.append(filler)
    return server, fillers
