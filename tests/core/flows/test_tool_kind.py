"""What a tool does is told from its verb in any style, and hints add dangers without taking any away but that of writing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import definitions

from agentsh_net.core.flows.tool_kind import SINK, Kind, kind_of, kind_of_name, shown

READ, SEND, WRITE, DESTRUCTIVE = Kind.READ, Kind.SEND, Kind.WRITE, Kind.DESTRUCTIVE


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("read_file", READ), ("getUser", READ), ("list-issues", READ), ("WebSearch", READ), ("db.query", READ), ("fetch", READ),
        ("slack_post_message", SEND), ("sendEmail", SEND), ("reply-to-thread", SEND), ("push_files", SEND), ("email", SEND),
        ("write_file", WRITE), ("createIssue", WRITE), ("update-record", WRITE), ("move_file", WRITE),
        ("delete_file", DESTRUCTIVE), ("dropTable", DESTRUCTIVE), ("purge-queue", DESTRUCTIVE),
        ("execute_command", WRITE | DESTRUCTIVE), ("run_query", READ | WRITE),
        ("get_post", READ), ("update_post", WRITE), ("list_emails", READ), ("get_send_status", READ), ("email_search", READ),
        ("search_and_replace", READ | WRITE), ("read_then_send", READ | SEND), ("create_or_update_file", WRITE),
        ("mcp__mail__send_email", SEND), ("mcp_send_email", SEND), ("reader__send", SEND), ("functions.delete", DESTRUCTIVE),
        ("add", WRITE), ("add_comment", WRITE), ("add_file", WRITE), ("addNumberToList", WRITE), ("add_phone_numbers", WRITE),
        ("add_two_numbers", Kind.UNKNOWN), ("calculator_add", Kind.UNKNOWN), ("add-integers", Kind.UNKNOWN), ("sum", Kind.UNKNOWN),
        ("run_status", READ), ("actions_run_logs", READ), ("commit_history", READ), ("run_tests", WRITE | DESTRUCTIVE),
        ("delete_report", DESTRUCTIVE), ("update_query", WRITE), ("server_log_expense", READ),
        ("update_status", WRITE), ("save_details", WRITE), ("set_info", WRITE), ("put_object", WRITE), ("post_status", SEND),
        ("log_expense", WRITE), ("logMessage", WRITE), ("git_log", READ), ("log", READ), ("log_entries", READ), ("log10", READ),
        ("log_search", READ), ("format_disk", DESTRUCTIVE), ("format", WRITE), ("format_document", WRITE), ("format_date", Kind.UNKNOWN),
        ("frobnicate", Kind.UNKNOWN), ("", Kind.UNKNOWN), ("échec", Kind.UNKNOWN),
    ],
)  # fmt: skip
def test_a_name_says_what_its_tool_does(name: str, kind: Kind) -> None:
    assert kind_of_name(name) == kind


@pytest.mark.parametrize(
    ("name", "hints", "kind"),
    [
        ("frobnicate", {"readOnlyHint": True}, READ),
        ("create_preview", {"readOnlyHint": True}, READ),
        ("send_email", {"readOnlyHint": True}, SEND),
        ("delete_all", {"readOnlyHint": True}, DESTRUCTIVE),
        ("frobnicate", {"readOnlyHint": False}, WRITE),
        ("frobnicate", {"destructiveHint": True}, DESTRUCTIVE),
        ("frobnicate", {"readOnlyHint": False, "openWorldHint": True}, SEND),
        ("search", {"readOnlyHint": True, "openWorldHint": True}, READ),
        ("delete", {"destructiveHint": False}, DESTRUCTIVE),
        ("read_file", {}, READ),
        ("read_file", {"readOnlyHint": "yes", "destructiveHint": 1}, READ),
        ("read_file", None, READ),
    ],
)
def test_hints_count_where_they_are_given(name: str, hints: Any, kind: Kind) -> None:
    assert kind_of(name, {"annotations": hints}) == kind


def takes(*types: str) -> dict[str, Any]:
    named = {f"p{index}": {"type": each} for index, each in enumerate(types)}
    return {"inputSchema": {"type": "object", "properties": named}}


@pytest.mark.parametrize(
    ("name", "definition", "kind"),
    [
        ("add", takes("number", "number"), Kind.UNKNOWN),
        ("mcp__calc__add", takes("integer", "integer"), Kind.UNKNOWN),
        ("add", takes("string"), WRITE),  # a memory's
        ("add", {}, WRITE),
        ("add", takes("number") | {"annotations": {"readOnlyHint": False}}, WRITE),
        ("add_member", takes("integer", "integer"), WRITE),
        ("add_comment", takes("integer", "string"), WRITE),
        ("set", takes("number"), WRITE),
        ("delete", takes("integer"), DESTRUCTIVE),
    ],
)
def test_add_of_numbers_alone_writes_nothing(name: str, definition: Any, kind: Kind) -> None:
    assert kind_of(name, definition) == kind


@given(
    st.sampled_from(["send_email", "delete_x", "post_message", "exec"]),
    st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint", "openWorldHint"]), st.booleans()),
)
def test_no_hint_makes_a_sending_or_destroying_tool_harmless(name: str, hints: dict[str, bool]) -> None:
    before = kind_of_name(name) & (SEND | DESTRUCTIVE)
    assert kind_of(name, {"annotations": hints}) & before == before


@given(st.text(), st.none() | st.dictionaries(st.text(), st.integers()))
def test_any_name_has_a_kind(name: str, definition: Any) -> None:
    assert isinstance(kind_of(name, definition), Kind)


def test_what_the_official_servers_read_is_no_sink() -> None:
    reads = {
        "read_file",
        "get_issue",
        "list_commits",
        "search_nodes",
        "slack_get_users",
        "brave_web_search",
        "maps_geocode",
    }
    kinds = {tool["name"]: kind_of(tool["name"], tool) for _, tool in definitions.all_tools()}
    assert all(kinds[name] & READ and not kinds[name] & SINK for name in reads)
    sends = {"slack_post_message", "slack_reply_to_thread", "push_files"}
    assert all(kinds[name] & SEND for name in sends)
    writes = {
        "add_issue_comment",
        "add_observations",
        "slack_add_reaction",
        "update_issue",
        "merge_pull_request",
        "write_file",
    }
    assert all(kinds[name] & WRITE for name in writes)


def test_a_kind_has_words() -> None:
    assert shown(READ | SEND) == "read and send"
    assert shown(Kind.UNKNOWN) == "unknown"
