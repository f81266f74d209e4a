"""OpenAI Chat Completions: calls in fragments, choices, and what clients make of both."""
