"""Each reading command asks its query and shows what a reader came for: who, what, which rule, why."""

import json

import pytest

from agentsh_net.core.audit import events
from agentsh_net.core.audit.events import NetworkConnection, ToolCallIntercepted
from agentsh_net.core.audit.refusals import McpRequestRefused, RequestRefused

CALL = ToolCallIntercepted(
    timestamp="2025-01-31T12:00:00.000001Z",
    action="block",
    server_id="weather",
    tool_name="mcp__weather__delete_all",
    rule="sandbox.mcp.denied_tools[0]",
    reason="denied by delete_*",
    input={"city": "Paris\x1b[2J"},
).to_json()
CONNECT = NetworkConnection(
    timestamp="2025-01-31T12:00:00.000001Z",
    action="block",
    server_id="evil",
    remote_addr="10.0.0.1:443",
    layer="ebpf",
    pid=42,
    comm="curl\x07",
).to_json()


@pytest.fixture
def answering(daemon):
    """Start a daemon whose every query finds these rows."""

    def start(*rows):
        return daemon(query={"rows": list(rows), "next": None})

    return start


def lines(result):
    assert result.exit_code == 0, result.stderr
    assert all(char.isprintable() or char == "\n" for char in result.stdout)
    return result.stdout.splitlines()


def test_a_blocked_call_is_shown_with_arguments_server_rule_and_reason(run, answering):
    daemon = answering(CALL)
    _, line = lines(run("mcp", "calls", "--action", "block"))
    for part in ("2025-01-31 12:00:00", "block", "weather", "delete_all", "denied by delete_* (sandbox.mcp.denied_tools[0])", "Paris"):  # fmt: skip
        assert part in line
    assert daemon.asked == [("query", {"kind": "calls", "filters": {"action": "block", "limit": 100}})]


def test_json_shows_the_whole_call(run, answering):
    answering(CALL)
    [row] = json.loads(run("mcp", "calls", "--action", "block", "--json").stdout)
    assert row == CALL


def test_a_connection_is_shown_with_process_address_and_layer(run, answering):
    answering(CONNECT)
    _, line = lines(run("mcp", "events", "--type", "mcp_network_connection"))
    assert "curl<U+0007>[42] -> 10.0.0.1:443 (ebpf)" in line


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (events.PolicyReloaded(generation=3), "generation 3"),
        (events.PolicyRejected(problems=["a: b", "c: d"]), "a: b; c: d"),
        (events.LayerStateChanged(layer="ebpf", state="off", reason="no BCC"), "ebpf: off: no BCC"),
        (events.EventsLost(layer="store", lost=7), "7 lost (store)"),
        (RequestRefused(method="GET", path="/x", status=421, reason="no", rule="protocol"), "GET /x: 421: no (protocol)"),
        (McpRequestRefused(status=400, reason="no HTTP"), "? ?: 400: no HTTP"),
        (events.LlmDirectConnection(provider="openai", remote_addr="1.2.3.4:443", comm="x", pid=1), "x[1] -> 1.2.3.4:443 (openai)"),
        (events.ToolSeen(tool_name="get"), "get"),
        (events.ToolCallIntercepted(reason="only a reason"), "only a reason"),
        (events.ResponseUninspected(detail="said once", reason="said once", rule="r"), "-       said once (r)"),
    ],
)  # fmt: skip
def test_every_event_has_a_line_that_says_why_it_matters(run, answering, event, told):
    answering(event.to_json())
    assert told in lines(run("mcp", "events"))[1]


def test_detections_are_told_in_words_with_place_and_severity(run, answering):
    poisoned = {"pattern": "poisoned", "category": "poisoning", "path": "$", "excerpt": "both together"}
    found = [
        {"pattern": pattern, "category": category, "path": "$.description", "excerpt": excerpt}
        for pattern, category, excerpt in [("do-not-tell", "secrecy", "tell nobody"), ("keep-secret", "secrecy", "hide"), ("odd", "later", "x")]
    ]  # fmt: skip
    answering(
        events.ToolChanged(tool_name="get", detections=[poisoned, *found], max_severity="critical").to_json()
    )
    told = " ".join(run("mcp", "detections").output.split())
    assert "critical" in told and "joins several kinds of poison (poisoned)" in told
    assert (
        "wants something kept from the user (do-not-tell, keep-secret); odd: at $.description: tell nobody"
        in told
    )


TOOL = {"server_id": "s", "tool_name": "t", "tool_hash": "sha256:abcdef0123456789", "pin": "changed", "last_seen": "2025-01-31T12:00:00.0Z", "removed": None, "description": "d\u202e"}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "word"), [({}, "changed"), ({"removed": "t"}, "removed"), ({"pin": None}, "none")]
)
def test_tools_are_shown_with_their_pin(run, answering, change, word):
    answering({**TOOL, **change})
    _, line = lines(run("mcp", "tools"))
    assert line.split()[:4] == ["s", "t", word, "abcdef012345"]
    assert "<U+202E>" in line


SERVER = {"server_id": "Prod-DB", "type": "http", "action": "block", "addresses": ["10.0.0.1", "::1"], "reason": "denied", "rule": "r"}  # fmt: skip


@pytest.mark.parametrize(("wanted", "found"), [("prod-db", 1), ("prod*", 1), ("prod", 0), ("*.*", 0)])
def test_servers_of_the_daemon_are_shown_with_addresses_and_verdict(run, daemon, wanted, found):
    daemon(status={"servers": [SERVER]})
    rows = run("mcp", "servers", "--server", wanted).stdout.splitlines()[1:]
    assert [row.split() for row in rows] == [
        ["Prod-DB", "http", "block", "10.0.0.1,", "::1", "denied", "(r)"]
    ] * found


def test_no_server_and_no_tool_is_left_out_however_many_there_are(run, daemon):
    recorded = daemon(status={"servers": [SERVER] * 150}, query={"rows": [], "next": None})
    assert len(json.loads(run("mcp", "servers", "--json").stdout)) == 150
    assert len(json.loads(run("mcp", "servers", "--limit", "120", "--json").stdout)) == 120
    run("mcp", "tools")
    assert recorded.asked[-1] == ("query", {"kind": "tools", "filters": {"limit": 1_000_000}})


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        ("--type", "http", 1),
        ("--type", "stdio", 0),
        ("--action", "block", 1),
        ("--action", "allow", 0),
        ("--tool", "get", 1),
        ("--session", "s", 1),
        ("--since", "10m", 1),
    ],
)
def test_servers_of_the_daemon_are_found_by_every_filter(run, daemon, option, value, found):
    recorded = daemon(status={"servers": [SERVER]}, query={"rows": [{"server_id": "Prod-DB"}], "next": None})
    assert len(json.loads(run("mcp", "servers", option, value, "--json").stdout)) == found
    stored = [args["filters"] for name, args in recorded.asked if name == "query"]
    key = option.removeprefix("--")
    assert stored == ([{key: value, "limit": 1_000_000}] if key in {"tool", "session", "since"} else [])


def test_servers_of_which_nothing_was_recorded_are_not_found_by_what_was(run, daemon):
    daemon(status={"servers": [SERVER]}, query={"rows": [], "next": None})
    assert run("mcp", "servers", "--session", "s", "--json").stdout == "[]\n"


@pytest.mark.parametrize("command", ["calls", "events", "detections", "tools", "servers"])
def test_every_list_takes_every_filter(run, daemon, command):
    daemon(status={"servers": []}, query={"rows": [], "next": None})
    filters = {"session": "s", "server": "x", "tool": "t", "type": "y", "action": "block", "since": "10m"}
    given = [word for name, value in filters.items() for word in (f"--{name}", value)]
    result = run("mcp", command, *given, "--limit", 3, "--json")
    assert (result.exit_code, result.stdout) == (0, "[]\n")


def test_servers_of_the_database_are_those_on_record(run, tmp_path):
    from agentsh_net.store import records
    from agentsh_net.store.connect import open_writer

    connection = open_writer(tmp_path / "e.db")
    connection.execute(records.INSERT_EVENT, records.event_row({**CALL, "id": "i"}))
    connection.close()
    _, line = lines(run("mcp", "servers", "--db", tmp_path / "e.db"))
    assert line.split() == ["weather", "0", "0", "2025-01-31", "12:00:00"]


def test_nothing_found_is_said_and_is_no_error(run, answering):
    answering()
    result = run("mcp", "calls")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no calls found\n")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            "mcp_tool_call",
            "no events found: there is no event type 'mcp_tool_call' (did you mean mcp_tool_called?)\n",
        ),
        ("mcp_tool_called", "no events found\n"),
        ("mcp_nothing_*", "no events found\n"),
    ],
)
def test_a_type_that_no_event_has_is_told_the_one_that_was_meant(run, answering, kind, told):
    answering()
    result = run("mcp", "events", "--type", kind)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", told)
