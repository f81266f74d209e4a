"""Rules over what a session does across servers, and what a tool does with data."""
