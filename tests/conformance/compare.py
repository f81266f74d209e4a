"""Runs the suite at the bare server and through a running daemon's gateway; prints both scores, and fails on any check that differs.

`tests/conformance/run` installs what it needs. Nothing here is part of the product.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

REVISIONS = ("2025-11-25", "2026-07-28")
REBINDING = "dns-rebinding-protection"
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*$")  # the suite dates its folders

Checks = dict[tuple[str, str, int], str]  # scenario, check and its number there -> status


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", required=True)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--server", required=True, type=Path)
    parser.add_argument("--revision", action="append", choices=REVISIONS)
    options = parser.parse_args()
    ways = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        everything(options.server) as direct,
        gateway(Path(folder), direct) as ours,
    ):
        urls = {"direct": direct, "gateway": ours}
        for revision in options.revision or REVISIONS:
            for way, url in urls.items():
                out = Path(folder) / f"{way}-{revision}"
                ways[way, revision] = suite(options, url, out, "--requirements", revision)
        rebinding = suite(options, urls["gateway"], Path(folder) / "rebinding", "--scenario", REBINDING)
    return report(ways, options.revision or list(REVISIONS), rebinding)


def suite(options: argparse.Namespace, url: str, out: Path, *which: str) -> Checks:
    command = [options.node, options.suite, "server", "--url", url, "-o", str(out), *which]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    found: Checks = {}
    for file in sorted(out.rglob("checks.json")):
        scenario = STAMP.sub("", file.parent.name.removeprefix("server-"))
        for number, check in enumerate(json.loads(file.read_text())):
            found[scenario, check["id"], number] = check["status"]
    if not found:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return found


def report(ways: dict[tuple[str, str], Checks], revisions: list[str], rebinding: Checks) -> int:
    different = 0
    for revision in revisions:
        direct, ours = ways["direct", revision], ways["gateway", revision]
        print(f"{revision}: direct {score(direct)}, through the gateway {score(ours)}")
        for key in sorted(direct.keys() | ours.keys()):
            one, other = direct.get(key, "absent"), ours.get(key, "absent")
            if one != other:
                better = other == "SUCCESS"
                different += not better
                print(
                    f"  {'better' if better else 'WORSE'}: {key[0]} / {key[1]}: direct {one}, gateway {other}"
                )
    failed = [key for key, status in rebinding.items() if status == "FAILURE"]
    print(f"{REBINDING}: {score(rebinding)} through the gateway")
    for key in failed:
        print(f"  FAILED: {key[1]}")
    complete = all(ways.values()) and rebinding
    if not complete:
        print("a run gave no checks at all")
    return 1 if different or failed or not complete else 0


def score(checks: Checks) -> str:
    counted = [status for status in checks.values() if status != "INFO"]
    return f"{sum(status == 'SUCCESS' for status in counted)} of {len(counted)}"


@contextmanager
def everything(folder: Path) -> Iterator[str]:
    port = free()
    command = [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
    env = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    with running(command, env=env, cwd=folder):
        until(lambda: socket.create_connection(("127.0.0.1", port), 1).close())
        yield f"http://localhost:{port}/mcp"


@contextmanager
def gateway(folder: Path, url: str) -> Iterator[str]:
    policy = {
        "version": 1,
        "sandbox": {"mcp": {"servers": [{"id": "everything", "type": "http", "url": url}]}},
        "proxy": {"mode": "disabled"},
        "network": {"mode": "off"},
        "gateway": {"enabled": True, "port": 0},
        "store": {"path": str(folder / "events.db")},
        "control": {"socket": str(folder / "control.sock")},
    }
    folder.chmod(0o755)
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    ready = folder / "ready.json"
    command = [
        sys.executable,
        "-m",
        "agentsh_net",
        "run",
        "--config",
        str(folder / "policy.yaml"),
        "--ready-file",
        str(ready),
    ]
    with running(command, env=dict(os.environ), cwd=Path.cwd()):
        until(ready.stat)
        base = json.loads(ready.read_text())["gateway"]
        yield base.replace("127.0.0.1", "localhost") + "/mcp/everything"


@contextmanager
def running(command: list[str], *, env: dict[str, str], cwd: Path) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
