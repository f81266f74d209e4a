"""The only folder that knows SQLite."""
