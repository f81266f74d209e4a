"""The nftables plane: its tables written and asked for by netlink, who changes them, and the packets that they log."""
