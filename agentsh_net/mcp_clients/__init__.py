"""The files of MCP clients: which servers they declare, and how those go behind policy and back."""
