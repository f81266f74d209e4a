"""What the planes shall enforce and what their records mean: addresses of names, plans, shared endpoints, DNS answers."""
