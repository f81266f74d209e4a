"""A search finds exactly what a reader of every event would, and reads a stretch of an index for it, never the whole trail."""

import itertools
import random
import sqlite3
from fnmatch import fnmatchcase

import pytest

from agentsh_net import clock
from agentsh_net.core.audit.events import NetworkConnection, ToolCalled, ToolCallIntercepted, ToolChanged
from agentsh_net.store import records, searches
from agentsh_net.store.connect import open_writer, reader
from agentsh_net.store.filters import Filters
from agentsh_net.store.searches import search

CALLS = ("mcp_tool_call_intercepted", "mcp_tool_called")
START = 1_700_000_000 * 10**9
STEP = 10**9
FOUND = [{"pattern": "p", "severity": "high"}]


def made(number: int, r: random.Random) -> dict:
    """Make an event; some are about a server only by a candidate, and some hold the text of a detection in their input."""
    server, tool = r.choice(("fs", "Weather", "db", "")), r.choice(("read", "Delete_City", "get"))
    common = {
        "session_id": r.choice(("default", "s-1", "s-2")),
        "action": r.choice(("allow", "allow", "block")),
    }
    also = r.choice(("fs", "twin", "WEATHER"))
    event = r.choice(
        (
            ToolCallIntercepted(**common, server_id=server, tool_name=f"mcp__{server}__{tool}", candidates=[{"server_id": also, "tool_name": tool}]),
            ToolCalled(**common, server_id=server, tool_name=tool, input={"detections": [{"a": 1}]}),
            NetworkConnection(**common, server_id=server, candidates=[also]),
            ToolChanged(**common, server_id=server, tool_name=tool, detections=r.choice(([], FOUND))),
        )
    )  # fmt: skip
    time_ns = START + number * STEP
    stamped = event.stamped(id=clock.lowest_id(time_ns), timestamp=clock.rfc3339(time_ns))
    return stamped.to_json()


@pytest.fixture(scope="module")
def events():
    r = random.Random(7)
    return [made(number, r) for number in range(600)]


@pytest.fixture(scope="module")
def database(tmp_path_factory, events):
    path = tmp_path_factory.mktemp("store") / "events.db"
    connection = open_writer(path)
    connection.execute("BEGIN")
    for event in events:
        connection.execute(records.INSERT_EVENT, records.event_row(event))
        connection.executemany(records.INSERT_CANDIDATE, records.candidate_rows(event))
    connection.execute("COMMIT")
    connection.close()
    return path


def means(pattern: str, text: str) -> bool:
    return not pattern or fnmatchcase(text.lower(), pattern.lower())


def about(event: dict, filters: Filters) -> bool:
    """Say whether the event itself, or one of its candidates, is about the server and the tool."""
    itself = (event.get("server_id") or "", event.get("tool_name") or "")
    pairs = [itself]
    for candidate in event.get("candidates", ()):
        if isinstance(candidate, str):
            pairs.append((candidate, itself[1]))
        else:
            pairs.append((candidate["server_id"], candidate["tool_name"]))
    return any(means(filters.server, server) and means(filters.tool, tool) for server, tool in pairs)


def expected(events: list[dict], filters: Filters, types: tuple[str, ...], *, detected: bool) -> list[str]:
    return [
        event["id"]
        for event in events
        if (not types or event["type"] in types)
        and (not detected or event.get("detections"))
        and means(filters.type, event["type"])
        and means(filters.session, event["session_id"])
        and filters.action in {"", event["action"]}
        and event["id"] > filters.after
        and (not filters.since_ns or event["timestamp"] >= clock.rfc3339(filters.since_ns))
        and about(event, filters)
    ]


def found(database, filters: Filters, types=(), *, detected=False) -> list[str]:
    with reader(database) as connection:
        wanted = search(connection, filters, types, detected=detected)
        return [row[0] for row in connection.execute(f"{wanted.sql} ORDER BY 1", wanted.values)]


VALUES = {
    "server": ("", "FS", "twin", "nobody", "w*", "*", "x*"),
    "tool": ("", "get", "DELETE_CITY", "mcp__*", "*e*"),
    "session": ("", "s-1", "s-*"),
    "action": ("", "allow", "block"),
    "type": ("", "mcp_tool_called", "mcp_tool_c*"),
    "since_ns": (0, START + 300 * STEP),
    "after": ("", clock.lowest_id(START + 400 * STEP)),
}


@pytest.mark.parametrize("counted", [1, 20, 5_000])
def test_it_finds_what_a_reader_of_every_event_would(database, events, monkeypatch, counted):
    monkeypatch.setattr(searches, "COUNTED", counted)  # whichever index leads
    combinations = [dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())]
    for given in random.Random(counted).sample(combinations, 300):
        filters = Filters(**given)
        for types, detected in (((), False), (CALLS, False), ((*CALLS, "mcp_tool_changed"), True)):
            answer = expected(events, filters, types, detected=detected)
            assert found(database, filters, types, detected=detected) == answer, (given, types, detected)


def test_an_input_that_holds_the_text_of_a_detection_is_none(database, events):
    held = found(database, Filters(), ("mcp_tool_called",), detected=True)
    assert held == []
    assert any(event["type"] == "mcp_tool_called" for event in events)


@pytest.mark.parametrize(
    ("given", "types", "detected"),
    [
        ({"type": "x"}, (), False),
        ({"session": "x"}, (), False),
        ({"server": "x"}, CALLS, False),
        ({"tool": "x"}, CALLS, False),
        ({"server": "w*", "action": "block"}, CALLS, False),
        ({"since_ns": START}, CALLS, False),
        ({"action": "block"}, (), False),
        ({"session": "s-1", "server": "fs"}, CALLS, False),
        ({}, CALLS, True),
        ({"server": "fs", "since_ns": START}, CALLS, True),
    ],
)
def test_a_stretch_of_an_index_is_read_in_the_order_that_is_wanted(database, given, types, detected):
    with reader(database) as connection:
        wanted = search(connection, Filters(**given), types, detected=detected)
        sql = f"EXPLAIN QUERY PLAN {wanted.sql} ORDER BY 1 DESC LIMIT 1"
        plan = [row[3] for row in connection.execute(sql, wanted.values)]
    partial = ("INDEX events_blocked", "INDEX events_detected")  # a newer SQLite calls the first COVERING
    scanned = [step for step in plan if step.startswith("SCAN") and not step.endswith(partial)]
    assert scanned == [], plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


def test_the_rarer_of_two_leads(database):
    with reader(database) as connection:
        both = search(connection, Filters(session="s-1", type="mcp_network_connection"))
        rare = search(connection, Filters(session="s-1", server="nobody"))
    assert both.sql.startswith("SELECT id FROM events WHERE type = ?")
    assert rare.sql.startswith("SELECT id FROM events WHERE events.server_id = ?")


def test_a_pattern_that_means_too_much_is_asked_of_each_row(database, events, monkeypatch):
    monkeypatch.setattr(searches, "ARMS", 1)
    assert found(database, Filters(server="*w*")) == expected(
        events, Filters(server="*w*"), (), detected=False
    )
    monkeypatch.setattr(searches, "NAMES", 1)
    assert found(database, Filters(tool="*et*")) == expected(events, Filters(tool="*et*"), (), detected=False)


def test_values_are_bound_and_never_spliced(database):
    evil = "x' OR 1=1 --*"
    with reader(database) as connection:
        wanted = search(connection, Filters(server=evil, tool=evil, type=evil, session=evil))
        assert "OR 1=1" not in wanted.sql
        assert wanted.sql.count("?") == len(wanted.values)
        assert connection.execute(wanted.sql, wanted.values).fetchall() == []


def test_the_words_of_the_partial_indexes_are_the_schemas():
    connection = sqlite3.connect(":memory:")
    from agentsh_net.store import schema

    schema.migrate(connection, 0, "now")
    texts = [
        row[0]
        for row in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        )
    ]
    for words in (searches.BLOCKED.sql, searches.DETECTED.sql):
        assert any(text.endswith(f"WHERE {words}") for text in texts), words
