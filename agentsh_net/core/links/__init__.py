"""What our own processes say to each other: bounded messages, each a dataclass."""
