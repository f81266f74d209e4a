"""The schema of MCP's section: a server is of one transport, a rule knows where it stands, a rate has its burst."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration import mcp as config_mcp
from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.schema import At, Refused
from agentsh_net.core.errors import Problem
from agentsh_net.core.model import Server, Transport

NAMES = {"server": {"web": "Web"}}


def read(reader: Any, value: Any) -> tuple[Any, list[Problem]]:
    problems: list[Problem] = []
    try:
        return reader(At("at", problems, names=NAMES), value), problems
    except Refused:
        return None, problems


def test_a_stdio_server_is_its_command() -> None:
    declared = {"id": "fs", "type": "stdio", "command": "npx", "args": ["-y", ""], "env": {"A": ""}}
    assert read(config_mcp.server, declared) == (
        Server("fs", Transport.STDIO, "npx", ("-y", ""), {"A": ""}),
        [],
    )


def test_a_network_server_is_its_url() -> None:
    declared = {"id": "w", "type": "sse", "url": "https://H/sse", "tls_fingerprint": "AB" * 32}
    server, problems = read(config_mcp.server, declared)
    assert not problems
    assert (server.transport, server.host, server.port) == (Transport.SSE, "h", 443)
    assert server.tls_fingerprint == "sha256:" + "ab" * 32


def test_keys_of_another_transport_are_told_one_by_one() -> None:
    declared = {"id": "fs", "type": "stdio", "command": "npx", "url": "https://h/", "headers": {}}
    assert [p.path for p in read(config_mcp.server, declared)[1]] == ["at.headers", "at.url"]


@pytest.mark.parametrize(("rpm", "burst"), [(6, 1), (60, 10), (59, 9), (0.1, 1)])
def test_ten_seconds_worth_is_at_least_one(rpm: float, burst: int) -> None:
    assert config_mcp.default_burst(rpm) == burst


def test_a_rate_of_a_server_completes_itself_and_the_general_one() -> None:
    value = {"default_rpm": 600, "per_server": {"web": {"calls_per_minute": 12}}}
    assert read(config_mcp.RATES, value) == (
        settings.RateLimits(True, 600, 100, {"Web": settings.RateLimit(12, 2)}),
        [],
    )


def test_a_burst_is_one_call_at_least() -> None:
    for burst, found in ((1, []), (0, ["at.burst"])):
        given = {"calls_per_minute": 12, "burst": burst}
        assert [problem.path for problem in read(config_mcp.RATE, given)[1]] == found


def test_two_patterns_of_one_name_are_one_problem() -> None:
    patterns = [{"name": name, "regex": "x", "severity": "high"} for name in ("Mine", "mine")]
    assert len(read(config_mcp.CUSTOM_PATTERNS, patterns)[1]) == 1


def test_a_rule_carries_its_path() -> None:
    assert read(config_mcp.server_rule, "a*") == (settings.ServerRule("a*", "at"), [])
    assert read(config_mcp.server_rule, {"id": "a*"}) == (settings.ServerRule("a*", "at"), [])
    assert read(config_mcp.tool_rule, {"tool": "b"}) == (settings.ToolRule("*", "b", "", "at"), [])


def test_a_rule_narrowed_to_a_version_keeps_the_hash() -> None:
    rule, _ = read(config_mcp.tool_rule, {"content_hash": "ab" * 32})
    assert rule.content_hash == "sha256:" + "ab" * 32


@pytest.mark.parametrize("value", [{}, {"id": None}, {"id": "["}, None, 5, [], ""], ids=repr)
def test_a_rule_that_names_nothing_is_no_rule(value: Any) -> None:
    result, problems = read(config_mcp.server_rule, value)
    assert result is None
    assert len(problems) == 1


def test_what_servers_ask_is_set_per_declared_server() -> None:
    value = {"policy": "alert", "per_server": {"WEB": "allow"}}
    assert read(config_mcp.SERVER_ASKS, value) == (settings.ServerAsks("alert", {"Web": "allow"}), [])


@pytest.mark.parametrize("key", ["headers", "env", "args"])
@pytest.mark.parametrize("value", ["Bearer hunter2", {"A": ["hunter2"]}, {"A": "hunter2\n\0"}, ["hunter2\0"]])
def test_secrets_in_the_wrong_shape_are_not_shown_either(key: str, value: Any) -> None:
    network = {"id": "w", "type": "http", "url": "https://h/"}
    local = {"id": "w", "type": "stdio", "command": "npx"}
    problems = read(config_mcp.server, {**(network if key == "headers" else local), key: value})[1]
    assert problems
    assert not [p for p in problems if "hunter2" in str(p)]


@pytest.mark.parametrize("pattern", ["(a+)+$", ".*.*x", r"(\w+\s?)*$"])
def test_a_pattern_that_a_text_can_make_run_for_ever_is_refused(pattern: str) -> None:
    _, problems = read(config_mcp.CUSTOM_PATTERN, {"name": "p", "regex": pattern})
    assert [p.path for p in problems] == ["at.regex"]
    assert "one unbounded repeat" in problems[0].expected


def test_an_ordinary_pattern_is_read() -> None:
    found, problems = read(
        config_mcp.CUSTOM_PATTERN, {"name": "p", "regex": r"ACME-\d{6}.*", "severity": "low"}
    )
    assert not problems
    assert found == settings.CustomPattern("p", r"ACME-\d{6}.*", "", "low")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("rate_limits", {"default_rpm": 6}),
        ("output_inspection", {"on_detection": "block"}),
        ("cross_server", {"same_turn_only": False}),
    ],
)
def test_what_is_written_down_is_in_force_unless_it_says_otherwise(
    name: str, written: dict[str, Any]
) -> None:
    def enabled(**sections: Any) -> bool:
        mcp = parse({"version": 1, "sandbox": {"mcp": sections}}).sandbox.mcp
        return bool(getattr(mcp, name).enabled)

    assert enabled(**{name: written})
    assert not enabled(**{name: {"enabled": False, **written}})
    assert not enabled()


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "CONNECTION"])
def test_a_field_that_says_where_a_request_goes_and_ends_is_not_for_configuring(name: str) -> None:
    declared = {"id": "w", "type": "http", "url": "https://h/", "headers": {name: "x", "Authorization": "y"}}
    server, [problem] = read(config_mcp.server, declared)
    assert (problem.path, problem.found) == (f"at.headers.{name}", f"the field {name}")
    assert server.headers == {"Authorization": "y"}
