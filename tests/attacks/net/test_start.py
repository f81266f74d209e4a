"""Rows 22 and 33 of the catalogue, against the daemon itself: an address that the agent never resolved, and a race with the start."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from netns import box
from netns.daemon import Daemon, running
from netns.scene import attempt, listening
from netns.stage import NFT, PLANES

pytestmark = pytest.mark.kernel

EVIL, PORT = "10.99.0.6", 8000
ATTEMPTS = 200  # after the start, each of which would have been the one that got through


def policy(host: str, layers: tuple[str, ...]) -> dict[str, Any]:
    mcp = {
        "servers": [{"id": "evil", "type": "http", "url": f"http://{host}:{PORT}/mcp"}],
        "denied_servers": [{"id": "evil"}],
    }
    network = {"mode": "enforce", "layers": list(layers), "required": True}
    return {"sandbox": {"mcp": mcp}, "network": network, "proxy": {"mode": "disabled"}}


def refusal(layers: tuple[str, ...]) -> str:
    return "ECONNREFUSED" if layers == NFT else "EPERM"


def literal(folder: Path, layers: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Connect by address to a server that policy knows by its name alone."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{EVIL} evil.test\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    with listening(box.there(), EVIL, PORT), running(folder, policy("evil.test", layers)) as daemon:
        said = attempt(EVIL, PORT)
        return said, daemon.await_connection(action="block", layer=layers[0])


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_an_address_that_the_agent_never_asked_for_is_the_servers_all_the_same(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said, event = box.in_box(literal, tmp_path, layers)
    assert said == refusal(layers)
    assert (event["server_id"], event["remote_addr"], event["remote_host"]) == (
        "evil", f"{EVIL}:{PORT}", "evil.test",
    )  # fmt: skip


def race(folder: Path, layers: tuple[str, ...]) -> tuple[set[str], set[str], bool]:
    """Start the daemon beside a client that has been connecting all the time; return what it was told before, and after."""
    reader, writer = os.pipe()
    with listening(box.there(), EVIL, PORT) as server:
        accepting = threading.Thread(target=accept_all, args=(server,), daemon=True)
        accepting.start()
        client = os.fork()
        if client == 0:
            while True:
                began = time.monotonic()
                os.write(writer, f"{began} {attempt(EVIL, PORT)}\n".encode())
        os.close(writer)
        lines = os.fdopen(reader)
        seen = [lines.readline().split()]
        daemon = Daemon(folder)
        daemon.write(policy(EVIL, layers))
        collector = threading.Thread(target=collect, args=(lines, seen))
        collector.start()
        try:
            daemon.start()
            ready = time.monotonic()
            box.await_that(lambda: sum(float(began) > ready for began, _ in seen) >= ATTEMPTS)
            told = daemon.await_connection(action="block", server_id="evil")
        finally:
            box.kill(client)
            collector.join()
            daemon.stop()
    before = {said for began, said in seen if float(began) < ready}
    return before, {said for began, said in seen if float(began) > ready}, bool(told)


def accept_all(server: Any) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


def collect(lines: Any, seen: list[list[str]]) -> None:
    with lines:
        seen.extend(line.split() for line in lines)


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_who_connects_since_before_the_start_never_gets_through_after_it(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    before, after, told = box.in_box(race, tmp_path, layers)
    assert "connected" in before  # it did get through: the race was one
    assert after == {refusal(layers)}
    assert told
