"""A database comes up to date in whole steps or not at all, and what is not ours is refused untouched."""

import sqlite3

import pytest

from agentsh_net.core.errors import StoreError
from agentsh_net.store import schema


@pytest.fixture
def connection():
    with sqlite3.connect(":memory:", isolation_level=None) as connection:
        yield connection


def tables(connection):
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_an_empty_database_becomes_ours(connection):
    schema.migrate(connection, schema.check(connection, "x.db"), "2025-01-01T00:00:00.000000Z")
    assert {"events", "candidates", "tools", "pins", "sessions", "meta"} <= tables(connection)
    assert schema.check(connection, "x.db") == schema.VERSION
    assert connection.execute("SELECT version FROM migrations").fetchall() == [
        (n + 1,) for n in range(schema.VERSION)
    ]


def test_migrating_twice_changes_nothing(connection):
    schema.migrate(connection, 0, "now")
    schema.migrate(connection, schema.check(connection, "x.db"), "later")
    assert connection.execute("SELECT count(*) FROM migrations WHERE applied = 'later'").fetchone() == (0,)


def test_a_step_that_fails_leaves_the_version_before_it(connection, monkeypatch):
    schema.migrate(connection, 0, "now")
    monkeypatch.setattr(
        schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE extra (x); CREATE TABLE events (x);")
    )
    monkeypatch.setattr(schema, "VERSION", len(schema.MIGRATIONS))
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, schema.check(connection, "x.db"), "now")
    connection.execute("ROLLBACK")
    assert "extra" not in tables(connection)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION - 1


def test_a_newer_database_is_refused_with_the_way_to_move_it_aside(connection):
    schema.migrate(connection, 0, "now")
    connection.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    with pytest.raises(StoreError, match="newer agentsh-net") as refused:
        schema.check(connection, "/var/e.db")
    assert "mv /var/e.db /var/e.db.old" in refused.value.remedy


@pytest.mark.parametrize(
    "foreign", ["CREATE TABLE t (x)", "PRAGMA application_id=7", "PRAGMA user_version=1"]
)
def test_another_programs_database_is_refused(connection, foreign):
    connection.execute(foreign)
    with pytest.raises(StoreError, match="another program"):
        schema.check(connection, "x.db")
