"""Events of requests that are refused for what they are, not for what they call.

No HTTP, too large, another site's page, an unknown session, no credential ...: what nobody else's event tells of.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentsh_net.core.audit.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Event):
    """A request was refused; `type` says by whom."""

    method: str = ""  # empty, as the path is, where no head was read
    path: str = ""  # without its query and the session's token
    status: int = 0  # of the answer, as HTTP has it


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused(Refused):
    """The LLM proxy refused a request."""

    type = "llm_request_refused"
    dialect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequestRefused(Refused):
    """The MCP gateway refused a request."""

    type = "mcp_request_refused"
