"""What the declared servers' names mean: our own questions, the answers of others, the stub that holds answers, and the planes that follow."""
