"""The page answers with what it was told last, only to whom it is for, and says so when nothing is told any more."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import orjson
import pytest
from agentsh_proxy import page
from agentsh_proxy.page import Board, Visit
from loopback import on_loop

from agentsh_net.core.links import link

TOLD = {"text": "a 1\n", "state": {"problems": [], "metrics": {}}, "problems": []}


class Site:
    """A board and its visits on a port of their own."""

    def __init__(self, told: dict[str, Any] | None) -> None:
        self.board = Board("127.0.0.1", asyncio.get_running_loop())
        if told is not None:
            self.board.data_received(link.frame(orjson.dumps(told)))

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Visit(self.board), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def ask(self, line: str, *fields: str) -> tuple[int, bytes, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        host = [] if any(f.lower().startswith("host") for f in fields) else ["Host: localhost"]
        writer.write("\r\n".join([f"{line} HTTP/1.1", *host, *fields, "", ""]).encode())
        answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), head, body


@on_loop
async def test_every_path_says_what_it_is_for(opened):
    site = await opened(Site(TOLD))
    assert (await site.ask("GET /metrics"))[::2] == (200, b"a 1\n")
    assert (await site.ask("GET /healthz"))[::2] == (200, b"ok\n")
    assert (await site.ask("GET /readyz?x=1"))[::2] == (200, b"ready\n")
    assert orjson.loads((await site.ask("GET /state.json"))[2]) == TOLD["state"]
    status, head, body = await site.ask("GET /")
    assert (status, b"script-src 'sha256-" in head, body[:9]) == (200, True, b"<!doctype")
    assert (await site.ask("HEAD /metrics"))[::2] == (200, b"")
    assert (await site.ask("GET /etc/passwd"))[0] == 404


@on_loop
async def test_what_is_not_well_is_not_ready_but_alive(opened):
    site = await opened(Site({**TOLD, "problems": ["layer ebpf is not in force"]}))
    assert (await site.ask("GET /readyz"))[::2] == (503, b"layer ebpf is not in force\n")
    assert (await site.ask("GET /healthz"))[0] == 200


@on_loop
async def test_a_silent_supervisor_is_neither_alive_nor_quoted(opened, monkeypatch):
    never = await opened(Site(None))
    monkeypatch.setattr(page, "STALE", 0.0)
    stale = await opened(Site(TOLD))
    for site in (never, stale):
        for path in ("/healthz", "/readyz", "/metrics", "/state.json"):
            assert (await site.ask(f"GET {path}"))[0] == 503


@pytest.mark.parametrize(
    ("line", "fields", "status"),
    [
        ("GET /metrics", ["Host: evil.example"], 421),
        ("GET /state.json", ["Origin: http://evil.example"], 403),
        ("GET /state.json", ["Origin: http://localhost:1"], 200),
        ("POST /metrics", ["Content-Length: 0"], 405),
        ("GET /metrics", ["Content-Length: 1", "Transfer-Encoding: chunked"], 400),
        ("GET /metrics", ["X: " + "x" * 100_000], 400),
    ],
)
@on_loop
async def test_who_may_not_ask_gets_nothing(opened, line, fields, status):
    site = await opened(Site(TOLD))
    got, _, body = await site.ask(line, *fields)
    assert (got, b"a 1" in body) == (status, False)


@on_loop
async def test_visits_are_bounded_in_number_and_in_time(opened, monkeypatch):
    monkeypatch.setattr(page, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(page, "PATIENCE", 0.2)
    site = await opened(Site(TOLD))
    idle = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(2)]
    assert (await site.ask("GET /healthz"))[0] == 503
    assert [await reader.read() for reader, _ in idle] == [b"", b""]
    assert (await site.ask("GET /healthz"))[0] == 200
    for _, writer in idle:
        writer.close()
