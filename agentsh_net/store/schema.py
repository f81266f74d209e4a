"""The database's tables and how an older one becomes this one. A database that is not ours, or newer, is refused untouched.

Not its business: opening files and locks (`connect`).
"""

from __future__ import annotations

import sqlite3
from typing import Final

from agentsh_net.core.errors import StoreError

# "asNT" in PRAGMA application_id (https://www.sqlite.org/pragma.html#pragma_application_id): tells our file from another's.
APPLICATION_ID: Final = 0x61734E54

# MIGRATIONS[n] takes a database from version n to n + 1. Append only: a step that has been released is never edited.
MIGRATIONS: Final = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied TEXT NOT NULL);
    CREATE TABLE events (
        id TEXT PRIMARY KEY,
        type TEXT NOT NULL,
        timestamp TEXT NOT NULL,
        session_id TEXT NOT NULL,
        action TEXT NOT NULL,
        server_id TEXT NOT NULL COLLATE NOCASE,
        tool_name TEXT NOT NULL COLLATE NOCASE,
        json TEXT NOT NULL
    );
    CREATE INDEX events_by_type ON events (type, id);
    CREATE INDEX events_by_session ON events (session_id, id);
    CREATE INDEX events_by_server ON events (server_id, id);
    CREATE INDEX events_by_tool ON events (tool_name, id);
    CREATE INDEX events_blocked ON events (id) WHERE action = 'block';
    CREATE TABLE candidates (
        event_id TEXT NOT NULL,
        server_id TEXT NOT NULL COLLATE NOCASE,
        tool_name TEXT NOT NULL COLLATE NOCASE,
        PRIMARY KEY (event_id, server_id, tool_name)
    ) WITHOUT ROWID;
    CREATE INDEX candidates_by_server ON candidates (server_id, event_id);
    CREATE INDEX candidates_by_tool ON candidates (tool_name, event_id);
    CREATE TABLE tools (
        server_id TEXT NOT NULL,
        name TEXT NOT NULL,
        hash TEXT NOT NULL,
        definition TEXT NOT NULL,
        max_severity TEXT NOT NULL,
        first_seen TEXT NOT NULL,
        last_seen TEXT NOT NULL,
        removed TEXT,
        PRIMARY KEY (server_id, name)
    ) WITHOUT ROWID;
    CREATE TABLE pins (
        server_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        hash TEXT NOT NULL,
        definition TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('trusted', 'new', 'changed')),
        trusted_at TEXT,
        trusted_by TEXT,
        PRIMARY KEY (server_id, tool)
    ) WITHOUT ROWID;
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        token_sha256 TEXT NOT NULL UNIQUE,
        created TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE identities (
        server_id TEXT NOT NULL,
        aspect TEXT NOT NULL,
        pinned TEXT NOT NULL,
        pinned_mark TEXT NOT NULL,
        offered TEXT NOT NULL,
        offered_mark TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('trusted', 'new', 'changed')),
        declared INTEGER NOT NULL,
        trusted_at TEXT,
        trusted_by TEXT,
        PRIMARY KEY (server_id, aspect)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE llm_requests (
        id TEXT PRIMARY KEY,
        started TEXT NOT NULL,
        ended TEXT NOT NULL,
        session_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        dialect TEXT NOT NULL,
        model TEXT NOT NULL,
        method TEXT NOT NULL,
        path TEXT NOT NULL,
        status INTEGER NOT NULL,
        input_tokens INTEGER,
        output_tokens INTEGER,
        request_id TEXT NOT NULL,
        outcome TEXT NOT NULL,
        request_bytes INTEGER NOT NULL,
        answer_bytes INTEGER NOT NULL,
        truncated INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX llm_requests_by_session ON llm_requests (session_id, id);
    """,
    # Calls by the model's own id, and events in which a detector found something, in a trail of a million events. The text of
    # an event is compact JSON; to look through it costs a fifth of what parsing it does, for every event that is written.
    """
    CREATE INDEX events_by_call ON events (json_extract(json, '$.tool_call_id')) WHERE type = 'mcp_tool_call_intercepted';
    CREATE INDEX events_detected ON events (id) WHERE instr(json, '"detections":[{') > 0;
    """,
    # No table is another: an older program does not know these aspects of a server.
    """
    -- identities.aspect: prompts, resources, resource_templates
    """,
)

VERSION: Final = len(MIGRATIONS)


def check(connection: sqlite3.Connection, path: str) -> int:
    """Return the schema version of our own database, 0 for an empty one. Raises StoreError if it is newer or not ours."""
    aside = f"move it aside (mv {path} {path}.old) and start again: a new one is made"
    application_id: int = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if application_id != APPLICATION_ID and not (empty and application_id == 0 and version == 0):
        raise StoreError(
            f"{path} is an SQLite database of another program", remedy=f"set store.path elsewhere, or {aside}"
        )
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer agentsh-net (schema {version}; this one knows {VERSION})",
            remedy=f"run the newer version, or {aside}",
        )
    return version


def migrate(connection: sqlite3.Connection, version: int, now: str) -> None:
    """Bring a checked database to VERSION; every step and its record are one transaction."""
    for step in range(version, VERSION):
        connection.executescript(
            f"BEGIN IMMEDIATE;{MIGRATIONS[step]};PRAGMA application_id={APPLICATION_ID};PRAGMA user_version={step + 1};"
        )
        connection.execute("INSERT INTO migrations VALUES (?, ?)", (step + 1, now))
        connection.commit()
