"""Anthropic Messages: events, content blocks, stored messages, and calls within them."""
