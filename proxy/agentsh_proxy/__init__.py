"""What reads the network, without privileges: LLM proxy, gateway, discovery, shim and DNS stub. It decides nothing; it asks the core."""
