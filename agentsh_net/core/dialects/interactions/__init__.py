"""Gemini's Interactions API: steps, calls, arguments in pieces."""
