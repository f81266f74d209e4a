"""The last good addresses in a file, so that a restart while DNS fails refuses what was refused before.

A file that cannot be read, or that somebody else could have written, is no memory: it is told, and nothing is learnt from it.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentsh_net.core.network.addresses import MAX_ADDRESSES_PER_NAME, Address, literal

_LOG = logging.getLogger(__name__)
_VERSION = 1
# Some 100,000 addresses; what is larger was not written here.
_MAX_BYTES = 4 << 20


class AddressMemory:
    """One file, written whole and renamed into place; by several threads, as a reload asks while addresses run out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()
        self._written: Mapping[str, Sequence[Address]] | None = None

    def read(self) -> dict[str, tuple[Address, ...]]:
        """Return name -> addresses; nothing where there is no file, or none that can be believed."""
        try:
            with self._path.open("rb") as file:
                why_not, data = _distrust(os.fstat(file.fileno())), file.read(_MAX_BYTES)
            found = None if why_not else _parsed(json.loads(data))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            why_not, found = str(error), None
        if found is None:
            _LOG.warning("%s is not read: %s", self._path, why_not or "it is not of this version")
        return found or {}

    def write(self, known: Mapping[str, Sequence[Address]]) -> None:
        """Keep what is known; where that fails it is told, and the next change tries again."""
        with self._writing:
            if known != self._written:
                self._write(known)

    def _write(self, known: Mapping[str, Sequence[Address]]) -> None:
        body = {
            "version": _VERSION,
            "names": {name: [str(a) for a in found] for name, found in known.items()},
        }
        scratch = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            descriptor = os.open(
                scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(body, file)
            scratch.replace(self._path)
        except OSError as error:
            _LOG.warning("addresses are not kept in %s for a restart: %s", self._path, error.strerror)
        else:
            self._written = {name: tuple(found) for name, found in known.items()}


def _distrust(status: os.stat_result) -> str:
    """Say why a file is not one that was written here, or nothing."""
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may have written it"
    return f"more than {_MAX_BYTES} bytes" if status.st_size > _MAX_BYTES else ""


def _parsed(value: object) -> dict[str, tuple[Address, ...]] | None:
    """Return the names of a file's content, None for any other shape."""
    names = value.get("names") if isinstance(value, dict) and value.get("version") == _VERSION else None
    if not isinstance(names, dict):
        return None
    found: dict[str, tuple[Address, ...]] = {}
    for name, texts in names.items():
        spelt = texts if isinstance(texts, list) else []
        addresses = [literal(text) for text in spelt if isinstance(text, str)]
        found[name] = tuple(a for a in addresses if a is not None)[:MAX_ADDRESSES_PER_NAME]
    return found
