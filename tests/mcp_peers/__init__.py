"""Servers for tests of discovery: scripted ones on loopback that do what no honest server does, and the official SDK's."""
