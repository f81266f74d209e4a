"""The policy that a shim's conversation asks for is the one in force when it asks."""

from __future__ import annotations

from shim_front import Front
from situations import situation


def test_the_policy_is_that_of_the_snapshot_in_force() -> None:
    front = Front(fail_closed=False)
    daemon = front.shims.daemon
    assert not daemon.mcp.fail_closed
    front.snapshot = situation(["fs"], fail_closed=True)
    assert daemon.mcp.fail_closed
