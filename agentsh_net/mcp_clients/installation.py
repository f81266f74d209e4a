"""Puts the servers of MCP clients behind policy, in the clients' own files, and takes them out again to the byte.

stdio servers go under the shim, network servers behind the gateway. A copy of each file is left beside it first. Only files of
the user who asks are written: as root this would be a way for a user to have root write where the user cannot. How a text is
edited is `editing`'s and `gateway_urls`' business.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentsh_net.mcp_clients import editing, gateway_urls
from agentsh_net.mcp_clients.declarations import Place
from agentsh_net.mcp_clients.editing import UneditableError
from agentsh_net.mcp_clients.user_file import FLAGS, MAX_FILE

STDIO: Final = "stdio"
BACKUP: Final = ".before-agentsh-net"
_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a client's file. `servers` are those that were changed, `trouble` why the others were not."""

    file: Path
    servers: tuple[str, ...] = ()
    backup: Path | None = None  # where a copy of the file as it was lies now
    trouble: str = ""


def install(places: Iterable[Place], program: Sequence[str], gateway: str = "") -> list[Outcome]:
    """Put stdio servers under the shim, and network servers behind the gateway where one is named. One outcome a file.

    `program` is how agentsh-net is called, `gateway` where the gateway listens.
    """
    chosen = [place for place in places if gateway or place.transport == STDIO]
    return [_install(file, of_file, program, gateway) for file, of_file in _by_file(chosen)]


def uninstall(places: Iterable[Place]) -> list[Outcome]:
    """Take the servers at these places out again. One outcome a file that had any, or that could not be read."""
    outcomes = (_uninstall(file, of_file) for file, of_file in _by_file(places))
    return [o for o in outcomes if o.servers or o.trouble]


def _install(file: Path, places: Sequence[Place], program: Sequence[str], gateway: str) -> Outcome:
    used = [place for place in places if place.used]

    def edit(text: str, place: Place) -> str:
        if place.transport == STDIO:
            return editing.install(text, _kind(file), {place.keys: place.server_id}, program)
        behind = gateway_urls.Behind(place.server_id, place.spelling)
        return gateway_urls.install(text, _kind(file), {place.keys: behind}, gateway)

    try:
        edited = _edited(file, used, edit)
        if not edited.servers:
            return Outcome(file, trouble=edited.trouble)
        new = len(edited.servers) + len(edited.troubles) == len(used)
        backup = _backup(file, edited.before, renew=new)
        _write(file, edited.after)
    except (OSError, UneditableError) as error:
        return Outcome(file, trouble=_reason(error))
    return Outcome(file, edited.servers, backup, edited.trouble)


def _uninstall(file: Path, places: Sequence[Place]) -> Outcome:
    def edit(text: str, place: Place) -> str:
        if place.transport == STDIO:
            return editing.uninstall(text, _kind(file), [place.keys])
        return gateway_urls.uninstall(text, _kind(file), [place.keys])

    try:
        edited = _edited(file, places, edit)
        if not edited.servers:
            return Outcome(file, trouble=edited.trouble)
        _write(file, edited.after)
        backup: Path | None = _backup_of(file)
        if backup is not None and (not backup.exists() or backup.read_bytes() == edited.after):
            backup.unlink(missing_ok=True)  # the file is again what the copy is
            backup = None
    except (OSError, UneditableError) as error:
        return Outcome(file, trouble=_reason(error))
    return Outcome(file, edited.servers, backup, edited.trouble)


@dataclass(frozen=True, slots=True)
class _Edited:
    """A file's bytes before and after, the servers that were changed, and what is said of those that could not be."""

    before: bytes
    after: bytes
    servers: tuple[str, ...]
    troubles: tuple[str, ...]

    @property
    def trouble(self) -> str:
        """Return what is said of the servers that could not be changed."""
        return "; ".join(self.troubles)


def _edited(file: Path, places: Sequence[Place], edit: Callable[[str, Place], str]) -> _Edited:
    """Edit one server after the other: one that cannot be edited leaves the others theirs. Raises OSError, UneditableError."""
    before = _read(file)
    try:
        text = before.decode()
    except UnicodeDecodeError:
        raise UneditableError("no UTF-8") from None
    mark = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(mark)
    changed: list[str] = []
    troubles: list[str] = []
    for place in places:
        try:
            edited = edit(text, place)
        except UneditableError as error:
            troubles.append(f"{place.server_id}: {error}")
            continue
        if edited != text:
            text = edited
            changed.append(place.server_id)
    return _Edited(before, (mark + text).encode(), tuple(changed), tuple(troubles))


def _real(file: Path) -> Path:
    """Return where a file really stands: a link of the caller's own (of dotfiles) is followed and stays. Raises OSError, UneditableError."""
    if not file.is_symlink():
        return file
    if file.lstat().st_uid != os.geteuid():
        raise UneditableError("it is somebody else's symbolic link")
    return file.resolve(strict=True)


def _read(file: Path) -> bytes:
    """Return the content of a file that is the caller's own. Raises OSError, UneditableError."""
    with open(_real(file), "rb", opener=lambda name, _: os.open(name, FLAGS | os.O_NOFOLLOW)) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UneditableError("no regular file")
        if status.st_uid != os.geteuid():
            raise UneditableError(f"it is uid {status.st_uid}'s: run this as that user")
        data = opened.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise UneditableError(f"larger than {MAX_FILE >> 20} MiB")
    return data


def _write(file: Path, data: bytes) -> None:
    """Replace a file in one step; its mode and its group stay, and a link to it. Raises OSError, UneditableError."""
    file = _real(file)
    status = file.stat(follow_symlinks=False)
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            if status.st_gid != os.getegid():
                os.fchown(opened.fileno(), -1, status.st_gid)
            os.fchmod(opened.fileno(), stat.S_IMODE(status.st_mode))
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        scratch.rename(file)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _backup(file: Path, data: bytes, *, renew: bool) -> Path:
    """Keep a copy of a file as it was before anything in it was ours (`renew`: nothing is yet). Raises OSError."""
    backup = _backup_of(file)
    if renew:
        backup.unlink(missing_ok=True)
    if not backup.exists():
        descriptor = os.open(
            backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "wb") as opened:  # it holds the same secrets: nobody else's to read
            opened.write(data)
            os.fsync(opened.fileno())
    return backup


def _backup_of(file: Path) -> Path:
    return file.with_name(file.name + BACKUP)


def _by_file(places: Iterable[Place]) -> list[tuple[Path, list[Place]]]:
    files: dict[Path, list[Place]] = {}
    for place in places:
        files.setdefault(place.source, []).append(place)
    return list(files.items())


def _kind(file: Path) -> str:
    return "toml" if file.suffix == ".toml" else "json"


def _reason(error: OSError | UneditableError) -> str:
    return str(error) if isinstance(error, UneditableError) else (error.strerror or str(error)).lower()
