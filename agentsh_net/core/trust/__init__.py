"""What was trusted and whether it still is what it was: pins of tools and servers, and how a request shows them."""
