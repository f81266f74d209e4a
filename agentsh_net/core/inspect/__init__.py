"""Detectors over what servers write and agents send: advisory first, since pins carry the load. Pure and bounded.

`definitions` reads what a server offers, `contents` reads arguments and results; one family of detectors a file.
"""
