"""What names stand for: the spellings clients make of (server, tool), patterns over them, and one form for names taken for the same."""
