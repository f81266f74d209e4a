"""The page's process is replaced when it dies, hears nothing but numbers, and ends with its supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.request
from pathlib import Path

import pytest
from running import awaited

from agentsh_net import metrics_page
from agentsh_net.core.configuration.settings import Metrics
from agentsh_net.metrics_page import MetricsPage


def children() -> set[int]:
    """Return this process's children that serve a page."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(") ")[2].split()[1])
            if parent == os.getpid() and b"\0page\0" in (path / "cmdline").read_bytes():
                found.add(int(path.name))
        except (OSError, ValueError):
            continue
    return found


def fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def test_the_process_is_replaced_and_ends_with_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "EVERY", 0.05)
    monkeypatch.setattr(metrics_page, "PAUSE", (0.05, 0.1))

    async def body() -> None:
        page = MetricsPage(Metrics("127.0.0.1", 0), lambda: {"text": "a 1\n", "state": {}, "problems": []})
        page.start()
        try:
            assert await asyncio.to_thread(awaited, lambda: fetched(page.url)) == b"a 1\n"
            (first,) = children()
            os.kill(first, signal.SIGKILL)
            await asyncio.to_thread(awaited, lambda: children() - {first})
            assert await asyncio.to_thread(awaited, lambda: fetched(page.url)) == b"a 1\n"
        finally:
            await page.stop()
        assert children() == set()

    asyncio.run(body())
