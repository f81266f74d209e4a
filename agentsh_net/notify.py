"""How the daemon tells its starter that it is ready: systemd's notify socket and a ready file.

`sd_notify(3)`: a datagram to $NOTIFY_SOCKET; an address that starts with `@` is in the abstract namespace.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentsh_net.core.errors import ConfigError, Problem


def sd_notify(state: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send `state` (`READY=1`, `STOPPING=1`, ...) to the service manager; False where there is none."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.sendto(state.encode(), address)
    return True


def write_ready_file(path: Path, facts: Mapping[str, Any]) -> None:
    """Write `facts` as JSON in one step: who waits for the file never reads half of it. Raises ConfigError."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with _told(path):
        scratch.write_text(json.dumps(facts, indent=1) + "\n")
        scratch.rename(path)


def remove_ready_file(path: Path) -> None:
    """Remove the file: it speaks of a daemon that is not ready yet, or no more. Raises ConfigError where none can be."""
    with _told(path):
        path.unlink(missing_ok=True)
        path.parent.stat()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        found = f"{path} ({error.strerror})"
        raise ConfigError(
            [Problem("--ready-file", found, "a file in a directory that may be written")]
        ) from error
