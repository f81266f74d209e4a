"""Data loss prevention: what of an agent's request must not reach a provider, and how it comes back where it may."""
