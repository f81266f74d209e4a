"""agentsh-net: sees and stops the MCP tool calls of AI agents."""

__version__ = "0.1.0"
