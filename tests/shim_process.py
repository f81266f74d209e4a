"""Shims as processes, for tests: run to their end, or started and spoken to."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
NOWHERE = Path("/nowhere/control.sock")
LISTED = b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}'


def command(*server: str, options: tuple[str, ...] = (), socket: Path = NOWHERE) -> list[str]:
    return [sys.executable, "-m", "agentsh_net", "--socket", str(socket), "shim", "--server", "s", *options, "--", *server]  # fmt: skip


def run(
    *server: str, feed: bytes = b"", options: tuple[str, ...] = (), **more: Any
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*server, options=options), input=feed, capture_output=True, timeout=60, **more
    )


@contextlib.contextmanager
def started(
    *server: str,
    options: tuple[str, ...] = (),
    patience: str = "",
    socket: Path = NOWHERE,
    **more: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a shim; `patience` is code that sets other times than its modules `child` and `relay` have."""
    code = f"from agentsh_proxy.shim import child, relay; {patience}\nfrom agentsh_net.__main__ import main; main()"
    whole = [sys.executable, "-c", code, *command(*server, options=options, socket=socket)[3:]]
    with subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **more) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready, "nothing was written"
    return process.stdout.readline()


def flood(fd: int) -> None:
    while True:
        os.write(fd, PING + b"\n")
