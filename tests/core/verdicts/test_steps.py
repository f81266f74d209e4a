"""Each step says what decided, in words that name the rule, its place and the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentsh_net.core.configuration.settings import (
    Gateway,
    GatewayServer,
    Inspection,
    Mcp,
    RateLimit,
    RateLimits,
    ServerRule,
    ToolRule,
    VersionPinning,
)
from agentsh_net.core.inspect.contents import inspect_arguments
from agentsh_net.core.model import Candidate, PinState, Tool
from agentsh_net.core.trust import pins
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pin, Pins
from agentsh_net.core.verdicts import steps
from agentsh_net.core.verdicts.rules import Rules
from agentsh_net.core.verdicts.steps import Outcome

READ = Candidate("fs", "read", "sha256:1")


def rules(**lists):
    return Rules(Mcp(**lists))


@pytest.mark.parametrize(
    ("lists", "policy", "outcome", "reason", "rule"),
    [
        ({}, "none", "pass", "no rule denies server fs", ""),
        (
            {"denied_servers": (ServerRule("f*"),)},
            "none",
            "block",
            "server fs is denied by denied_servers[0] (server f*)",
            "sandbox.mcp.denied_servers[0]",
        ),
        (
            {"allowed_servers": (ServerRule("fs"),), "denied_servers": (ServerRule("*"),)},
            "allowlist",
            "pass",
            "server fs is allowed by allowed_servers[0] (server fs)",
            "sandbox.mcp.allowed_servers[0]",
        ),
        (
            {"denied_servers": (ServerRule("*"),)},
            "none",
            "block",
            "server fs is not in allowed_servers, and denied_servers[0] (*) denies every other",
            "sandbox.mcp.denied_servers[0]",
        ),
        (
            {},
            "allowlist",
            "block",
            "server fs is not in allowed_servers (server_policy: allowlist)",
            "sandbox.mcp.server_policy",
        ),
    ],
)
def test_a_server_goes_by_the_lists_and_what_the_policy_says_of_the_rest(
    lists, policy, outcome, reason, rule
):
    step = steps.server_step(rules(**lists), policy, READ)
    assert (step.step, step.outcome, step.reason, step.rule, step.about) == (
        "server",
        outcome,
        reason,
        rule,
        READ,
    )


@pytest.mark.parametrize(
    ("lists", "policy", "outcome", "reason", "rule"),
    [
        ({}, "none", "pass", "no rule denies tool fs/read", ""),
        (
            {"denied_tools": (ToolRule("fs", "re*"),), "allowed_tools": (ToolRule("*", "*"),)},
            "allowlist",
            "block",
            "tool fs/read is denied by denied_tools[0] (server fs, tool re*)",
            "sandbox.mcp.denied_tools[0]",
        ),
        (
            {"denied_tools": (ToolRule("*", "*"),), "allowed_tools": (ToolRule("fs", "read", "sha256:1"),)},
            "denylist",
            "pass",
            "tool fs/read is allowed by allowed_tools[0] (server fs, tool read, version sha256:1)",
            "sandbox.mcp.allowed_tools[0]",
        ),
        (
            {"denied_tools": (ToolRule("*", "*"),), "allowed_tools": (ToolRule("fs", "read", "sha256:2"),)},
            "denylist",
            "block",
            "tool fs/read is not in allowed_tools, and denied_tools[0] (*) denies every other",
            "sandbox.mcp.denied_tools[0]",
        ),
        (
            {},
            "allowlist",
            "block",
            "tool fs/read is not in allowed_tools (tool_policy: allowlist)",
            "sandbox.mcp.tool_policy",
        ),
    ],
)
def test_a_tool_goes_by_the_lists_and_what_the_policy_says_of_the_rest(lists, policy, outcome, reason, rule):
    step = steps.tool_step(rules(**lists), policy, READ)
    assert (step.step, step.outcome, step.reason, step.rule, step.about) == (
        "tool",
        outcome,
        reason,
        rule,
        READ,
    )


TRUSTED = Pins.of([Pin("fs", "read", "sha256:1")])
OTHER = Pins.of([Pin("fs", "read", "sha256:2")])
WAITING = Pins.of([Pin("fs", "read", "sha256:1", state=PinState.NEW)])


@pytest.mark.parametrize(
    ("board", "pinning", "outcome", "says"),
    [
        (TRUSTED, {}, "pass", "is trusted"),
        (OTHER, {"on_change": "block"}, "block", "is not the version that was trusted (on_change: block)"),
        (OTHER, {"on_change": "alert"}, "alert", "on_change: alert"),
        (OTHER, {"on_change": "allow"}, "pass", "on_change: allow"),
        (Pins(), {"auto_trust_first": True}, "alert", "trusted at first sight"),
        (Pins(), {"auto_trust_first": False}, "block", "mcp pins trust"),
        (WAITING, {"auto_trust_first": False}, "block", "mcp pins trust"),
    ],
)
def test_a_pin_blocks_as_its_state_and_the_settings_say(board, pinning, outcome, says):
    step = steps.pin_step(board, VersionPinning(**pinning), READ)
    assert step.outcome == outcome
    assert says in step.reason
    assert (
        step.outcome.value
        == pins.effect(board.lookup("fs", "read", "sha256:1"), VersionPinning(**pinning)).value
    )


TLS = Identity("fs", Aspect.TLS, PinState.CHANGED)
SAYS = Identity("fs", Aspect.INSTRUCTIONS, PinState.CHANGED)
NEW = Identity("fs", Aspect.BINARY, PinState.NEW)
DECLARED = replace(TLS, declared=True)


@pytest.mark.parametrize(
    ("known", "pinning", "outcome", "says"),
    [
        ([TLS], {}, "block", "the TLS certificate of server fs is not the one that was trusted (on_change: block)"),
        ([TLS], {"on_change": "alert"}, "alert", "on_change: alert"),
        ([TLS], {"on_change": "allow"}, None, ""),
        ([TLS], {"enabled": False}, None, ""),
        ([SAYS, DECLARED], {"on_change": "alert"}, "block", "than its tls_fingerprint names"),
        ([DECLARED], {"enabled": False}, "block", "than its tls_fingerprint names"),
        ([replace(DECLARED, state=PinState.TRUSTED)], {}, None, ""),
        ([NEW, SAYS], {"on_change": "alert", "auto_trust_first": False}, "block", "mcp pins trust --identity"),
        ([NEW], {"auto_trust_first": True}, None, ""),
        ([], {}, None, ""),
    ],
)  # fmt: skip
def test_a_server_that_is_another_blocks_before_it_alerts_and_one_that_the_policy_declares_always(
    known, pinning, outcome, says
):
    step = steps.identity_step(known, VersionPinning(**pinning), READ)
    assert (step and step.outcome.value) == outcome
    assert step is None or (says in step.reason and step.about == READ)


def test_without_pinning_there_is_no_pin_step():
    assert steps.pin_step(OTHER, VersionPinning(enabled=False), READ) is None


@pytest.mark.parametrize(
    ("found", "bound", "outcome"),
    [
        ("critical", "critical", "block"),
        ("high", "critical", "alert"),
        ("high", "medium", "block"),
        ("low", "medium", "alert"),
        ("unheard-of", "critical", "block"),
    ],
)
def test_the_inspection_step_compares_severities(found, bound, outcome):
    step = steps.inspection_step(Inspection(bound), Tool("fs", "read", "h", {}, found), READ)
    assert step.outcome == outcome


def test_without_findings_there_is_no_inspection_step():
    assert steps.inspection_step(Inspection("low"), Tool("fs", "read", "h"), READ) is None
    assert steps.inspection_step(Inspection("low"), None, READ) is None


def test_findings_in_arguments_are_told_and_decide_nothing():
    step = steps.arguments_step(inspect_arguments({"path": "/etc/shadow", "to": "~/.ssh/id_rsa"}))
    assert step.outcome == Outcome.ALERT
    assert step.reason == "the arguments have findings up to high: credential-path at $.path and 1 more"


def test_the_rate_step_names_the_limit():
    limits = RateLimits(True, 60, 10, {"FS": RateLimit(10, 3)})
    over = steps.rate_step(limits, READ, Outcome.BLOCK)
    assert over.reason == "server fs is over its rate of 10 calls a minute, 3 at once"
    assert over.rule == "sandbox.mcp.rate_limits.per_server.fs"
    assert steps.rate_step(limits, Candidate("x", "y"), Outcome.PASS).rule == "sandbox.mcp.rate_limits"


def test_a_reason_hides_nothing_and_stays_short():
    evil = Candidate("fs\u202e", "\x1b[31mred" + "x" * 500)
    reason = steps.server_step(rules(), "none", evil).reason + steps.tool_step(rules(), "none", evil).reason
    assert reason.isprintable()
    assert "<U+202E>" in reason
    assert len(reason) < 400


def test_the_protocol_step_is_always_a_block_and_quotes_the_flaw():
    step = steps.protocol_step("duplicate key 'name'")
    assert (step.step, step.outcome, step.reason, step.rule, step.about) == (
        "protocol", Outcome.BLOCK, "duplicate key 'name'", "protocol", None,
    )  # fmt: skip


def test_a_step_about_another_pair_says_the_same():
    step = steps.server_step(rules(), "allowlist", Candidate("fs", ""))
    assert steps.about(step, READ) == steps.server_step(rules(), "allowlist", READ)


def test_the_gateway_says_which_tools_it_leaves_out_and_nothing_where_it_has_no_say():
    gateway = Gateway(
        enabled=True, servers={"FS": GatewayServer(allow_tools=("re*",)), "web": GatewayServer()}
    )
    offered = steps.gateway_step(gateway, READ)
    assert offered is not None
    assert (offered.outcome, offered.rule) == (Outcome.PASS, "gateway.servers.FS.allow_tools")
    left_out = steps.gateway_step(gateway, replace(READ, tool="write"))
    assert left_out is not None and left_out.outcome is Outcome.ALERT
    assert left_out.reason == "the gateway does not offer tool fs/write: calls through it are blocked"
    assert steps.gateway_step(gateway, replace(READ, server_id="web")) is None
    assert steps.gateway_step(replace(gateway, enabled=False), READ) is None
