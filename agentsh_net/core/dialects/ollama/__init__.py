"""Ollama native: NDJSON."""
