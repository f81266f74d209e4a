"""Servers of the official SDK are discovered in both eras, over both HTTP transports, and watched as they change."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agentsh_proxy.http_client import HttpClient
from agentsh_proxy.mcp_client.discovery import Backoff, Discovered, Watcher
from agentsh_proxy.mcp_client.session import Session
from mcp_peers.asking import discover
from mcp_peers.scripted import run

from agentsh_net.core.mcp.exchange import MODERN
from agentsh_net.core.mcp.http_rules import address
from agentsh_net.core.model import Server, Transport

PROGRAM = Path(__file__).parent.parent / "mcp_peers" / "sdk_server.py"
OWN = {"add", "tell"}  # its tools before it grows


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def sdk_server(kind: str, port: int = 0) -> Iterator[int]:
    """Run an SDK server until the block ends; it answers when the block begins."""
    port = port or free_port()
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), kind, str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if b"Uvicorn running" in line:
                    break
            else:
                pytest.fail(f"the SDK server did not start: {process.wait()}")
            yield port
        finally:
            process.kill()


@pytest.fixture(scope="module")
def streamable() -> Iterator[int]:
    with sdk_server("http") as port:
        yield port


@pytest.fixture(scope="module")
def sse() -> Iterator[int]:
    with sdk_server("sse") as port:
        yield port


def declared(port: int, path: str = "/mcp", transport: Transport = Transport.HTTP) -> Server:
    return Server("peer", transport, url=f"http://127.0.0.1:{port}{path}", host="127.0.0.1", port=port)


def found(server: Server) -> Discovered:
    result: list[Discovered] = []

    async def scene() -> None:
        result.append(await discover(server, within=20))

    run(scene())
    return result[0]


def check(offer: Discovered) -> None:
    assert offer.server_info["name"] == "peer"
    assert offer.instructions == "Use add for sums."
    (tool,) = (t for t in offer.tools if t["name"] == "add")
    assert tool["title"] == "Sum"
    assert tool["description"] == "Add two numbers."
    assert tool["annotations"] == {"readOnlyHint": True}
    assert tool["_meta"] == {"vendor/x": 1}
    assert tool["inputSchema"]["properties"]["a"]["description"] == "first"


@pytest.mark.parametrize("kind", ["http", "json", "stateless"])
def test_a_streamable_server_is_found_in_the_modern_era(kind: str) -> None:
    with sdk_server(kind) as port:
        offer = found(declared(port))
    check(offer)
    assert (offer.era, offer.protocol_version, offer.transport) == ("modern", MODERN, "http")


def test_a_redirect_inside_the_origin_is_followed(streamable: int) -> None:
    check(found(declared(streamable, "/mcp/")))


def legacy_listing(port: int) -> tuple[Any, list[str]]:
    """List twice over one legacy session; return the second listing and the session ids the server gave."""
    result: list[Any] = []

    async def scene() -> None:
        session = Session(declared(port))
        session._talk.probe = False
        first = await session.list(20)
        result.append(await session.list(20))
        assert result[0].tools == first.tools
        result.append(session._carrier._session_id)  # type: ignore[union-attr]
        await session.close()

    run(scene())
    return result[0], result[1]


@pytest.mark.parametrize(("kind", "stateful"), [("http", True), ("json", True), ("stateless", False)])
def test_a_streamable_server_is_found_in_the_legacy_era(kind: str, stateful: bool) -> None:
    with sdk_server(kind) as port:
        listing, session_id = legacy_listing(port)
    assert (listing.version, listing.era) == ("2025-11-25", "legacy")
    assert listing.instructions == "Use add for sums."
    assert [t["name"] for t in listing.tools] == ["add", "tell"]
    assert bool(session_id) is stateful


def test_both_eras_tell_the_same_definitions(streamable: int) -> None:
    listing, _ = legacy_listing(streamable)
    modern = found(declared(streamable))
    assert json.dumps(listing.tools[0], sort_keys=True) == json.dumps(modern.tools[0], sort_keys=True)


@pytest.mark.parametrize("transport", [Transport.SSE, Transport.HTTP])
def test_an_http_sse_server_is_found_however_it_is_declared(sse: int, transport: Transport) -> None:
    offer = found(declared(sse, "/sse", transport))
    check(offer)
    assert (offer.era, offer.transport) == ("legacy", "sse")


async def post(port: int, target: str) -> None:
    client = HttpClient(address(f"http://127.0.0.1:{port}/"))
    async with await client.request("POST", target, ()) as response:
        assert response.status == 200
    client.close()


class Reports:
    """What a watcher reported, to be waited for."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def __call__(self, report: dict[str, Any]) -> None:
        self.all.append(report)
        self._news.set()

    async def until(self, names: set[str] | None) -> dict[str, Any]:
        """Wait for a report of exactly these tools, or (None) of a failure, not looked at before."""
        while True:
            while self.all:
                report = self.all.pop(0)
                if "listed" in report:  # what there is besides tools
                    continue
                tools = {t["name"] for t in report["tools"]} if report["ok"] else None
                if tools == names:
                    return report
            self._news.clear()
            await self._news.wait()


def test_a_modern_server_that_changes_is_listed_again_at_once() -> None:
    with sdk_server("http") as port:

        async def scene() -> None:
            reports = Reports()
            watcher = Watcher([declared(port)], reports, ttl=3600, pause=0.01)
            watcher.start()
            await reports.until(OWN)
            await post(port, "/grow?name=second")
            await reports.until(OWN | {"second"})
            await post(port, "/grow?name=third")
            await reports.until(OWN | {"second", "third"})
            await watcher.stop()

        run(scene())


def test_a_server_that_tells_nobody_is_listed_again_in_time() -> None:
    with sdk_server("sse") as port:

        async def scene() -> None:
            reports = Reports()
            watcher = Watcher([declared(port, "/sse", Transport.SSE)], reports, ttl=0.05, pause=0.01)
            watcher.start()
            await reports.until(OWN)
            await post(port, "/grow?name=second")
            await reports.until(OWN | {"second"})
            await watcher.stop()

        run(scene())


@pytest.mark.parametrize(
    ("kind", "path", "transport"), [("http", "/mcp", Transport.HTTP), ("sse", "/sse", Transport.SSE)]
)
def test_a_server_that_dies_is_reported_and_found_again(kind: str, path: str, transport: Transport) -> None:
    port = free_port()

    async def scene() -> None:
        reports = Reports()
        watcher = Watcher(
            [declared(port, path, transport)], reports, ttl=0.05, pause=0.01, backoff=Backoff(0.05, 0.1)
        )
        watcher.start()
        failure = await reports.until(None)
        assert "cannot be reached" in failure["error"]
        for _ in range(2):
            with sdk_server(kind, port):
                await reports.until(OWN)
            failure = await reports.until(None)
            assert failure["server_id"] == "peer"
        await watcher.stop()

    run(scene())
