"""The MCP gateway: declared servers at /mcp/<server-id> over Streamable HTTP, whatever their own transport, with every message judged."""
