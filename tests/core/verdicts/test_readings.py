"""Rules of the tools' lists that name requests to read hold for those, by their parameters; patterns over tools do not."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration import config
from agentsh_net.core.model import Action, ToolCall
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot, explain
from agentsh_net.core.trust.pins import Pins

READ, GET = "resources/read", "prompts/get"
ETC = {"server": "fs", "tool": READ, "args": {"uri": {"glob": "/etc/*"}}}


def situation(**mcp: Any) -> Snapshot:
    servers = [
        {"id": "fs", "type": "stdio", "command": "fs"},
        {"id": "web", "type": "stdio", "command": "web"},
    ]
    mapping = {"sandbox": {"mcp": {"servers": servers, **mcp}}}
    read = config.parse(mapping)
    return Snapshot(1, "", read, Registry(read.sandbox.mcp.servers), Pins(), mapping)


def denied(snapshot: Snapshot, method: str, server: str = "fs", **params: Any) -> bool:
    """Say whether a request is refused, as a shim or the gateway asks: first whether any rule names it."""
    named = snapshot.reads(server, method)
    assert snapshot.reads(server) or not named
    return named and snapshot.judge_reading(server, method, params).blocked


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "/etc/shadow",
        "FILE:///etc/passwd",
        "file:///tmp/../etc/passwd",
        "file:///%65tc/passwd",
    ],
)
def test_a_denied_resource_is_denied_however_it_is_spelt(uri: str) -> None:
    snapshot = situation(denied_tools=[ETC])
    assert denied(snapshot, READ, uri=uri)
    assert denied(snapshot, "Resources/Read ", uri=uri)
    assert not denied(snapshot, READ, uri="file:///srv/notes")
    assert not denied(snapshot, READ, "web", uri=uri)
    assert not denied(snapshot, "resources/subscribe", uri=uri)


@pytest.mark.parametrize(
    "over", [{}, {"args": {"uri": {"glob": "/etc/*"}}}, {"content_hash": "sha256:" + "1" * 64}]
)
def test_a_rule_over_every_tool_names_no_request_to_read(over: dict[str, Any]) -> None:
    snapshot = situation(denied_tools=[{"server": "*", "tool": "*", **over}])
    assert not snapshot.reads("fs")
    assert not snapshot.judge_reading("fs", READ, {"uri": "/etc/passwd"}).blocked


def test_the_reason_names_the_rule() -> None:
    verdict = situation(denied_tools=[ETC]).judge_reading("fs", READ, {"uri": "/etc/passwd"})
    assert (verdict.action, verdict.rule) == (Action.BLOCK, "sandbox.mcp.denied_tools[0]")
    assert "fs/resources/read is denied by denied_tools[0]" in verdict.reason


@pytest.mark.parametrize(
    "params", [{"uri": "/x", "URI": "/etc/passwd"}, {"Uri": "/etc/passwd"}, ["/etc/passwd"], "/etc/passwd"]
)
def test_what_only_some_servers_take_for_a_parameter_is_denied(params: Any) -> None:
    assert situation(denied_tools=[ETC]).judge_reading("fs", READ, params).blocked


def test_a_whole_kind_is_denied_by_a_pattern_and_a_prompt_by_its_name() -> None:
    kind = situation(denied_tools=[{"tool": "resources/*"}])
    assert (
        denied(kind, READ, uri="x") and denied(kind, "resources/list") and denied(kind, READ, "web", uri="x")
    )
    assert not denied(kind, GET, name="x")
    prompt = situation(denied_tools=[{"tool": GET, "args": {"name": {"equals": "deploy"}}}])
    assert denied(prompt, GET, name="deploy") and denied(prompt, GET, name="Deploy")
    assert not denied(prompt, GET, name="greet") and not denied(prompt, "prompts/list")


@pytest.mark.parametrize(
    "mcp",
    [
        {"denied_tools": [{"tool": "*"}]},
        {"denied_tools": [{"server": "fs", "tool": "*"}]},
        {"denied_tools": [{"tool": "re*"}]},
        {"tool_policy": "allowlist", "allowed_tools": [{"server": "fs", "tool": "*"}]},
        {"tool_policy": "allowlist", "allowed_tools": [{"server": "web", "tool": READ}]},
        {},
    ],
)
def test_rules_over_tools_say_nothing_of_what_is_read(mcp: dict[str, Any]) -> None:
    snapshot = situation(**mcp)
    assert not snapshot.reads("fs")
    assert not denied(snapshot, READ, uri="/etc/passwd")


@pytest.mark.parametrize("default", [{"tool_policy": "allowlist"}, {"denied_tools": [{"tool": "*"}]}])
def test_where_tools_are_denied_by_default_so_is_what_an_allow_rule_names(default: dict[str, Any]) -> None:
    docs = {"server": "fs", "tool": READ, "args": {"uri": {"glob": "file:///srv/docs/*"}}}
    snapshot = situation(allowed_tools=[docs], **default)
    assert not denied(snapshot, READ, uri="file:///srv/docs/a")
    assert denied(snapshot, READ, uri="file:///srv/docs/../secret")
    assert denied(snapshot, READ)
    assert not denied(snapshot, GET, name="x") and not denied(snapshot, READ, "web", uri="x")


def test_an_allow_rule_alone_denies_nothing() -> None:
    assert not denied(situation(allowed_tools=[{"server": "fs", "tool": READ}]), READ, uri="x")


def test_audit_mode_lets_pass_and_says_what_it_would_have_done() -> None:
    verdict = situation(denied_tools=[ETC], enforce_policy=False).judge_reading("fs", READ, {"uri": "/etc/x"})
    assert (verdict.action, verdict.would) == (Action.ALLOW, Action.BLOCK)


def test_explain_prints_the_verdict_that_shim_and_gateway_give() -> None:
    snapshot = situation(denied_tools=[ETC], tool_policy="allowlist")
    for uri, blocked in (("/etc/passwd", True), ("/srv/x", False)):
        told = explain(snapshot, ToolCall(READ, server_name="fs", input={"uri": uri}))
        assert told.verdict.blocked is blocked
        assert [step.step for step in told.steps] == ["server", "tool", "verdict"]
    whole = situation(denied_servers=[{"id": "fs"}])
    assert explain(whole, ToolCall(READ, server_name="fs")).verdict.rule == "sandbox.mcp.denied_servers[0]"
