"""Following prints each event once, as it happens, and says why it ended."""

import json

from agentsh_net.cli.tail import line
from agentsh_net.core.audit.events import NetworkConnection

EVENT = NetworkConnection(
    timestamp="2025-01-31T12:00:00.0Z", action="block", server_id="evil", remote_addr="1.2.3.4:1", layer="ebpf", pid=4, comm="\x1bc"
).to_json()  # fmt: skip


def test_events_are_lines_until_the_daemon_ends(run, daemon):
    fake = daemon(status={})
    fake.publish_when_followed(EVENT, {"type": "other"}, EVENT)
    result = run("tail", "--type", "mcp_*", "--jsonl")
    assert [json.loads(text) for text in result.stdout.splitlines()] == [EVENT, EVENT]
    assert result.exit_code == 4
    assert result.stderr == "error: the daemon stops\n"


def test_an_event_is_one_line_with_nothing_raw():
    assert (
        line(EVENT)
        == "2025-01-31 12:00:00  block        mcp_network_connection  evil  <U+001B>c[4] -> 1.2.3.4:1 (ebpf)"
    )


def test_a_bad_filter_is_a_usage_error(run):
    assert run("tail", "--action", "maybe").exit_code == 2


def test_without_a_daemon_there_is_nothing_to_follow(run):
    assert run("tail").exit_code == 4


def test_an_event_of_an_agents_session_says_so():
    assert "  mcp_network_connection  session mine  evil  " in line(EVENT | {"session_id": "mine"})
