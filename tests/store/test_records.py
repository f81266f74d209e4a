"""Values become rows that keep everything and that SQLite can hold, whatever a server called its tools."""

import json
import re
import sqlite3
from itertools import chain

import pytest

from agentsh_net.core.audit.events import NetworkConnection, ToolCallIntercepted
from agentsh_net.core.values import jsontext
from agentsh_net.store import records
from agentsh_net.store.records import PinRecord, SessionRecord, ToolRecord


def test_an_event_is_kept_whole_beside_its_columns():
    event = ToolCallIntercepted(
        id="i", timestamp="t", server_id="s", tool_name="n", action="block", input={"a": 1}
    ).to_json()
    row = records.event_row(event)
    assert row[:-1] == ("i", "mcp_tool_call_intercepted", "t", "default", "block", "s", "n")
    assert json.loads(row[-1]) == event


def test_a_lone_surrogate_does_not_keep_an_event_out():
    row = records.event_row({"id": "i", "tool_name": "evil\ud800", "server_id": None})
    assert row[6] == "evil\\ud800"
    assert row[5] == ""
    assert jsontext.loads(row[-1])["tool_name"] == "evil\ud800"
    assert all(text.encode() for text in row[1:2] + row[-1:] if text)


def test_candidates_are_rows_only_where_they_differ_from_the_event_itself():
    event = ToolCallIntercepted(
        id="i",
        server_id="s",
        tool_name="mcp__s__n",
        candidates=[
            {"server_id": "s", "tool_name": "n"},
            {"server_id": "t", "tool_name": "n"},
            {"server_id": "s", "tool_name": "mcp__s__n"},
        ],
    )
    assert records.candidate_rows(event.to_json()) == [("i", "s", "n"), ("i", "t", "n")]


def test_the_candidates_of_a_connection_are_servers():
    event = NetworkConnection(id="i", server_id="s", candidates=["s", "t"])
    assert records.candidate_rows(event.to_json()) == [("i", "t", "")]


def test_changes_bind_every_value():
    now = "2025-01-01T00:00:00.000000Z"
    quote = "x'); DROP TABLE pins; --"
    changes = [
        records.save_tools([ToolRecord(quote, quote, "h", {"name": quote})], now),
        records.mark_removed([(quote, quote)], now),
        records.save_pins([PinRecord(quote, quote, "h")]),
        records.delete_pins([(quote, quote)]),
        records.save_session(SessionRecord(quote, "d", now)),
    ]
    for sql, rows in chain(*changes):
        assert quote not in sql
        numbered = len(set(re.findall(r"\?\d", sql)))
        assert all((numbered or sql.count("?")) == len(row) for row in rows)


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 137])
def test_many_events_are_recorded_in_their_order(count):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE events (a PRIMARY KEY, b, c, d, e, f, g, h)")
    rows = [(f"{n:04}", "t", "", "s", "allow", "fs", "ls", "{}") for n in range(count)]
    for sql, values in records.insert_events(rows):
        connection.executemany(sql, values)
    assert connection.execute("SELECT * FROM events ORDER BY rowid").fetchall() == rows
