"""The demonstration: attacks on a scripted agent, each once without enforcement and once with it, in namespaces of its own."""
