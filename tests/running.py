"""A daemon in a thread of its own, over a fake kernel: tests talk to it as its users do."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from fake_kernel import FakeKernel

from agentsh_net import notify
from agentsh_net.config import options
from agentsh_net.config.options import Options
from agentsh_net.control.client import Client
from agentsh_net.daemon import Daemon
from agentsh_net.store import queries

SERVERS = [
    {"id": "evil", "type": "http", "url": "http://10.9.0.1:8000/mcp"},
    {"id": "good", "type": "http", "url": "http://10.9.0.2:8000/mcp"},
]
OFF = {"proxy": {"mode": "disabled"}, "network": {"mode": "enforce"}}


def policy(denied: str = "evil", **mcp: Any) -> dict[str, Any]:
    """A policy file over two servers, one of which is denied."""
    rules = {"servers": SERVERS, "denied_servers": [{"id": denied}], **mcp}
    return {"sandbox": {"mcp": rules}, **OFF}


class Running:
    """What a test needs of a running daemon."""

    def __init__(self, folder: Path, policy: dict[str, Any]) -> None:
        self.folder = folder
        self.file = folder / "policy.yaml"
        self.kernel = FakeKernel()
        self.write(policy)
        self.client = Client(folder / "control.sock", timeout=60)
        self.exit: int | None = None
        self.daemon: Daemon
        self.loop: asyncio.AbstractEventLoop

    def write(self, policy: dict[str, Any]) -> None:
        places = {
            "store": {"path": str(self.folder / "events.db")},
            "control": {"socket": str(self.folder / "control.sock")},
        }
        scratch = self.file.with_suffix(".new")
        scratch.write_text(yaml.safe_dump({"version": 1, **places, **policy}))
        scratch.rename(self.file)

    def events(self, kind: str = "*", **filters: Any) -> list[dict[str, Any]]:
        return queries.page(self.folder / "events.db", "events", {"type": kind, **filters}).rows

    def await_event(
        self, kind: str, matches: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> dict[str, Any]:
        return awaited(lambda: next((e for e in self.events(kind) if matches(e)), None))

    def on_loop(self, function: Callable[[], Any]) -> Any:
        async def call() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(60)

    def status(self) -> Any:
        return self.client.call("status")


def awaited(claim: Callable[[], Any], *, within: float = 120) -> Any:
    """Return the first true value of `claim`; fails after `within` seconds."""
    pause = threading.Event()
    for _ in range(int(within / 0.01)):
        if value := claim():
            return value
        pause.wait(0.01)
    raise AssertionError(f"did not come true within {within} s")


@contextmanager
def running(
    folder: Path, policy: dict[str, Any], prepare: Callable[[Running], None] = lambda _: None
) -> Iterator[Running]:
    """Run a daemon until the block ends; by then it has stopped in good order."""
    here = Running(folder, policy)
    prepare(here)
    failure: list[BaseException] = []
    thread = threading.Thread(target=_run, args=(here, failure), daemon=True)
    thread.start()
    try:
        awaited(lambda: not thread.is_alive() or _is_ready(here))
        if failure:
            raise failure[0]
        yield here
    finally:
        if thread.is_alive():
            here.loop.call_soon_threadsafe(here.daemon.state.stop)
        thread.join(60)
    assert not thread.is_alive()
    if failure:
        raise failure[0]


def _is_ready(here: Running) -> bool:
    """Say whether our own daemon wrote its ready file: a test may have left one of a daemon that was killed."""
    return notify.read_ready_file(here.folder / "ready").get("pid") == os.getpid()


def _run(here: Running, failure: list[BaseException]) -> None:
    async def body() -> None:
        wanted = Options(here.file, None, here.folder / "ready")
        here.loop = asyncio.get_running_loop()
        log = logging.getLogger("test.daemon")
        here.daemon = Daemon(wanted, options.load(wanted, {}), log, lambda _: here.kernel, signals=False)
        here.exit = await here.daemon.run()

    try:
        asyncio.run(body())
    except BaseException as error:
        failure.append(error)
