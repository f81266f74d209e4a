"""The policy that a review asks for is the one in force when it asks."""

from __future__ import annotations

from agentsh_proxy.gateway.dependencies import Dependencies
from gateway_front import FakeCharges, snapshot


async def changed() -> None:
    raise AssertionError("nothing changes here")


def test_the_policy_is_that_of_the_snapshot_in_force() -> None:
    current = [snapshot([], fail_closed=False)]
    charges = FakeCharges()
    around = Dependencies(
        snapshot=lambda: current[0], charge=charges.of_the_wire, claim=lambda *_: None, unanswered=lambda: False,
        emit=lambda _: None, report=lambda _: None, changed=changed, customs=lambda: (), counted=lambda _: None, soon=lambda work: work(),
    )  # fmt: skip
    assert not around.mcp.fail_closed
    current[0] = snapshot([], fail_closed=True)
    assert around.mcp.fail_closed
