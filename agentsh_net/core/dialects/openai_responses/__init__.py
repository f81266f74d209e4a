"""OpenAI Responses: items, events about them, stored and whole answers."""
