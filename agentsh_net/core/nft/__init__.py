"""A plan as nftables: tables, sets, verdicts, in JSON, in text, in one netlink batch, and read back as the kernel has them."""
