"""The policy file as data: what stands in it, how it is read, and every problem of it told at once with its YAML path."""
