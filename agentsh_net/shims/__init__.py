"""The conversations of shims with the daemon: who is there, what each asks, and what is told of it."""
