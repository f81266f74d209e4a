"""The Unix socket between the daemon and its CLI."""
