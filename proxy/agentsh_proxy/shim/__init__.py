"""The stdio shim: one process around one MCP server, which asks the daemon about what policy speaks of.

Light on purpose, as one starts with every MCP server of every agent: nothing here imports `typing`, dataclasses or an event loop.
"""
