"""The HTTP side: LLM proxy, and later gateway, discovery and shim. It decides nothing; it asks the core."""
