"""Opening the database: one way to write, one way to read, and SQLite's errors in our words.

Not its business: what is stored (`schema`, `writer`, `queries`).
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentsh_net import lock_file
from agentsh_net.access import make_directory, share
from agentsh_net.clock import now_rfc3339
from agentsh_net.core.errors import MORE_FILES, NO_FILES, StoreError
from agentsh_net.store import schema

# Seconds; the writer has a thread of its own, so it may wait for a foreign lock this long.
BUSY_TIMEOUT: Final = 2.0
# Bytes the log keeps after a checkpoint; it grows past it only while a reader holds it.
WAL_LIMIT: Final = 64 << 20

# Primary result codes (https://www.sqlite.org/rescode.html): what happened, and what mends it. {path} is filled in.
_MEANING: Final = {
    sqlite3.SQLITE_FULL: ("the disk of {path} is full", "free space there, or lower store.retention.max_size_mb"),
    sqlite3.SQLITE_BUSY: ("{path} is locked by another process", "find it with: fuser -v {path}"),
    sqlite3.SQLITE_LOCKED: ("{path} is locked by another connection", "find it with: fuser -v {path}"),
    sqlite3.SQLITE_READONLY: ("{path} may not be written", "check its owner, mode and mount: ls -l {path}; findmnt -T {path}"),
    sqlite3.SQLITE_PERM: ("{path} may not be opened", "check its owner and mode: ls -l {path}"),
    sqlite3.SQLITE_CANTOPEN: ("{path} cannot be opened", "check its directory's owner and mode: ls -ld {path}"),
    sqlite3.SQLITE_IOERR: ("the disk of {path} reports an error", "see: dmesg | tail"),
    sqlite3.SQLITE_CORRUPT: ("{path} is corrupt", "move it aside (mv {path} {path}.corrupt) and start again; sqlite3's .recover reads the old one"),
    sqlite3.SQLITE_NOTADB: ("{path} is not an SQLite database", "name another file (store.path, or --db to read one); if this was the store, move it aside (mv {path} {path}.old) and start again"),
    sqlite3.SQLITE_INTERRUPT: ("the query on {path} took too long", "narrow it with --since or --limit"),
}  # fmt: skip


_CANNOT_OPEN: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
_FULL: Final = {errno.ENOSPC, errno.EDQUOT}
_NO_WRONG_PLACE: Final = _FULL | NO_FILES
_FILES: Final = 4  # that SQLite opens: the database, its log, their index, and the directory for a moment


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return what an SQLite error means for the operator."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _CANNOT_OPEN and _out_of_files():
        return StoreError(f"{path} cannot be opened: too many open files", remedy=MORE_FILES)
    message, remedy = _MEANING.get(code, ("{path}: " + str(error).replace("{", "(").replace("}", ")"), ""))
    return StoreError(message.format(path=path), remedy=remedy.format(path=path))


def _out_of_files() -> bool:
    """Say whether fewer files can be opened than SQLite needs, which does not tell why it could not, and has closed its own again."""
    held: list[int] = []
    try:
        for _ in range(_FILES):
            held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - what came before an error is closed
    except OSError as error:
        return error.errno in NO_FILES
    finally:
        for descriptor in held:
            os.close(descriptor)
    return False


def hold(path: Path) -> lock_file.LockFile:
    """Take the lock that makes the database at `path` this process's to write. Raises StoreError that names who has it."""
    try:
        make_directory(path.parent)
        return lock_file.take(lock_file.beside(Path(os.path.realpath(path))))
    except lock_file.HeldError as held:
        who, end = (
            (f"process {held.pid}", f"end it (sudo kill {held.pid})")
            if held.pid
            else ("a process that cannot be seen from here, as of another container", "end it")
        )
        raise StoreError(
            f"another agentsh-net, {who}, writes {path}",
            remedy=f"set store.path to a file of this daemon's own, or {end}",
        ) from None
    except OSError as error:
        raise _unmade(path, error) from (None if error.errno in _NO_WRONG_PLACE else error)


def open_writer(path: Path) -> sqlite3.Connection:
    """Open the database for writing; make or migrate it. Raises StoreError, and then the file is as it was."""
    try:
        make_directory(path.parent)
        _make_file(path)
        _want_file(path)
    except OSError as error:
        raise _unmade(path, error) from (None if error.errno in _NO_WRONG_PLACE else error)
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    return connection


@contextmanager
def reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database for reading, beside a running daemon or without one. Raises StoreError."""
    try:
        _want_file(path)
        forbidden = not os.access(path, os.R_OK)
    except PermissionError:
        forbidden = True
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"there is no database at {path}", remedy="name it with --db FILE, or start the daemon"
        ) from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", remedy="name the store's file with --db") from error
    if forbidden:
        raise StoreError(f"{path} may not be read", remedy="use sudo, or join the group agentsh-net")
    try:
        with closing(_open_readable(path)) as connection:
            version = schema.check(connection, str(path))
            if not version:
                raise StoreError(
                    f"{path} is empty", remedy="name the store's file with --db, or start the daemon"
                )
            if version < schema.VERSION:
                raise StoreError(
                    f"{path} has the older schema {version}; this program reads {schema.VERSION}",
                    remedy="start the daemon once: it brings the database up to date",
                )
            connection.row_factory = sqlite3.Row
            yield connection
    except sqlite3.Error as error:
        raise store_error(error, path) from error


def disk_bytes(path: Path) -> int:
    """Return the bytes that the database takes on the disk, those of its log among them; what cannot be looked at takes none."""
    found = 0
    for each in (path, log_of(path)):
        with suppress(OSError):  # gone meanwhile, or a disk with errors, which the writer tells of
            found += each.stat().st_size
    return found


def log_of(path: Path) -> Path:
    """Return where SQLite keeps what is not yet in the database itself."""
    return path.with_name(path.name + "-wal")


def _unmade(path: Path, error: OSError) -> StoreError:
    """Return why the file cannot be made. A full disk is no wrong place, nor is a lack of descriptors: each has its own remedy."""
    if error.errno in NO_FILES:
        return StoreError(f"{path} cannot be opened: {error.strerror}", remedy=MORE_FILES)
    if error.errno in _FULL:
        message, remedy = _MEANING[sqlite3.SQLITE_FULL]
        return StoreError(message.format(path=path), remedy=remedy.format(path=path))
    return StoreError(f"cannot make {path}: {error.strerror}", remedy="set store.path to a writable place")


def _want_file(path: Path) -> None:
    """Refuse what is no file, before SQLite waits for who writes to a FIFO."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise StoreError(f"{path} is {kind}", remedy="name the store's file: store.path, or --db to read one")


def _make_file(path: Path) -> None:
    # Made by us before SQLite opens it, so that it is never readable by others, not even for a moment.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    share(path, 0o640)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = schema.check(connection, str(path))  # before the first write: a foreign file stays untouched
    if version == 0:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only possible before the first table
    connection.execute("PRAGMA journal_mode=WAL")
    # FULL: an audit record that was committed survives a power cut. It costs one fsync a batch, in the writer's own thread.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_LIMIT}")
    # Statements of many rows keep the pages they change until they are done: in memory, not in a file of /tmp each time.
    connection.execute("PRAGMA temp_store=MEMORY")
    schema.migrate(connection, version, now_rfc3339())


def _open_readable(path: Path) -> sqlite3.Connection:
    connection = _connect_readonly(path)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema")
    except sqlite3.OperationalError:
        connection.close()
        # Who may not write the directory cannot make the -shm file that WAL needs. Without a log nothing can be missed.
        log = log_of(path)
        if log.exists() and log.stat().st_size > 0:
            raise
        connection = _connect_readonly(path, "&immutable=1")
    return connection


def _connect_readonly(path: Path, options: str = "") -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{options}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)
