"""How a files store behaves, whoever uses it."""
