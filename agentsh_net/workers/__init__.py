"""The unprivileged processes of the daemon, and what serves them: they read what the network sends, so nothing they say is believed unchecked."""
