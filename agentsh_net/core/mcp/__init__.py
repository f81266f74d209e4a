"""MCP without IO: messages, the client's conversation, listings, and what may pass between a client and a server."""
