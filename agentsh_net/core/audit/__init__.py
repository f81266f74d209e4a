"""What is told of what happened: events, how they belong together, and the numbers and suggestions made of them."""
