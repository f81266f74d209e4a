"""What servers ask of clients is judged by the policy of its kind, per server first, and audit mode lets pass what it would block."""

from __future__ import annotations

import pytest

from agentsh_net.core.configuration.settings import Mcp, ServerAsks
from agentsh_net.core.mcp.glance import ELICITATION, SAMPLING
from agentsh_net.core.model import Action
from agentsh_net.core.verdicts.server_asks import judge


@pytest.mark.parametrize(("method", "name"), [(SAMPLING, "sampling"), (ELICITATION, "elicitation")])
def test_each_kind_has_its_policy(method: str, name: str) -> None:
    mcp = Mcp(**{name: ServerAsks("block")})  # type: ignore[arg-type]
    verdict = judge(mcp, "fs", method)
    assert (verdict.action, verdict.would, verdict.rule) == (Action.BLOCK, None, f"sandbox.mcp.{name}.policy")
    other = ELICITATION if method == SAMPLING else SAMPLING
    assert not judge(mcp, "fs", other).blocked


def test_a_servers_own_policy_counts_first_whatever_its_case() -> None:
    mcp = Mcp(sampling=ServerAsks("block", {"FS": "allow", "web": "alert"}))
    assert judge(mcp, "fs", SAMPLING).rule == "sandbox.mcp.sampling.per_server.FS"
    assert not judge(mcp, "fs", SAMPLING).blocked
    assert not judge(mcp, "Web", SAMPLING).blocked
    assert judge(mcp, "other", SAMPLING).blocked


def test_audit_mode_lets_pass_and_says_what_it_would_have_done() -> None:
    verdict = judge(Mcp(enforce_policy=False, elicitation=ServerAsks()), "fs", ELICITATION)
    assert (verdict.action, verdict.would) == (Action.ALLOW, Action.BLOCK)


def test_without_a_section_requests_pass_and_a_section_without_a_policy_blocks() -> None:
    assert not judge(Mcp(), "fs", SAMPLING).blocked
    assert judge(Mcp(sampling=ServerAsks()), "fs", SAMPLING).blocked
