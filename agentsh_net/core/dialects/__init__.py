"""One file per LLM wire format."""
