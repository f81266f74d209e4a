"""A server that shows one client something else than what is trusted is refused there, whatever everybody else was shown."""

from __future__ import annotations

from typing import Any

import pytest
from situations import situation

from agentsh_net.core.configuration.settings import VersionPinning
from agentsh_net.core.mcp.standing import Standing
from agentsh_net.core.model import PinState
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def board(pinned: dict[str, Any]) -> Pins:
    return Pins.of((), [Identity("fs", Aspect.BINARY, PinState.TRUSTED, pinned, pinned, "then")])


def verdict(seen: Any, **mcp: Any) -> Any:
    snapshot = situation(["fs"], pins=board(dict(identity.binary("/x", A, []))), **mcp)
    return Standing("FS").verdict(snapshot, {Aspect.BINARY: seen})


def test_what_is_trusted_passes_and_another_program_does_not() -> None:
    assert verdict(identity.binary("/elsewhere", A, [])) is None
    refused = verdict(identity.binary("/x", B, []))
    assert refused.blocked
    assert refused.rule == "sandbox.mcp.version_pinning.on_change"


def test_audit_mode_says_what_it_would_have_done() -> None:
    refused = verdict(identity.binary("/x", B, []), enforce_policy=False)
    assert (refused.blocked, refused.would) == (False, "block")


@pytest.mark.parametrize("on_change", ["alert", "allow"])
def test_a_policy_that_does_not_block_changes_does_not_block_here(on_change: str) -> None:
    pinning = VersionPinning(on_change=on_change)
    assert verdict(identity.binary("/x", B, []), version_pinning=pinning) is None


def test_a_program_that_nobody_saw_start_is_not_taken_for_the_trusted_one() -> None:
    assert verdict(None).blocked
    assert verdict(None, version_pinning=VersionPinning(enabled=False)) is None


def test_what_was_never_trusted_is_the_boards_business() -> None:
    assert Standing("fs").verdict(situation(["fs"]), {Aspect.BINARY: identity.binary("/x", B, [])}) is None
