"""How well conversations are heard: what is kept of them, and how it reads."""
