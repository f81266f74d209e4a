"""Sockets that are there already: whose they are, and how one is ended."""
