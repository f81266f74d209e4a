"""Bytes in, frames out, each with the very bytes it came in: one file for each way a provider frames its stream."""
