"""The real daemon as a program inside a box: started with a policy, asked through its CLI, ended as a test wants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from netns.box import SLOWNESS, Namespace, await_that

ROOT = Path(__file__).parent.parent.parent


class Daemon:
    """`agentsh-net run` over one policy file."""

    def __init__(self, folder: Path, under: Sequence[str] = ()) -> None:
        self.folder = folder
        self._under = under  # a command that runs it
        self.file = folder / "policy.yaml"
        self.process: subprocess.Popen[bytes]

    def write(self, policy: dict[str, Any]) -> None:
        places = {
            "version": 1,
            "store": {"path": str(self.folder / "events.db")},
            "control": {"socket": str(self.folder / "control.sock")},
        }
        scratch = self.file.with_suffix(".new")
        scratch.write_text(yaml.safe_dump({"proxy": {"port": 0}, **places, **policy}))
        scratch.rename(self.file)

    def start(self) -> None:
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self._under,
                    sys.executable,
                    ROOT / "tests/netns/program.py",
                    "run",
                    "--config",
                    self.file,
                    "--ready-file",
                    ready,
                ],
                stderr=log,
                stdout=log,
            )
        await_that(lambda: ready.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def cli(self, *arguments: str, code: int = 0) -> str:
        environ = os.environ | {"AGENTSH_NET_SOCKET": str(self.folder / "control.sock")}
        command = [sys.executable, "-m", "agentsh_net", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60 * SLOWNESS)
        assert done.returncode == code, (
            f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.log()}"
        )
        return done.stdout

    def connections(self) -> list[dict[str, Any]]:
        return json.loads(
            self.cli("mcp", "events", "--type", "mcp_network_connection", "--limit", "10000", "--json")
        )

    def await_connection(self, **wanted: Any) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            events = self.connections()
            return next((e for e in events if all(e[k] == v for k, v in wanted.items())), None)

        return await_that(found)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60 * SLOWNESS)

    def crash(self) -> None:
        self.process.kill()
        self.process.wait(60 * SLOWNESS)


@contextmanager
def running(folder: Path, policy: dict[str, Any], under: Sequence[str] = ()) -> Iterator[Daemon]:
    """Run the daemon over a policy until the block ends."""
    daemon = Daemon(folder, under)
    daemon.write(policy)
    daemon.start()
    try:
        yield daemon
        assert "which is a bug" not in daemon.log(), daemon.log()  # whatever else the test is about
    finally:
        if daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.wait(60 * SLOWNESS)


@contextmanager
def mcp_server(namespace: Namespace, address: str, port: int = 8000) -> Iterator[None]:
    """Run an MCP server of the official SDK in a namespace; when the block begins it accepts."""
    command = [sys.executable, str(ROOT / "tests/netns/mcp_server.py"), address, str(port)]
    process = namespace.call(
        lambda: subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    )
    try:
        for line in process.stderr:
            if "running on" in line:
                break
        assert process.poll() is None
        yield
    finally:
        process.kill()
        process.wait(60 * SLOWNESS)


def mcp_client(url: str) -> dict[str, Any]:
    """Return what an MCP client of the official SDK made of a server, from a process of its own."""
    command = [sys.executable, str(ROOT / "tests/netns/mcp_client.py"), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * SLOWNESS)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)
