"""cgroups: where their hierarchy is, those of ours, and how the daemon comes to have them."""
