"""Which program a shim is about to start: its file as execvp(3) finds it, and the files among its arguments, with their digests.

An interpreter's own digest says little about the script it runs, so files that the command names count too. What a launcher
(npx, uvx) fetches is not seen here. Only imported where the policy pins a binary, as hashing one costs more than a start.
"""

from __future__ import annotations

import hashlib
import os
import stat

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

MAX_SCRIPTS: Final = 8
MAX_SCRIPT: Final = 64 << 20  # bytes; a bundled server has a few, and a data file of gigabytes is none
_BLOCK: Final = 1 << 20


def describe(command: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what is about to be started, as `core.trust.identity.binary` does; None where there is no such program."""
    executable = _found(command[0], environ)
    if executable is None:
        return None
    try:
        scripts = [{"path": path, "sha256": _digest(path)} for path in _files(command[1:])]
        return {"executable": executable, "sha256": _digest(executable), "scripts": scripts}
    except OSError:
        return None  # it cannot be read, and what cannot be read cannot be pinned


def _found(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the file that execvpe would start, with symbolic links followed."""
    places = [""] if "/" in name else os.get_exec_path(dict(environ))
    for place in places:
        path = os.path.join(place, name)  # noqa: PTH118 - pathlib costs a start
        if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112 - as above
            return os.path.realpath(path)
    return None


def _files(arguments: Sequence[str]) -> list[str]:
    """Return the regular files that arguments name, in their order: `server.py`, `--config=x.json`, `--import=./hook.mjs`."""
    paths = []
    for argument in arguments:
        path = argument.partition("=")[2] if argument.startswith("-") else argument
        try:
            found = os.stat(path) if path else None  # noqa: PTH116 - as above
        except (OSError, ValueError):
            continue
        if found and stat.S_ISREG(found.st_mode) and found.st_size <= MAX_SCRIPT:
            paths.append(os.path.realpath(path))
    return paths[:MAX_SCRIPTS]


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
        while block := file.read(_BLOCK):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"
