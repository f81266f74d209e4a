"""How much in how long: calls of servers, requests and tokens of providers, and what an answer says it cost."""
