"""`block_mode: steer`: a refused call becomes a call of a tool that no client has, so that the agent reads why and goes on.

Which clients take that well is the proxy's knowledge; a dialect steers where its wire format lets it, and puts text elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

from agentsh_net.core.values import strict_json

# No client makes such a name of an MCP tool (they put the server before it), and none brings a tool of this name.
NAME: Final = "agentsh_blocked_call"


class Steered(str):
    """A notice that reaches the model in a call's arguments instead of as text."""

    __slots__ = ()


def arguments(text: str) -> dict[str, str]:
    """Return the arguments of the call that stands for a refused one."""
    return {"blocked": str(text)}


def tool_use(text: str, call_id: Any) -> dict[str, Any]:
    """Return the Anthropic block that stands for a refused one."""
    return {"type": "tool_use", "id": call_id, "name": NAME, "input": arguments(text)}


def function_call(text: str, item_id: str, call_id: str, *, begun: bool = False) -> dict[str, Any]:
    """Return the Responses item that stands for a refused one; `begun`: as it is before its arguments come."""
    return {
        "id": item_id,
        "type": "function_call",
        "status": "in_progress" if begun else "completed",
        "arguments": "" if begun else strict_json.dump(arguments(text)),
        "call_id": call_id,
        "name": NAME,
    }
