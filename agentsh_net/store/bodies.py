"""Requests and answers on the disk: two files a record, readable by their owner only, the oldest removed by age and size.

Which record is whose, and what is in it, is told by the table `llm_requests`; who hands in what is not its business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError, StoreError

PARTS: Final = ("request", "answer")
_NAME: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(request|answer)")
MAX_SHOWN: Final = 1 << 20  # bytes of each part that a reader is shown; the whole is in the file
_BLOCK: Final = 4096  # bytes a file takes at least: so that many small ones count too


def folder_beside(database: Path) -> Path:
    """Return where the bodies of a store are."""
    return database.with_suffix(".bodies")


class Bodies:
    """The folder of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, record_id: str, part: str, data: bytes) -> None:
        """Write behind what is there. Raises OSError."""
        path = self._path(record_id, part)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            descriptor = os.open(path, flags, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def read(self, record_id: str, part: str, limit: int) -> tuple[bytes, int]:
        """Return the first bytes of a part and its length; nothing of a part that is not there. Raises StoreError."""
        path = self._path(record_id, part)
        try:
            with path.open("rb") as file:
                return file.read(limit), os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return b"", 0
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}", remedy="read it as root") from error

    def shown(self, record_id: str, limit: int) -> dict[str, dict[str, Any]]:
        """Return both parts as text, cut to so many bytes, with their sizes. Raises StoreError; ProtocolError where neither is there."""
        found = {part: self.read(record_id, part, limit) for part in PARTS}
        if not any(size for _, size in found.values()):
            raise ProtocolError(f"there is no record {record_id} (see: agentsh-net llm requests)")
        return {
            part: {"text": data.decode("utf-8", "replace"), "size": size}
            for part, (data, size) in found.items()
        }

    def prune(self, oldest: str, max_bytes: float) -> tuple[int, str]:
        """Remove records below the id `oldest`, then the oldest until `max_bytes` hold the rest.

        Returns the bytes that are left and the highest id that went, empty where none did.
        """
        files = sorted(self._files())
        total = sum(size for _, _, size in files)
        gone = ""
        for record_id, path, size in files:
            if record_id >= oldest and total <= max_bytes and record_id != gone:
                break
            path.unlink(missing_ok=True)
            total -= size
            gone = record_id
        return total, gone

    def _files(self) -> Iterator[tuple[str, Path, int]]:
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    match = _NAME.fullmatch(entry.name)
                    if match:
                        yield (
                            match[1],
                            Path(entry.path),
                            max(_BLOCK, entry.stat(follow_symlinks=False).st_size),
                        )
        except FileNotFoundError:
            return

    def _path(self, record_id: str, part: str) -> Path:
        name = f"{record_id}.{part}"
        if not _NAME.fullmatch(name):
            raise ProtocolError(f"there is no record {record_id[:60]!r} (see: agentsh-net llm requests)")
        return self._folder / name
