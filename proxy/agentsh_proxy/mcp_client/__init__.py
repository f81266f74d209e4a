"""A client of the declared network servers: how one is found, spoken to, listed and listened to."""
