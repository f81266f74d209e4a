"""The policy over what servers ask of clients: sampling (the client's model) and elicitation (the user).

How such a request looks in each revision is `core.mcp.gate`'s business.
"""

from __future__ import annotations

from agentsh_net.core.configuration.settings import Mcp, ServerAsks
from agentsh_net.core.mcp.glance import SAMPLING
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.verdicts.rules import ROOT


def judge(mcp: Mcp, server_id: str, method: str) -> Verdict:
    """Return the verdict on a request of a server (`sampling/createMessage` or `elicitation/create`)."""
    what = "sampling" if method == SAMPLING else "elicitation"
    asks = mcp.sampling if method == SAMPLING else mcp.elicitation
    policy, path = _policy(asks, server_id, f"{ROOT}.{what}")
    match policy:
        case "allow":
            return Verdict(Action.ALLOW, f"{what} is allowed", path)
        case "alert":
            return Verdict(Action.ALLOW, f"{what} is let through and told of", path)
        case _ if mcp.enforce_policy:
            return Verdict(Action.BLOCK, f"{what} is not allowed for this server", path)
        case _:
            return Verdict(Action.ALLOW, f"{what} is not allowed for this server", path, Action.BLOCK)


def _policy(asks: ServerAsks, server_id: str, path: str) -> tuple[str, str]:
    wanted = fold(server_id)
    for name, policy in asks.per_server.items():
        if fold(name) == wanted:
            return policy, f"{path}.per_server.{name}"
    return asks.policy, f"{path}.policy"
