"""Each query answers from a database being written, newest last, by any filter, in pages that join without gap or repeat."""

import sqlite3
from dataclasses import replace

import pytest

from agentsh_net import clock
from agentsh_net.core.audit.events import (
    NetworkConnection,
    PolicyReloaded,
    ToolCalled,
    ToolCallIntercepted,
    ToolChanged,
)
from agentsh_net.core.errors import ProtocolError, StoreError
from agentsh_net.core.model import PinState
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.store import queries, records
from agentsh_net.store.connect import open_writer
from agentsh_net.store.records import PinRecord, SessionRecord, ToolRecord

EVENTS = [
    PolicyReloaded(generation=1),
    ToolCallIntercepted(
        server_id="prod-db",
        tool_name="drop_table",
        action="block",
        session_id="s1",
        candidates=[
            {"server_id": "prod-db", "tool_name": "drop_table"},
            {"server_id": "other", "tool_name": "drop_table"},
        ],
    ),
    ToolCallIntercepted(
        server_id="weather",
        tool_name="mcp__weather__get",
        server_type="http",
        candidates=[{"server_id": "weather", "tool_name": "get"}],
    ),
    NetworkConnection(
        server_id="evil", remote_addr="10.0.0.1:443", candidates=["evil", "twin"], action="block"
    ),
    ToolCalled(server_id="weather", tool_name="list", via="gateway"),
    ToolChanged(
        server_id="weather", tool_name="get", detections=[{"rule": "hidden-text"}], max_severity="high"
    ),
]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "events.db"
    connection = open_writer(path)
    write(
        connection, [(e.stamped(id=clock.new_id(), timestamp=clock.now_rfc3339())).to_json() for e in EVENTS]
    )
    apply(
        connection,
        records.save_tools(
            [ToolRecord("weather", "get", "h2", {"name": "get", "description": "d"}, "high")], "t1"
        ),
    )
    apply(connection, records.save_tools([ToolRecord("weather", "old", "h0")], "t0"))
    apply(connection, records.mark_removed([("weather", "old")], "t2"))
    apply(
        connection,
        records.save_pins([PinRecord("weather", "get", "h1", {"name": "get"}, "changed", "t0", "root")]),
    )
    apply(connection, records.save_session(SessionRecord("s1", "digest", "t0")))
    yield path
    connection.close()


def apply(connection, change):
    for sql, rows in change:
        connection.executemany(sql, rows)


def write(connection, events):
    for event in events:
        connection.execute(records.INSERT_EVENT, records.event_row(event))
        connection.executemany(records.INSERT_CANDIDATE, records.candidate_rows(event))


def ask(path, kind, **filters):
    return queries.page(path, kind, filters).rows


def types(rows):
    return [row["type"] for row in rows]


def test_events_come_whole_and_newest_last(database):
    seen = ask(database, "events")
    assert types(seen) == [e.type for e in EVENTS]
    assert seen[3]["remote_addr"] == "10.0.0.1:443"


def test_a_limit_keeps_the_newest(database):
    assert types(ask(database, "events", limit=2)) == ["mcp_tool_called", "mcp_tool_changed"]


@pytest.mark.parametrize("rows", [queries.PAGE_ROWS, 1], ids=["one page", "many"])
@pytest.mark.parametrize("direct", ["events", "calls"])
def test_a_first_page_says_whether_the_limit_left_older_ones_out(database, monkeypatch, direct, rows):
    monkeypatch.setattr(queries, "PAGE_ROWS", rows)
    whole = len(EVENTS) if direct == "events" else 3
    for limit in range(1, whole + 2):
        page = queries.page(database, direct, {"limit": limit})
        assert (page.older, page.to_json()["older"]) == (limit < whole, limit < whole)
        assert (
            page.next is None
            or not queries.page(database, direct, {"limit": limit, "after": page.next}).older
        )


def test_calls_are_what_models_asked_for_and_what_servers_were_sent(database):
    assert types(ask(database, "calls")) == ["mcp_tool_call_intercepted"] * 2 + ["mcp_tool_called"]


@pytest.mark.parametrize(
    ("kind", "filters", "tools"),
    [
        ("calls", {"action": "block"}, ["drop_table"]),
        ("calls", {"action": "allow"}, ["mcp__weather__get", "list"]),
        ("calls", {"server": "WEATHER"}, ["mcp__weather__get", "list"]),
        ("calls", {"server": "other"}, ["drop_table"]),
        ("calls", {"tool": "get"}, ["mcp__weather__get"]),
        ("calls", {"tool": "mcp__*"}, ["mcp__weather__get"]),
        ("calls", {"server": "other", "tool": "get"}, []),
        ("calls", {"session": "s1"}, ["drop_table"]),
        ("events", {"type": "mcp_tool_c*"}, ["drop_table", "mcp__weather__get", "list", "get"]),
        ("events", {"server": "twin"}, [None]),
        ("events", {"server": "twin", "action": "block", "type": "mcp_network_connection"}, [None]),
        ("detections", {}, ["get"]),
    ],
)
def test_a_filter_finds_what_it_names(database, kind, filters, tools):
    assert [row.get("tool_name") for row in ask(database, kind, **filters)] == tools


@pytest.mark.parametrize(
    ("filters", "tools"),
    [
        ({"type": "mcp_tool_changed"}, ["get"]),
        ({"type": "mcp_tool_call_*"}, ["get"]),  # by a candidate of the name that the model wrote
        ({"session": "s1"}, []),  # that call was of tools nobody offered
        ({"session": "default"}, ["get"]),
        ({"action": "block"}, []),
        ({"action": "allow", "server": "WEATHER", "tool": "g*"}, ["get"]),
    ],
)
def test_tools_are_found_by_the_events_about_them(database, filters, tools):
    assert [row["tool_name"] for row in ask(database, "tools", **filters)] == tools


@pytest.mark.parametrize(
    ("filters", "servers"),
    [
        ({"action": "block"}, ["evil", "prod-db"]),
        ({"session": "s1"}, ["prod-db"]),
        ({"tool": "GET"}, ["weather"]),
        ({"tool": "*", "session": "s1"}, []),
        ({"type": "http"}, ["weather"]),
        ({"type": "stdio"}, []),
        ({"since": "2999-01-01"}, []),
    ],
)
def test_servers_are_found_by_their_tools_and_by_the_events_about_them(database, filters, servers):
    found = {row["server_id"] for row in ask(database, "servers", **filters)}
    assert found & {"evil", "prod-db", "weather"} == set(servers)


def test_since_is_exact(database):
    middle = ask(database, "events")[3]["timestamp"]
    assert types(ask(database, "events", since=middle)) == [e.type for e in EVENTS[3:]]
    assert ask(database, "events", since="2999-01-01") == []


def test_pages_join_without_gap_or_repeat(database, monkeypatch):
    monkeypatch.setattr(queries, "PAGE_ROWS", 2)
    whole, after = [], None
    while True:
        page = queries.page(database, "events", {"after": after, "limit": 5 - len(whole)})
        whole += page.rows
        after = page.next
        if after is None or len(whole) == 5:
            break
    assert types(whole) == [e.type for e in EVENTS[1:]]


def test_a_page_is_bounded_in_bytes(database, monkeypatch):
    monkeypatch.setattr(queries, "PAGE_BYTES", 10)
    page = queries.page(database, "events", {})
    assert len(page.rows) == 1
    assert page.next == page.rows[0]["id"]


def test_tools_tell_their_pin_and_their_removal(database):
    get, old = ask(database, "tools")
    assert (get["tool_name"], get["tool_hash"], get["pin"], get["pinned_hash"]) == (
        "get",
        "h2",
        "changed",
        "h1",
    )
    assert get["description"] == "d"
    assert (old["removed"], old["pin"]) == ("t2", None)
    assert ask(database, "tools", server="w*", tool="OLD") == [old]


def test_a_tool_that_is_not_what_was_trusted_is_changed_wherever_it_is_listed(database):
    with sqlite3.connect(database) as writer:
        apply(writer, records.save_tools([ToolRecord("fs", "read", "h2")], "t1"))
        apply(writer, records.save_pins([PinRecord("fs", "read", "h1", {}, "trusted", "t0", "root")]))
    writer.close()
    assert [row["pin"] for row in ask(database, "tools", server="fs")] == ["changed"]
    assert [row["state"] for row in ask(database, "pins", server="fs")] == ["changed"]


def test_servers_are_all_that_events_or_tools_name(database):
    seen = {row["server_id"]: row for row in ask(database, "servers")}
    assert set(seen) == {"evil", "prod-db", "weather"}
    assert (seen["weather"]["tools"], seen["weather"]["changed_pins"]) == (1, 1)
    assert seen["evil"]["last_event"] is not None


def test_pins_show_both_definitions(database):
    [pin] = ask(database, "pins")
    assert (pin["state"], pin["pinned"], pin["offered"]["description"]) == ("changed", {"name": "get"}, "d")


def test_state_is_loaded_as_it_was_saved(database):
    assert queries.load_pins(database) == [
        PinRecord("weather", "get", "h1", {"name": "get"}, "changed", "t0", "root")
    ]
    assert queries.load_tools(database) == [
        ToolRecord("weather", "get", "h2", {"name": "get", "description": "d"}, "high", "t1", "t1", None),
        ToolRecord("weather", "old", "h0", {}, "", "t0", "t0", "t2"),
    ]
    assert queries.load_sessions(database) == [SessionRecord("s1", "digest", "t0")]


def test_a_tool_that_comes_back_keeps_its_first_sight_and_is_no_longer_removed(database):
    connection = open_writer(database)
    apply(connection, records.save_tools([ToolRecord("weather", "old", "h9")], "t5"))
    connection.close()
    [old] = ask(database, "tools", tool="old")
    assert (old["first_seen"], old["last_seen"], old["removed"], old["tool_hash"]) == ("t0", "t5", None, "h9")


def test_an_input_no_fast_encoder_takes_is_read_back(database):
    connection = open_writer(database)
    deep: list = []
    for _ in range(300):
        deep = [deep]
    event = ToolCallIntercepted(id=clock.new_id(), tool_name="x\ud800", input=deep).to_json()
    write(connection, [event])
    connection.close()
    assert ask(database, "events", limit=1)[0]["input"] == deep


def test_an_unknown_query_is_refused_with_the_known_ones(database):
    with pytest.raises(ProtocolError, match="known are events, calls"):
        queries.page(database, "everything", {})


def test_a_query_that_takes_too_long_ends_with_advice(database, monkeypatch):
    monkeypatch.setattr(queries, "DEADLINE", -1.0)
    connection = open_writer(database)
    write(connection, [{"id": f"{n:08}", "type": "t", "timestamp": "", "input": n} for n in range(3000)])
    connection.close()
    with pytest.raises(StoreError, match="too long") as ended:
        queries.page(database, "events", {"session": "*z*"})
    assert "--since" in ended.value.remedy


def test_more_requests_than_a_page_has_come_in_pages(database, monkeypatch):
    monkeypatch.setattr(queries, "PAGE_ROWS", 2)
    connection = open_writer(database)
    columns = len(connection.execute("SELECT * FROM llm_requests").description)
    for n in range(5):
        connection.execute(
            f"INSERT INTO llm_requests VALUES ({', '.join('?' * columns)})", (f"{n}", *[0] * (columns - 1))
        )
    connection.close()
    seen, after = [], None
    while after is not None or not seen:
        page = queries.page(database, "requests", {"limit": 4 - len(seen) or 1, "after": after})
        assert page.older == (not seen)
        seen += [row["id"] for row in page.rows]
        after = page.next if len(seen) < 4 else None
    assert seen == ["1", "2", "3", "4"]


def test_what_servers_are_is_kept_with_who_trusted_it_and_listed_beside_the_tools(database):
    first = Identity(
        "weather", Aspect.TLS, PinState.TRUSTED, {"certificate": "a"}, {"certificate": "a"}, "2026"
    )
    changed = replace(first, state=PinState.CHANGED, offered={"certificate": "b"})
    connection = open_writer(database)
    apply(connection, records.save_identities([first], by="auto_trust_first"))
    apply(connection, records.save_identities([changed], by="uid 7"))
    assert queries.load_identities(database) == [changed]
    (row,) = [r for r in ask(database, "pins") if r["kind"] != "tool"]
    assert (row["kind"], row["state"], row["pinned_hash"], row["tool_hash"]) == ("tls", "changed", "a", "b")
    assert (row["offered"], row["trusted_by"]) == ({"certificate": "b"}, "auto_trust_first")
    apply(connection, records.save_identities([replace(changed, trusted_at="2027")], by="uid 7"))
    (row,) = [r for r in ask(database, "pins") if r["kind"] != "tool"]
    assert row["trusted_by"] == "uid 7"
    apply(connection, records.save_identities([first], by="x", only_missing=True))
    assert queries.load_identities(database)[0].trusted_at == "2027"
    connection.close()


def test_a_tool_that_nobody_trusted_yet_is_among_the_pins_as_new(database):
    connection = open_writer(database)
    definition = {"name": "fresh", "description": "d"}
    apply(connection, records.save_tools([ToolRecord("weather", "fresh", "h9", definition)], "t3"))
    connection.close()
    new = [pin for pin in ask(database, "pins") if pin["state"] == "new"]
    assert [(p["tool_name"], p["kind"], p["pinned_hash"], p["tool_hash"]) for p in new] == [
        ("fresh", "tool", None, "h9")
    ]
    assert (new[0]["pinned"], new[0]["offered"]["description"]) == ({}, "d")
    assert "old" not in {pin["tool_name"] for pin in ask(database, "pins")}, "it is gone"


def test_of_what_a_server_no_longer_offers_the_last_are_remembered(database, monkeypatch):
    monkeypatch.setattr(records, "MAX_REMOVED", 2)
    connection = sqlite3.connect(database)
    names = [f"n{i}" for i in range(6)]
    with connection:
        apply(connection, records.save_tools([ToolRecord("evil", n, "h") for n in names], "t1"))
        for number, name in enumerate(names[:5]):
            apply(connection, records.mark_removed([("evil", name)], f"t{number}"))
    known = connection.execute(
        "SELECT name, removed FROM tools WHERE server_id = 'evil' ORDER BY name"
    ).fetchall()
    assert known == [("n3", "t3"), ("n4", "t4"), ("n5", None)]
    assert connection.execute("SELECT count(*) FROM tools WHERE server_id = 'weather'").fetchone() == (2,)
    connection.close()
