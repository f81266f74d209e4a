"""Names and their addresses: what DNS, neighbours and files say, and what is seen of the answers to others."""
