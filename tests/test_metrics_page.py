"""The page's process is replaced when it dies, hears nothing but numbers, and ends with its supervisor."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from running import awaited

from agentsh_net import metrics_page
from agentsh_net.core.configuration.settings import Metrics
from agentsh_net.metrics_page import MetricsPage
from agentsh_net.workers import unprivileged


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
        page = MetricsPage(
            Metrics("127.0.0.1", 0), lambda: {"text": "a 1\n", "state": {}, "problems": []}, print
        )
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


def test_a_page_that_the_host_has_no_room_for_is_told_of_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was gone for good, and its error was raised when the daemon stopped."""
    monkeypatch.setattr(metrics_page, "EVERY", 0.05)
    monkeypatch.setattr(metrics_page, "PAUSE", (0.01, 0.01))
    start, tries, told = unprivileged.start, [], []  # type: ignore[var-annotated]

    async def no_room(*words: str, **more: Any) -> Any:
        tries.append(words)
        if len(tries) < 4:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        return await start(*words, **more)

    monkeypatch.setattr(unprivileged, "start", no_room)

    async def body() -> None:
        page = MetricsPage(Metrics("127.0.0.1", 0), lambda: {"text": "a 1\n"}, told.append)
        page.start()
        try:
            assert await asyncio.to_thread(awaited, lambda: fetched(page.url)) == b"a 1\n"
        finally:
            await page.stop()

    asyncio.run(body())
    assert len(told) == 1 and "Resource temporarily unavailable" in told[0]


def test_numbers_that_cannot_be_had_for_a_moment_are_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "EVERY", 0.01)
    monkeypatch.setattr(metrics_page, "PAUSE", (0.01, 0.01))
    told: list[str] = []

    def gather() -> dict[str, Any]:
        if not told:
            raise OSError(errno.EIO, "Input/output error")
        return {"text": "a 1\n"}

    async def body() -> None:
        page = MetricsPage(Metrics("127.0.0.1", 0), gather, told.append)
        page.start()
        try:
            assert await asyncio.to_thread(awaited, lambda: fetched(page.url)) == b"a 1\n"
        finally:
            await page.stop()

    asyncio.run(body())
    assert len(told) == 1 and "Input/output error" in told[0]
