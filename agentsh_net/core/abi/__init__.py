"""The kernel's byte layouts: BPF maps and records, BPF objects, netlink and its families, packets."""
