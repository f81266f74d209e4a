"""What the declared servers are seen to offer and to be: from reports to what verdicts rest on, the store, and events."""
