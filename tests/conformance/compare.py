"""Runs the suite at the bare server and through a running daemon's gateway; prints the scores, and fails on any check that differs.

Behind the gateway the same server stands over Streamable HTTP (`http`) and HTTP+SSE (`sse`), on stdio (`stdio`), and there
under the shim (`shim`).

`tests/conformance/run` installs what it needs. Nothing here is part of the product.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

REVISIONS = ("2025-11-25", "2026-07-28")
WAYS = ("http", "sse", "stdio", "shim")
EVERYTHING = "from mcp_everything_server.server import mcp"
REBINDING = "dns-rebinding-protection"
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*$")  # the suite dates its folders

# Scenario, check and which of its kind there -> status; without what is only told (INFO)
Checks = dict[tuple[str, str, int], str]
# What a server can only do that is the HTTP server itself (the suite takes JSON in place of streams: it is INFO then).
OF_HTTP = {"server-sse-streams-functional", "server-sse-disconnect-resume"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", required=True)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--server", required=True, type=Path)
    parser.add_argument("--revision", action="append", choices=REVISIONS)
    parser.add_argument("--way", action="append", choices=WAYS)
    options = parser.parse_args()
    ways = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        everything(options.server) as direct,
        everything(options.server, "sse") as events,
        gateway(Path(folder), {"http": direct, "sse": events}, options.server) as ours,
    ):
        urls = {"direct": direct, **{way: ours(way) for way in options.way or WAYS}}
        for revision in options.revision or REVISIONS:
            for way, url in urls.items():
                out = Path(folder) / f"{way}-{revision}"
                ways[way, revision] = suite(options, url, out, "--requirements", revision)
        rebinding = suite(options, ours("http"), Path(folder) / "rebinding", "--scenario", REBINDING)
    return report(ways, options.revision or list(REVISIONS), rebinding)


def suite(options: argparse.Namespace, url: str, out: Path, *which: str) -> Checks:
    command = [options.node, options.suite, "server", "--url", url, "-o", str(out), *which]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    found: Checks = {}
    for file in sorted(out.rglob("checks.json")):
        scenario = STAMP.sub("", file.parent.name.removeprefix("server-"))
        seen: Counter[str] = Counter()
        for check in json.loads(file.read_text()):
            if check["status"] != "INFO":
                found[scenario, check["id"], seen[check["id"]]] = check["status"]
                seen[check["id"]] += 1
    if not found:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return found


def report(ways: dict[tuple[str, str], Checks], revisions: list[str], rebinding: Checks) -> int:
    different = 0
    for (way, revision), checks in ways.items():
        if way != "direct":
            different += compare(way, revision, ways["direct", revision], checks)
    failed = [key for key, status in rebinding.items() if status == "FAILURE"]
    print(f"{REBINDING}: {score(rebinding)} through the gateway")
    for key in failed:
        print(f"  FAILED: {key[1]}")
    complete = len(revisions) > 0 and all(ways.values()) and rebinding
    if not complete:
        print("a run gave no checks at all")
    return 1 if different or failed or not complete else 0


def compare(way: str, revision: str, direct: Checks, ours: Checks) -> int:
    """Print how a way does beside the bare server; return how many checks are worse."""
    worse = 0
    print(f"{revision}: direct {score(direct)}, through the gateway ({way} behind it) {score(ours)}")
    for key in sorted(direct.keys() | ours.keys()):
        one, other = direct.get(key, "absent"), ours.get(key, "absent")
        if one != other and not (way != "http" and key[1] in OF_HTTP):
            worse += other != "SUCCESS"
            how = "better" if other == "SUCCESS" else "WORSE"
            print(f"  {how}: {key[0]} / {key[1]}: direct {one}, {way} {other}")
    return worse


def score(checks: Checks) -> str:
    return f"{sum(status == 'SUCCESS' for status in checks.values())} of {len(checks)}"


@contextmanager
def everything(folder: Path, transport: str = "") -> Iterator[str]:
    """Run the SDK's server on a port: by its own command line, or over another transport."""
    port = free()
    command = [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
    if transport:
        command = [sys.executable, "-c", f"{EVERYTHING}; mcp.run({transport!r}, port={port})"]
    env = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    with running(command, env=env, cwd=folder):
        until(lambda: socket.create_connection(("127.0.0.1", port), 1).close())
        yield f"http://localhost:{port}/{transport or 'mcp'}"


@contextmanager
def gateway(folder: Path, urls: dict[str, str], server: Path) -> Iterator[Callable[[str], str]]:
    """Run a daemon whose gateway has the server behind it in every way."""
    control = str(folder / "control.sock")
    bare = [sys.executable, "-c", f"{EVERYTHING}; mcp.run('stdio')"]
    shim = [sys.executable, "-m", "agentsh_net", "--socket", control, "shim", "--server", "shim", "--", *bare]
    sources = shutil.copytree(server, folder / "server")
    ours = [str(Path(part).absolute()) for part in os.environ["PYTHONPATH"].split(os.pathsep)]
    env = {"PYTHONPATH": os.pathsep.join([str(sources), *ours])}
    servers: list[dict[str, Any]] = [
        {"id": "http", "type": "http", "url": urls["http"]},
        {"id": "sse", "type": "sse", "url": urls["sse"]},
        {"id": "stdio", "type": "stdio", "command": bare[0], "args": bare[1:], "env": env},
        {"id": "shim", "type": "stdio", "command": shim[0], "args": shim[1:], "env": env},
    ]
    policy = {
        "version": 1,
        "sandbox": {"mcp": {"servers": servers}},
        "proxy": {"mode": "disabled"},
        "network": {"mode": "off"},
        "gateway": {"enabled": True, "port": 0},
        "store": {"path": str(folder / "events.db")},
        "control": {"socket": control},
    }
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "agentsh_net", "run"]
    command += ["--config", str(folder / "policy.yaml"), "--ready-file", str(ready)]
    with running(command, env={**os.environ, "HOME": str(folder)}, cwd=folder, user=unprivileged(folder)):
        until(ready.stat)
        base = json.loads(ready.read_text())["gateway"].replace("127.0.0.1", "localhost")
        yield lambda way: f"{base}/mcp/{way}"


def unprivileged(folder: Path) -> str | None:
    """Return who runs the daemon, and give them the folder: root's would start no stdio server without a credential."""
    if os.geteuid() != 0:
        return None
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, "nobody")
    return "nobody"


@contextmanager
def running(command: list[str], *, env: dict[str, str], cwd: Path, user: str | None = None) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def until(claim: object, within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while True:
        try:
            claim()  # type: ignore[operator] # a callable; its result does not matter
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
