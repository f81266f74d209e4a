"""Both policies are valid, and differ in enforcement alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentsh_net.core.configuration import config
from agentsh_net.demo import cast
from agentsh_net.demo.policies import policy


def flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {path: value}
    return {key: v for name, inner in value.items() for key, v in flat(inner, f"{path}.{name}").items()}


def test_a_policy_is_accepted_and_declares_every_server(tmp_path: Path) -> None:
    parsed = config.parse(policy(tmp_path, enforced=True))
    assert {s.id for s in parsed.sandbox.mcp.servers} == {cast.FILES, *cast.ADDRESSES} - {cast.PROVIDER}
    assert parsed.network.required


def test_the_two_differ_in_enforcement_alone(tmp_path: Path) -> None:
    watching, enforced = flat(policy(tmp_path, enforced=False)), flat(policy(tmp_path, enforced=True))
    assert {key for key in enforced if watching[key] != enforced[key]} == {
        ".sandbox.mcp.enforce_policy",
        ".network.mode",
        ".network.llm_direct",
    }
