"""The eBPF plane: its probes built or compiled, loaded, held at a cgroup, filled, and their records read."""
