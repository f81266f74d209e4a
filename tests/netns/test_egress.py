"""What sessions reach only because it is declared stays so, and what is not stays refused, while the daemon crashes and is started again."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from netns.box import SLOWNESS, await_that, in_box, there
from netns.daemon import running
from netns.scene import listening
from netns.test_exec import started

pytestmark = pytest.mark.kernel

BAD, GOOD, PORT = "10.99.0.2", "10.99.0.3", 8000
PLANES = [("ebpf",), ("nftables",), ("ebpf", "nftables")]
# Connects in turn as fast as it can until a file is there; says how often to where came what.
CLIENT = f"""
import collections, errno, json, os, socket, sys
said = collections.Counter()
while not os.path.exists(sys.argv[1]):
    for address in ("{BAD}", "{GOOD}"):
        with socket.socket() as s:
            s.settimeout(5)
            try:
                s.connect((address, {PORT})); came = "connected"
            except OSError as e:
                came = errno.errorcode.get(e.errno, str(e))
        said[address + " " + came] += 1
        if sum(said.values()) == 2:
            print("tried", flush=True)
print(json.dumps(said))
"""


def policy(layers: tuple[str, ...]) -> dict[str, Any]:
    egress = {"sessions": "refuse", "allow": [f"{GOOD}:{PORT}"]}
    network = {"mode": "enforce", "layers": list(layers), "required": True, "egress": egress}
    return {"sandbox": {"mcp": {"enforce_policy": True}}, "network": network}


def accept_all(server: socket.socket) -> None:
    with suppress(OSError):  # it was closed
        while True:
            server.accept()[0].close()


def crashing(folder: Path, layers: tuple[str, ...]) -> tuple[dict[str, int], list[dict[str, Any]]]:
    far = there()
    servers = [listening(far, BAD, PORT), listening(far, GOOD, PORT)]
    for server in servers:
        Thread(target=accept_all, args=(server,), daemon=True).start()
    enough = folder / "enough"
    with running(folder, policy(layers)) as daemon:
        agent = started(daemon, "/usr/bin/python3", "-c", CLIENT, str(enough), options=("--session", "mine"))
        assert agent.stdout is not None and agent.stdout.readline() == "tried\n"
        for _ in range(2):
            daemon.crash()
            daemon.start()

        def told() -> list[dict[str, Any]]:
            return json.loads(daemon.cli("mcp", "events", "--type", "undeclared_connection", "--json"))

        events = await_that(told)
        enough.touch()
        out, _ = agent.communicate(timeout=60 * SLOWNESS)
    for server in servers:
        server.close()
    return json.loads(out), events


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_session_reaches_what_is_declared_and_nothing_else_whenever_the_daemon_dies(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said, events = in_box(crashing, tmp_path, layers)
    refused = f"{BAD} {'EPERM' if 'ebpf' in layers else 'ECONNREFUSED'}"
    assert set(said) == {refused, f"{GOOD} connected"}
    assert said[refused] > 2
    assert {(e["action"], e["session_id"], e["remote_addr"]) for e in events} == {("block", "mine", f"{BAD}:{PORT}")}  # fmt: skip
